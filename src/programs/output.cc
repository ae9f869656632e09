#include "programs/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/files.h"

namespace cohort::programs {
namespace {

constexpr std::size_t kMostAtOnce = 64 << 10;

/// The end that is read from does not block.
std::pair<UniqueFd, UniqueFd> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_errno("cannot make a pipe for what a rank writes");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string log_name(int rank, bool error) {
  return fmt::format("rank-{}.{}", rank, error ? "err" : "out");
}

void wait_until_it_takes_more(int fd) {
  pollfd writable{fd, POLLOUT, 0};
  ::poll(&writable, 1, -1);
}

}  // namespace

void Lines::end_line(std::string& whole) {
  whole += prefix_;
  whole += begun_;
  whole += '\n';
  begun_.clear();
}

void Lines::take(std::string_view bytes, std::string& whole) {
  while (!bytes.empty()) {
    const std::size_t room = longest_ - begun_.size();
    const std::size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (end > 0) after_return_ = false;
    if (end > room) {
      begun_ += bytes.substr(0, room);
      bytes.remove_prefix(room);
      end_line(whole);
      continue;
    }
    begun_ += bytes.substr(0, end);
    if (end == bytes.size()) return;
    const bool is_return = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (is_return && begun_.empty()) continue;  // It only goes back to where it is.
    if (is_return || !after_return_) end_line(whole);
    after_return_ = is_return;
  }
}

void Lines::finish(std::string& whole) {
  if (!begun_.empty()) end_line(whole);
}

Output::Output(const Options& options)
    : out_{.fd = options.out, .name = "standard output"},
      err_{.fd = options.err, .name = "standard error"},
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      buffer_(kMostAtOnce) {
  if (!bell_) fail_errno("cannot pass on what ranks write");
  streams_.reserve(2 * options.ranks.size());
  for (const int rank : options.ranks) {
    add_stream(options, rank, false);
    add_stream(options, rank, true);
  }
}

void Output::add_stream(const Options& options, int rank, bool error) {
  auto [read_end, write_end] = make_pipe();
  streams_.push_back(
      {.read_end = std::move(read_end),
       .write_end = std::move(write_end),
       .lines = Lines(options.prefix ? fmt::format("[rank {}] ", rank) : std::string()),
       .sink = error ? err_ : out_});
  if (options.logs.empty()) return;
  Stream& stream = streams_.back();
  const auto path = options.logs / log_name(rank, error);
  stream.log_file = open_to_write(path, Existing::append);
  stream.log = {.fd = stream.log_file.get(), .name = path.string()};
}

Output::~Output() {
  finish();
}

std::string Output::log_of(int local_rank) const {
  return streams_[index(local_rank, 1)].log.name;
}

void Output::begin() {
  for (Stream& stream : streams_) UniqueFd(std::move(stream.write_end));
  thread_ = std::thread([this] {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    pass_on_all();
  });
}

void Output::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

void Output::say(const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    words_.push_back(line + "\n");
  }
  wake();
}

void Output::finish() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  wake();
  thread_.join();
}

// ---- the thread

void Output::pass_on_all() {
  bool finishing = false;
  // Once all have ended what they wrote is in the pipes, and comes without waiting.
  do {
    finishing = pass_on_words();
  } while (pass_on_what_is_there(!finishing) || !finishing);
  std::string rest;
  for (Stream& stream : streams_) {
    rest.clear();
    stream.lines.finish(rest);
    write_to(stream.sink, rest);
  }
}

/// Returns whether this is the end.
bool Output::pass_on_words() {
  std::deque<std::string> words;
  bool finishing = false;
  {
    const std::lock_guard lock(mutex_);
    words.swap(words_);
    finishing = finishing_;
  }
  for (const std::string& line : words) write_to(err_, line);
  return finishing;
}

/// Returns whether any rank had written something.
bool Output::pass_on_what_is_there(bool wait) {
  std::vector<pollfd> polled = {{bell_.get(), POLLIN, 0}};
  for (const Stream& stream : streams_) polled.push_back({stream.read_end.get(), POLLIN, 0});
  if (::poll(polled.data(), polled.size(), wait ? -1 : 0) < 0) return true;  // Interrupted.
  std::uint64_t rung = 0;
  [[maybe_unused]] const ssize_t count = ::read(bell_.get(), &rung, sizeof rung);
  bool any = false;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (polled[i + 1].revents == 0) continue;
    pass_on(streams_[i]);
    any = true;
  }
  return any;
}

void Output::pass_on(Stream& stream) {
  const ssize_t count = ::read(stream.read_end.get(), buffer_.data(), buffer_.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  std::string whole;
  if (count <= 0) {
    UniqueFd(std::move(stream.read_end));
    stream.lines.finish(whole);
  } else {
    const std::string_view bytes(buffer_.data(), static_cast<std::size_t>(count));
    write_to(stream.log, bytes);
    stream.lines.take(bytes, whole);
  }
  write_to(stream.sink, whole);
}

void Output::write_to(Sink& sink, std::string_view bytes) {
  if (sink.fd < 0) return;
  while (!bytes.empty() && !sink.failed) {
    const ssize_t written = ::write(sink.fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      wait_until_it_takes_more(sink.fd);  // Whoever shares it with us has made it so.
    } else if (errno != EINTR) {
      note_failure(sink, errno);
    }
  }
}

void Output::note_failure(Sink& sink, int error) {
  sink.failed = true;
  if (error == EPIPE) {
    ::kill(::getpid(), SIGPIPE);
    return;
  }
  const std::string reason = std::generic_category().message(error);
  write_to(err_, fmt::format("cohort: {}: cannot write: {}; the ranks go on without it\n",
                             sink.name, reason));
}

}  // namespace cohort::programs
