#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace cohort::programs {

/// What a rank writes, cut into lines that each begin with a prefix, so that those of several ranks
/// can stand below each other and none is ever torn.
///
/// A line ends at "\n", "\r\n" or "\r": a program that draws over its last line (a progress bar) is
/// seen while it does, a line each time, as under torchrun. One that has not ended when the program
/// has is ended for it.
class Lines {
 public:
  /// What is kept of a line that has not ended; a longer one comes in parts, a line each.
  static constexpr std::size_t kLongest = 16 << 20;

  explicit Lines(std::string prefix, std::size_t longest = kLongest)
      : prefix_(std::move(prefix)), longest_(longest) {}

  /// Appends to `whole` the lines that are whole with these bytes.
  void take(std::string_view bytes, std::string& whole);

  /// Appends what has not ended, as a line.
  void finish(std::string& whole);

 private:
  void end_line(std::string& whole);

  const std::string prefix_;
  const std::size_t longest_;
  std::string begun_;          // Of a line that has not ended.
  bool after_return_ = false;  // A line has just ended at "\r": "\n" belongs to it.
};

/// What the ranks of this host write, and what the launcher says in between, goes one way: through
/// one thread, which writes whole lines to standard output and standard error, each to its own.
///
///   rank 0 --pipe-->  Lines "[rank 0] "  --\                  the same bytes, as they came, go to
///   rank 1 --pipe-->  Lines "[rank 1] "  ---> one write()     LOGS/rank-R.out and LOGS/rank-R.err
///   say()  --queue->  "cohort: …"        --/
///
/// Where a terminal does not take anything for a while, the ranks wait; the launcher's own thread
/// never does. Where a write fails the ranks go on without it, and it is said once; where nobody
/// reads any more, this process gets a SIGPIPE, as if it had written itself (a thread of its own
/// would get it otherwise, which nobody reads with os/signal_watch.h).
class Output {
 public:
  struct Options {
    std::vector<int> ranks;  ///< By local rank.
    bool prefix = true;
    std::filesystem::path logs;  ///< A folder that is there, or empty.
    int out = 1;                 ///< Where to write; not closed.
    int err = 2;
  };

  /// Throws Error where there is no descriptor for a pipe left, or a log cannot be opened.
  explicit Output(const Options& options);
  /// As finish().
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// The ends that a rank writes to. They are closed by begin(), so hand them on before.
  int out_of(int local_rank) const { return streams_[index(local_rank, 0)].write_end.get(); }
  int err_of(int local_rank) const { return streams_[index(local_rank, 1)].write_end.get(); }
  /// The log with what a rank says of errors; empty where there are no logs.
  std::string log_of(int local_rank) const;

  /// Starts the thread. Everything else is for the calling thread.
  void begin();

  /// A line on standard error, soon.
  void say(const std::string& line);

  /// Call when all that could write have ended: what they have written is passed on to its end. What
  /// a process that nobody could end still writes is not waited for.
  void finish();

 private:
  /// Where lines or bytes go. After a failure nothing is written there any more.
  struct Sink {
    int fd = -1;
    std::string name = {};  ///< For the user; empty: nothing is to be said of failures.
    bool failed = false;
  };
  struct Stream {
    UniqueFd read_end;  ///< None: all that could write have closed it.
    UniqueFd write_end;
    Lines lines;
    Sink& sink;
    UniqueFd log_file = {};
    Sink log = {};
  };

  static std::size_t index(int local_rank, int error) {
    return 2 * static_cast<std::size_t>(local_rank) + static_cast<std::size_t>(error);
  }
  void add_stream(const Options& options, int rank, bool error);
  void wake();
  void pass_on_all();
  bool pass_on_what_is_there(bool wait);
  void pass_on(Stream& stream);
  bool pass_on_words();
  void write_to(Sink& sink, std::string_view bytes);
  void note_failure(Sink& sink, int error);

  Sink out_;
  Sink err_;
  std::vector<Stream> streams_;  // Two of each rank.
  UniqueFd bell_;                // An eventfd.
  std::vector<char> buffer_;
  std::thread thread_;

  std::mutex mutex_;
  std::deque<std::string> words_;  // By say(), not written yet.
  bool finishing_ = false;
};

}  // namespace cohort::programs
