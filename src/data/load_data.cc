#include "data/load_data.h"

#include "base/names.h"
#include "data/sources/sources.h"

namespace cohort::data {
namespace {

/// A kind of data, as `[data] kind` names it. A program's own datasets have no name here.
struct Kind {
  const char* name;
  LoadedData (*load)(const DataOptions& options, std::uint64_t seed);
};

/// In the order in which messages list them.
constexpr Kind kKinds[] = {
    {"mnist", load_mnist},         {"csv", load_csv}, {"libsvm", load_libsvm}, {"text", load_text},
    {"generated", load_generated},
};

}  // namespace

std::vector<std::string> data_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

// A program's own datasets come first: the kind of a job that has them means nothing.
LoadedData load_data(const DataOptions& options, std::uint64_t seed) {
  if (options.own_train) return load_own_data(options, seed);
  check_known("data kind", options.kind, data_kinds());
  for (const Kind& kind : kKinds) {
    if (options.kind == kind.name) return kind.load(options, seed);
  }
  return {};  // check_known has thrown.
}

}  // namespace cohort::data
