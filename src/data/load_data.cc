#include "data/load_data.h"

#include "base/nearest_name.h"
#include "data/csv.h"
#include "data/generated.h"
#include "data/libsvm.h"
#include "data/mnist.h"
#include "data/own_data.h"
#include "data/text.h"

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
