#include "train/run/metrics_tail.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <limits>

#include "base/json_text.h"
#include "base/unique_fd.h"

namespace cohort {

void MetricsTail::read(const std::filesystem::path& run_dir,
                       const std::function<void(const StepReport& step)>& tell) {
  const UniqueFd file(::open((run_dir / "metrics.jsonl").c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return;  // Not there yet.
  if (file_ != status.st_ino || !goes_on(file.get())) offset_ = 0;
  file_ = status.st_ino;
  std::string text;
  std::array<char, 65536> part;
  for (ssize_t count = 0; (count = ::pread(file.get(), part.data(), part.size(),
                                           static_cast<off_t>(offset_ + text.size()))) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    last_line_ = text.substr(begin, end - begin + 1);
    take_line(last_line_, tell);
  }
  offset_ += begin;
}

/// Whether what was read last still stands before the offset.
bool MetricsTail::goes_on(int file) const {
  if (offset_ == 0) return true;
  std::string line(last_line_.size(), '\0');
  const ssize_t count =
      ::pread(file, line.data(), line.size(), static_cast<off_t>(offset_ - line.size()));
  return count == static_cast<ssize_t>(line.size()) && line == last_line_;
}

void MetricsTail::take_line(const std::string& line,
                            const std::function<void(const StepReport& step)>& tell) {
  const auto record = parse_json(line);
  if (!record.is_object() || !record.contains("lr")) return;  // Of a validation.
  const auto step = record.find("step");
  if (step == record.end() || !step->is_number_integer()) return;
  if (step->get<std::int64_t>() <= told_) return;
  told_ = step->get<std::int64_t>();
  // What is not finite stands there as null.
  const auto number = [&](const char* key) {
    const auto found = record.find(key);
    const bool is_number = found != record.end() && found->is_number();
    return is_number ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
  };
  tell({.step = told_,
        .epoch = number("epoch"),
        .loss = number("loss"),
        .lr = number("lr"),
        .samples_per_second = number("samples_per_second")});
}

}  // namespace cohort
