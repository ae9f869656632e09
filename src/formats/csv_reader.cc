#include "formats/csv_reader.h"

#include <algorithm>

#include "base/fail.h"
#include "formats/raw_text.h"

namespace cohort::formats {
namespace {

/// As many as LIBSVM rows may have. A field takes memory even where there is nothing in it.
constexpr std::size_t kMostFields = 1 << 24;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

bool CsvReader::at_line_end() const {
  return rest_.empty() || rest_[0] == '\n' || rest_.starts_with("\r\n");
}

void CsvReader::skip_line_end() {
  if (rest_.empty()) return;
  rest_.remove_prefix(rest_[0] == '\r' ? 2 : 1);
  ++line_;
}

CsvReader::CsvReader(const std::filesystem::path& path) : window_(path) {
  whole_ = !window_.extend(line_);
  if (window_.rest().starts_with(kByteOrderMark)) window_.take(kByteOrderMark.size());
}

// What touches the end of the window may go on behind it, so unless that is the end of the file the
// record is read once more, with more of the file to look at.
bool CsvReader::next(std::vector<std::string>& fields) {
  for (;;) {
    const std::int64_t line = line_;
    rest_ = window_.rest();
    const Read read = read_record(fields);
    const bool done = read == Read::record && (whole_ || !rest_.empty());
    if (done || read == Read::nothing) {
      const std::string_view taken = window_.rest().substr(0, window_.rest().size() - rest_.size());
      if (done) check_no_nul(taken, file(), record_line_);
      window_.take(taken.size());
      if (done || whole_) return done;
    } else {
      line_ = line;
    }
    whole_ = !window_.extend(line_);
  }
}

// Fields of the last record are written over, so that their memory is used again.
CsvReader::Read CsvReader::read_record(std::vector<std::string>& fields) {
  while (!rest_.empty() && at_line_end()) skip_line_end();
  if (rest_.empty()) return Read::nothing;
  record_line_ = line_;
  for (std::size_t count = 0;;) {
    if (count == kMostFields) {
      fail(ErrorCode::invalid, "{} line {}: there are more than {} fields in it", file(),
           record_line_, kMostFields);
    }
    if (fields.size() == count) fields.emplace_back();
    std::string& field = fields[count++];
    if (rest_.starts_with('"')) {
      if (!quoted_field(field)) return Read::cut;
    } else {
      plain_field(field);
    }
    if (at_line_end()) {
      fields.resize(count);
      break;
    }
    rest_.remove_prefix(1);  // The comma.
  }
  skip_line_end();
  return Read::record;
}

// Up to a comma or the end of the line, with the spaces around it taken off.
void CsvReader::plain_field(std::string& field) {
  std::size_t end = rest_.find_first_of(",\n");
  if (end == std::string_view::npos) end = rest_.size();
  std::string_view text = rest_.substr(0, end);
  if (end < rest_.size() && rest_[end] == '\n' && text.ends_with('\r')) {
    text.remove_suffix(1);
    --end;
  }
  rest_.remove_prefix(end);
  field = trimmed(text);
}

// With everything between the quotes as it is, line ends and spaces too. False where the window
// ends before the quote is closed.
bool CsvReader::quoted_field(std::string& field) {
  const std::int64_t opened = line_;
  field.clear();
  for (;;) {
    const std::size_t quote = rest_.find('"', 1);
    if (quote == std::string_view::npos) {
      if (!whole_) return false;
      fail(ErrorCode::invalid, "{} line {}: a quote is opened and never closed", file(), opened);
    }
    field += rest_.substr(1, quote - 1);
    rest_.remove_prefix(quote);
    if (!rest_.starts_with("\"\"")) break;
    field += '"';  // A doubled quote stands for one.
    rest_.remove_prefix(1);
  }
  rest_.remove_prefix(1);
  line_ += std::count(field.begin(), field.end(), '\n');
  if (!at_line_end() && rest_[0] != ',') {
    // A carriage return at the end of the window may be followed by its line feed.
    if (!whole_ && rest_ == "\r") return false;
    fail(ErrorCode::invalid, "{} line {}: there is text after a closing quote", file(), line_);
  }
  return true;
}

}  // namespace cohort::formats
