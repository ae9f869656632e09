#include "transport/gloo/awaited_buffer.h"

namespace cohort {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

void abort_wait(::gloo::transport::UnboundBuffer* buffer) {
  if (buffer == nullptr) return;
  buffer->abortWaitRecv();
  buffer->abortWaitSend();
}

}  // namespace

AwaitedBuffer::AwaitedBuffer() : ticker_([this] { interrupt_now_and_then(); }) {}

AwaitedBuffer::~AwaitedBuffer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  end_.notify_all();
  ticker_.join();
}

void AwaitedBuffer::set(::gloo::transport::UnboundBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  buffer_ = buffer;
}

void AwaitedBuffer::interrupt() {
  const std::lock_guard lock(mutex_);
  abort_wait(buffer_);
}

void AwaitedBuffer::interrupt_now_and_then() {
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, kTick, [this] { return ending_; })) abort_wait(buffer_);
}

}  // namespace cohort
