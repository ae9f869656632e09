#include "cli/machine_facts.h"

#include <cstdlib>
#include <vector>

namespace cohort::cli {
namespace {

/// Views of `text`, without the newlines.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The name of the implementation that a library file belongs to, by its folder or its own name.
std::string implementation_of(std::string_view file) {
  if (contains(file, "openblas")) return "OpenBLAS";
  if (contains(file, "libmkl_") || contains(file, "/mkl/")) return "MKL";
  if (contains(file, "blis")) return "BLIS";
  if (contains(file, "atlas")) return "ATLAS";
  return "";
}

}  // namespace

std::string bracketed(std::string_view text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return "";
  return std::string(text.substr(open + 1, close - open - 1));
}

std::optional<std::int64_t> meminfo_bytes(std::string_view text, std::string_view name) {
  for (const std::string_view line : lines_of(text)) {
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    // The kernel says kB and means KiB.
    return std::atoll(std::string(line.substr(name.size() + 1)).c_str()) * 1024;
  }
  return std::nullopt;
}

std::optional<double> cpu_limit(std::string_view cpu_max) {
  const std::string text(cpu_max);
  char* rest = nullptr;
  const double quota = std::strtod(text.c_str(), &rest);
  const double period = std::strtod(rest, nullptr);
  // "max" is no number: nothing was read.
  if (rest == text.c_str() || period <= 0) return std::nullopt;
  return quota / period;
}

BlasLibrary blas_library(std::string_view proc_maps) {
  BlasLibrary found;
  for (const std::string_view line : lines_of(proc_maps)) {
    const std::size_t start = line.find('/');
    if (start == std::string_view::npos) continue;
    const std::string file(line.substr(start));
    const std::string name = implementation_of(file);
    // Debian's libblas.so.3 is whichever implementation its alternatives point to, and the one
    // that LibTorch calls, whatever else is loaded.
    if (contains(file, "/libblas.so"))
      return {file, name.empty() ? "reference BLAS" : name, !name.empty()};
    if (!name.empty() && found.file.empty()) found = {file, name, true};
  }
  return found;
}

}  // namespace cohort::cli
