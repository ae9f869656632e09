#pragma once

#include <memory>
#include <vector>

#include "server/door/door.h"
#include "server/door/server_desk.h"
#include "server/wire/wire.h"

namespace cohort {

/// The server's end of the memory it shares with the workers of its host. Requests are read, and
/// replies written, in the workers' memory.
class MemoryDoor {
 public:
  MemoryDoor(int workers, ServerDesk& desk);
  /// Whoever still waits for an answer is told that none will come.
  ~MemoryDoor();

  std::string path() const { return memory_.path(); }
  SharedEvent& bell() const { return door_.bell(); }

  /// Maps the memory of a worker that says hello, perhaps again with larger side memory.
  void greet(int worker, const Hello& hello);

  /// Whether a request waits to be taken.
  bool has_visitors() const;
  /// Takes every request that waits.
  void take_all();

 private:
  class Guest;

  SharedMemory memory_;
  Door door_;
  ServerDesk& desk_;
  std::vector<std::unique_ptr<Guest>> guests_;  // By worker; null until its hello.
};

}  // namespace cohort
