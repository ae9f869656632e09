#pragma once

#include <cohort/job.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cohort::job {

/// The keys of a job file, as one table (job_keys.cc). Everything that is done with a key follows
/// its row, so a key that is added there is added everywhere:
///
///   reading (read_job.cc)   file or --set  ->  TOML  ->  the row of each key, or the nearest
///                           ->  its field in Job is written  ->  its limits are checked
///   writing (write_job.cc)  Job  ->  the rows in their order  ->  the text of each field
///   key_reference() (same)  the rows  ->  the key list of docs/job.md
///
/// A row knows where its value is by a function from the owner to a reference of the member. The
/// type of that reference is the type of the key: what TOML must have there, how it is written, and
/// how the type is called in messages all follow from it.

/// Where a key's value is kept in its owner (a Job, or one of its layers); which alternative it is
/// says the key's type.
template <class Owner>
using Field =
    std::variant<std::string& (*)(Owner&), std::int64_t& (*)(Owner&), std::uint64_t& (*)(Owner&),
                 double& (*)(Owner&), std::optional<double>& (*)(Owner&), bool& (*)(Owner&),
                 std::optional<bool>& (*)(Owner&), std::vector<std::int64_t>& (*)(Owner&),
                 std::vector<LayerOptions>& (*)(Owner&)>;

/// What can be said about a value without knowing the other values.
struct Limits {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices;  ///< Empty: any string. Otherwise one of these or the default.
  bool plain_name = false;  ///< A string that is safe as the name of a file: no "/", no "..".
};

/// One row of the table.
template <class Owner>
struct Key {
  std::string path;  ///< "train.optimizer.lr"; for layers only "kernel".
  Field<Owner> field;
  std::string meaning;  ///< A sentence for docs/job.md.
  Limits limits = {};
};

/// In the order in which they are printed; keys of one section stand together.
const std::vector<Key<Job>>& job_keys();

/// The keys of one entry of model.layers.
const std::vector<Key<LayerOptions>>& layer_option_keys();

/// Whether job_keys() has keys below `path`: "train", "train.optimizer".
bool is_section(const std::string& path);

/// The known key (or section) that a user who wrote `path` may have meant; empty where there is
/// none. A key of the same last name in another place is meant rather than one that is spelt alike:
/// for "train.lr" that is "train.optimizer.lr". Where several have that name, the only one in the
/// same section wins, otherwise the one with the smallest edit distance. Where none has, the
/// nearest of all keys by edit distance. Nobody is meant who differs in more than half of what was
/// written. Sections are compared by their spelling only.
std::string nearest_key(const std::string& path, bool section);

/// Throws Error(invalid) where the value of `key` in `owner` is outside its limits. `name` is what
/// the message calls the key.
void check_limits(const Key<Job>& key, const Job& owner, const std::string& name);
void check_limits(const Key<LayerOptions>& key, const LayerOptions& owner, const std::string& name);

/// The type of a key in words: "a whole number".
std::string type_name(const Key<Job>& key);
std::string type_name(const Key<LayerOptions>& key);

/// The value of a key, read through the same reference by which it is written. Nothing is written:
/// the cast only spares the table a second function for every key.
template <class Get, class Owner>
const auto& value_of(Get get, const Owner& owner) {
  return get(const_cast<Owner&>(owner));
}

}  // namespace cohort::job
