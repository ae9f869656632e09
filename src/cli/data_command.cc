#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/fail.h"
#include "base/names.h"
#include "cli/command.h"
#include "data/sources/mnist_files.h"

namespace cohort::cli {
namespace {

/// The words of `cohort data`.
struct DataWords {
  std::string name;
  std::string folder = "data/mnist";
};

void configure_data(CLI::App& app, DataWords& words) {
  app.add_option("NAME", words.name, "mnist: the 70,000 handwritten digits");
  app.add_option("--path", words.folder, "The folder it is put in; what is there and right is kept")
      ->capture_default_str();
  app.footer("Examples:\n  cohort data mnist\n  cohort data mnist --path /srv/mnist");
}

/// There is one dataset so far. Files that are there and right are kept, so this can be repeated.
int run_data(const DataWords& words) {
  if (words.name.empty()) {
    fail(ErrorCode::invalid, "data needs the name of a dataset, as in: cohort data mnist");
  }
  check_known("the dataset", words.name, {"mnist"});
  data::fetch_mnist(words.folder);
  fmt::print("The digits are in {}.\n", words.folder);
  return 0;
}

}  // namespace

Command data_command() {
  const auto words = std::make_shared<DataWords>();
  return {"data", "Fetch the data that the examples use",
          [words](CLI::App& app) { configure_data(app, *words); },
          [words] { return run_data(*words); }};
}

}  // namespace cohort::cli
