#include "os/command_line.h"

#include <utility>

#include "base/files.h"

namespace cohort {

std::vector<std::string> command_line() {
  std::vector<std::string> words;
  std::string word;
  for (const char c : read_kernel_file("/proc/self/cmdline")) {
    if (c != '\0') {
      word += c;
    } else {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

}  // namespace cohort
