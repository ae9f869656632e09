#include "data/load_data.h"

#include "base/nearest_name.h"
#include "data/sources/csv.h"
#include "data/sources/generated.h"
#include "data/sources/libsvm.h"
#include "data/sources/mnist.h"
#include "data/sources/own_data.h"
#include "data/sources/text.h"

namespace cohort {
namespace {

struct Kind {
  const char* name;
  LoadedData (*load)(const DataOptions& options, std::uint64_t seed);
};

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

LoadedData load_data(const DataOptions& options, std::uint64_t seed) {
  if (options.own_train) return load_own_data(options, seed);
  check_known("data kind", options.kind, data_kinds());
  for (const Kind& kind : kKinds) {
    if (options.kind == kind.name) return kind.load(options, seed);
  }
  return {};  // check_known has thrown.
}

}  // namespace cohort
