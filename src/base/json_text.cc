#include "base/json_text.h"

namespace cohort {

bool nests_at_most(std::string_view text, int depth) {
  int deep = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\') ++at;
      }
    } else if (c == '[' || c == '{') {
      if (++deep > depth) return false;
    } else if (c == ']' || c == '}') {
      --deep;
    }
  }
  return true;
}

}  // namespace cohort
