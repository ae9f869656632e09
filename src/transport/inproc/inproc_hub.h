#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "os/private_memory.h"
#include "transport/engine.h"

namespace cohort {

/// Where ranks that are threads of one process meet. Make one before the threads start; every
/// thread asks it for its engine. The hub must outlive the engines.
class InprocHub {
 public:
  explicit InprocHub(int world) : world_(world) {}

  std::unique_ptr<Engine> engine(int rank);

 private:
  class InprocEngine;

  std::unique_ptr<Transport> take_endpoint(std::size_t group, int rank);
  std::span<std::byte> region(std::size_t index, std::size_t bytes);
  /// Of a group of the threads.
  InprocHub& hub_of(const std::string& key, int world);

  const int world_;
  std::mutex mutex_;
  std::vector<std::vector<std::unique_ptr<Transport>>> groups_;
  std::vector<PrivateMemory> regions_;
  std::map<std::string, std::unique_ptr<InprocHub>> hubs_;
};

}  // namespace cohort
