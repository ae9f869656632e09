#include "data/csv_reader.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "data/parse_number.h"

namespace cohort {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

CsvReader::CsvReader(std::string file, std::string_view text)
    : file_(std::move(file)), rest_(text) {
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

bool CsvReader::at_line_end() const {
  return rest_.empty() || rest_[0] == '\n' || rest_.starts_with("\r\n");
}

void CsvReader::skip_line_end() {
  if (rest_.empty()) return;
  rest_.remove_prefix(rest_[0] == '\r' ? 2 : 1);
  ++line_;
}

bool CsvReader::next(std::vector<std::string>& fields) {
  while (!rest_.empty() && at_line_end()) skip_line_end();
  if (rest_.empty()) return false;
  record_line_ = line_;
  fields.clear();
  for (;;) {
    fields.push_back(rest_.starts_with('"') ? quoted_field() : plain_field());
    if (at_line_end()) break;
    rest_.remove_prefix(1);  // The comma.
  }
  skip_line_end();
  return true;
}

std::string CsvReader::plain_field() {
  std::size_t end = rest_.find_first_of(",\n");
  if (end == std::string_view::npos) end = rest_.size();
  std::string_view field = rest_.substr(0, end);
  if (end < rest_.size() && rest_[end] == '\n' && field.ends_with('\r')) {
    field.remove_suffix(1);
    --end;
  }
  rest_.remove_prefix(end);
  return std::string(trimmed(field));
}

std::string CsvReader::quoted_field() {
  const std::int64_t opened = line_;
  std::string field;
  for (;;) {
    const std::size_t quote = rest_.find('"', 1);
    if (quote == std::string_view::npos) {
      fail(ErrorCode::invalid, "{} line {}: a quote is opened and never closed", file_, opened);
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
    fail(ErrorCode::invalid, "{} line {}: there is text after a closing quote", file_, line_);
  }
  return field;
}

}  // namespace cohort
