// CSV files, and every field of theirs as a number.

#include "base/fail.h"
#include "formats/csv_reader.h"
#include "formats/raw_text.h"
#include "targets.h"

namespace cohort::fuzz {

void csv(Bytes input) {
  const FileOf file(input);
  formats::CsvReader reader(file.path());
  std::size_t bytes = 0;
  for (std::vector<std::string> fields; reader.next(fields);) {
    for (const std::string& field : fields) {
      (void)formats::parse_number(field);
      bytes += field.size();
    }
  }
  require(bytes <= input.size(), "fields have no more than the file");
}

Seeds csv_seeds() {
  return {"a,b,c\n1,2.5,x\n-3,4e2,y\n", "\xef\xbb\xbf\"7\",\"8\r\n,\"\"\",\" x\"\r\n\n 5 ,,y",
          "1\n"};
}

}  // namespace cohort::fuzz
