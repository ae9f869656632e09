#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cohort {

/// The keys of a job file, as one table. Reading a file, `--set`, `--print-config`, the checks of
/// single values and the key list of docs/job.md all follow it, so a key that is added here is
/// added everywhere.

/// Where a key's value is kept in its owner; which alternative it is says the key's type.
template <class Owner>
using Field =
    std::variant<std::string& (*)(Owner&), std::int64_t& (*)(Owner&), std::uint64_t& (*)(Owner&),
                 double& (*)(Owner&), std::optional<double>& (*)(Owner&), bool& (*)(Owner&),
                 std::vector<std::int64_t>& (*)(Owner&), std::vector<LayerOptions>& (*)(Owner&)>;

/// What can be said about a value without knowing the other values.
struct Limits {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices;  ///< Empty: any string. Otherwise one of these or the default.
  bool plain_name = false;  ///< A string that is safe as the name of a file: no "/", no "..".
};

template <class Owner>
struct Key {
  std::string path;  ///< "train.optimizer.lr"; for layers only "kernel".
  Field<Owner> field;
  std::string meaning;
  Limits limits = {};
};

/// In the order in which they are printed; keys of one section stand together.
const std::vector<Key<Job>>& job_keys();

/// The keys of one entry of model.layers.
const std::vector<Key<LayerOptions>>& layer_option_keys();

/// Whether job_keys() has keys below `path`: "train", "train.optimizer".
bool is_section(const std::string& path);

/// Throws Error(invalid) where the value of `key` in `owner` is outside its limits. `name` is what
/// the message calls the key.
void check_limits(const Key<Job>& key, const Job& owner, const std::string& name);
void check_limits(const Key<LayerOptions>& key, const LayerOptions& owner, const std::string& name);

/// The type of a key in words: "a whole number".
std::string type_name(const Key<Job>& key);
std::string type_name(const Key<LayerOptions>& key);

/// The value of a key, read through the same reference by which it is written.
template <class Get, class Owner>
const auto& value_of(Get get, const Owner& owner) {
  return get(const_cast<Owner&>(owner));
}

}  // namespace cohort
