#pragma once

#include <gloo/transport/unbound_buffer.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace cohort {

/// The buffer that a transport's user waits for. libgloo's own waits end neither when this side
/// closes the connection, nor (if the message is half sent or received) when the peer dies. So from
/// time to time a thread of its own ends the wait, for the user to look around and wait again.
class AwaitedBuffer {
 public:
  AwaitedBuffer();
  ~AwaitedBuffer();

  /// The user waits for `buffer` while it lives.
  class Scope {
   public:
    Scope(AwaitedBuffer& awaited, ::gloo::transport::UnboundBuffer& buffer) : awaited_(awaited) {
      awaited_.set(&buffer);
    }
    ~Scope() { awaited_.set(nullptr); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    AwaitedBuffer& awaited_;
  };

  /// Ends the wait there is, if any: waitSend() or waitRecv() returns false.
  void interrupt();

 private:
  void set(::gloo::transport::UnboundBuffer* buffer);
  void interrupt_now_and_then();

  std::mutex mutex_;
  ::gloo::transport::UnboundBuffer* buffer_ = nullptr;
  bool ending_ = false;
  std::condition_variable end_;
  std::thread ticker_;
};

}  // namespace cohort
