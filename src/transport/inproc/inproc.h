#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "os/memory.h"
#include "transport/engine.h"
#include "transport/transport.h"

namespace cohort::transport {

/// The door of this folder: ranks that are threads of one process. inproc_transport.cc moves the
/// messages, inproc_hub.cc is the place where the threads meet.

/// The endpoints of a group of `size` ranks that are threads of this process; element r is rank
/// r's. They share their state, so they may be destroyed in any order, each by its own thread.
///
/// Small messages are copied when they are sent. Large ones are copied once, straight from the
/// sender's bytes to the receiver's, so waiting for such a send waits for the peer to receive.
/// What was sent (and waited for) before a close can still be received after it.
std::vector<std::unique_ptr<Transport>> make_inproc_group(int size);

/// Where ranks that are threads of one process meet. Make one before the threads start; every
/// thread asks it for its engine. The hub must outlive the engines.
///
/// Thread-safe. Whichever thread asks first for the n-th group of connections, the n-th region or
/// the group of some ranks makes it for all; the others find it there. An engine counts its own
/// calls, and because all ranks make them in the same order, equal counts mean the same thing.
/// Regions and hubs of groups live as long as the hub.
class InprocHub {
 public:
  explicit InprocHub(int world) : world_(world) {}

  /// To be asked for once by each rank's thread, and used by that thread alone.
  std::unique_ptr<Engine> engine(int rank);

 private:
  class InprocEngine;

  std::unique_ptr<Transport> take_endpoint(std::size_t group, int rank);
  std::span<std::byte> region(std::size_t index, std::size_t bytes);
  /// Of a group of the threads.
  InprocHub& hub_of(const std::string& key, int world);

  const int world_;
  std::mutex mutex_;  // Guards all below.
  /// By connect() call, then by rank; null once its rank has taken it.
  std::vector<std::vector<std::unique_ptr<Transport>>> groups_;
  std::vector<os::PrivateMemory> regions_;                  ///< By region() call.
  std::map<std::string, std::unique_ptr<InprocHub>> hubs_;  ///< By GroupKeys.
};

}  // namespace cohort::transport
