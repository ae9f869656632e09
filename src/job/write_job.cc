#include <fmt/format.h>
#include <toml++/toml.h>

#include <sstream>
#include <type_traits>

#include "base/names.h"
#include "collective/algorithms.h"
#include "compression/codec.h"
#include "gossip/topology.h"
#include "job/job_file.h"
#include "job/key_table.h"
#include "kinds/strategy_table.h"
#include "model/layers/layer.h"
#include "optimizer/learning_rate.h"
#include "optimizer/optimizer.h"
#include "transport/engine_table.h"

namespace cohort::job {
namespace {

std::string text_of(const std::vector<LayerOptions>& layers, const std::string& indent);

/// A scalar or a list of scalars as TOML writes it, such that reading it back gives the same value:
/// the shortest digits of a number that do so, with a point, since TOML tells 1 from 1.0.
template <class Value>
std::string text_of(const Value& value, const std::string&) {
  if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
    return fmt::format("[{}]", fmt::join(value, ", "));
  } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
    // TOML's integers are signed; a seed above their range comes back by the same cast.
    return fmt::format("{}", static_cast<std::int64_t>(value));
  } else if constexpr (std::is_same_v<Value, std::optional<double>> ||
                       std::is_same_v<Value, std::optional<bool>>) {
    return value ? text_of(*value, "") : "";
  } else if constexpr (std::is_same_v<Value, double>) {
    const std::string shortest = fmt::format("{}", value);
    return shortest.find_first_of(".en") == std::string::npos ? shortest + ".0" : shortest;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    std::ostringstream quoted;
    quoted << toml::toml_formatter{toml::value<std::string>(value), toml::format_flags::none};
    return quoted.str();
  } else {
    return fmt::format("{}", value);
  }
}

/// The value of a key as it stands behind its "=".
template <class Owner>
std::string text_of_key(const Key<Owner>& key, const Owner& owner) {
  return std::visit([&](auto get) { return text_of(value_of(get, owner), "  "); }, key.field);
}

/// One layer as an inline table, without the keys that have their default: most types read only two
/// or three of them, and must not be given others.
std::string text_of(const LayerOptions& layer, const std::string& indent) {
  const LayerOptions defaults;
  std::string text;
  for (const Key<LayerOptions>& key : layer_option_keys()) {
    const std::string value = std::visit(
        [&](auto get) { return text_of(value_of(get, layer), indent + "  "); }, key.field);
    if (value == text_of_key(key, defaults)) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key.path, value);
  }
  return "{ " + text + " }";
}

std::string text_of(const std::vector<LayerOptions>& layers, const std::string& indent) {
  if (layers.empty()) return "[]";
  std::string text = "[\n";
  for (const LayerOptions& layer : layers) text += indent + text_of(layer, indent) + ",\n";
  return text + indent.substr(2) + "]";
}

/// An empty value that is also the default says nothing to a reader. An empty one that is not the
/// default must be written: without it the default would come back.
bool says_nothing(const std::string& value, const std::string& preset) {
  return value == preset && (value.empty() || value == "\"\"" || value == "[]");
}

/// The text of a job, key by key; keys of three parts gather in the inline table of their middle:
///
///   train.batch           [train]
///   train.optimizer.kind  batch = 64
///   train.optimizer.lr    optimizer = { kind = "sgd", lr = 0.1 }
///
/// Keys of one section, and of one table, must come one after the other, as they do in job_keys().
class JobWriter {
 public:
  void add(const std::string& path, const std::string& value) {
    const std::size_t first = path.find('.');
    const std::size_t last = path.rfind('.');
    enter_section(path.substr(0, first));
    enter_table(first == last ? "" : path.substr(first + 1, last - first - 1));
    if (table_.empty()) {
      text_ += fmt::format("{} = {}\n", path.substr(last + 1), value);
    } else {
      table_text_ +=
          fmt::format("{}{} = {}", table_text_.empty() ? "" : ", ", path.substr(last + 1), value);
    }
  }

  void comment(const std::string& words) { text_ += "# " + words + "\n"; }

  std::string finish() {
    enter_table("");
    return text_;
  }

 private:
  void enter_section(const std::string& name) {
    if (name == section_) return;
    enter_table("");
    text_ += fmt::format("{}[{}]\n", section_.empty() ? "" : "\n", name);
    section_ = name;
  }

  void enter_table(const std::string& name) {
    if (name == table_) return;
    if (!table_.empty()) text_ += fmt::format("{} = {{ {} }}\n", table_, table_text_);
    table_ = name;
    table_text_.clear();
  }

  std::string text_;
  // Where the last key was; empty before the first, and outside of any inline table.
  std::string section_;
  std::string table_;
  // What is in that table so far. It is written when the next key is somewhere else.
  std::string table_text_;
};

// ---- the reference: tables of docs/job.md, which a test compares with what is printed here

/// One line of a Markdown table.
template <class Owner>
std::string reference_row(const Key<Owner>& key) {
  const std::string preset = text_of_key(key, Owner());
  std::string choices = one_of(key.limits.choices);
  if (!choices.empty()) choices = fmt::format(" It can be {}.", choices);
  return fmt::format("| `{}` | {} | {} | {}{} |\n", key.path, type_name(key),
                     preset.empty() ? "" : "`" + preset + "`", key.meaning, choices);
}

std::string yes_or_no(bool value) {
  return value ? "yes" : "no";
}

/// What kinds/strategy_table.h says of the ways to train: a row for each, with its traits as yes or
/// no.
std::string strategy_reference() {
  std::string text =
      "\nStrategies:\n\n| `strategy.kind` | | all make every step together | a loss stops all | "
      "work goes to whoever is free | servers | moves by exactly the job's steps | resumes to the "
      "byte | a loss changes nothing | keys it reads |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const kinds::StrategyWay& way : kinds::strategy_ways()) {
    const kinds::StrategyTraits& traits = way.traits;
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", way.kind,
                        way.key.empty() ? "" : fmt::format("`{} = \"{}\"`", way.key, way.value),
                        yes_or_no(traits.lockstep), yes_or_no(traits.loss_stops_all),
                        yes_or_no(traits.hands_out_work), yes_or_no(traits.uses_servers),
                        yes_or_no(traits.moves_exactly), yes_or_no(traits.resumes_to_the_byte),
                        yes_or_no(traits.loss_changes_nothing), fmt::join(way.keys, ", "));
  }
  return text +
         "\nWith `push = \"delta\"` workers of `sync` servers make steps alone between two "
         "pushes: not every step together, and a loss changes as much as in `averaging`.\n";
}

/// Rows with a name and words, and of some kinds with keys that not all of them read.
template <class Rows>
std::string table_of(const std::string& what, const Rows& rows) {
  constexpr bool kHasKeys = requires {
    rows.front().keys;
  };
  std::string text = fmt::format("\n{}:\n\n| name | |{}\n|---|---|{}\n", what,
                                 kHasKeys ? " keys it reads |" : "", kHasKeys ? "---|" : "");
  for (const auto& row : rows) {
    text += fmt::format("| `{}` | {} |", row.name, row.words);
    if constexpr (kHasKeys) text += fmt::format(" {} |", fmt::join(row.keys, ", "));
    text += "\n";
  }
  return text;
}

/// The tables of the rooms that know the kinds.
std::string kind_reference() {
  return table_of("Engines", transport::engine_table()) +
         table_of("All-reduce algorithms", collective::algorithm_table()) +
         table_of("Codecs", compression::codec_table()) +
         table_of("Topologies of gossip", gossip::topology_table()) +
         table_of("Optimizers", optimizer::optimizer_table()) +
         table_of("Schedules of the learning rate", optimizer::schedule_table());
}

}  // namespace

std::string to_toml(const Job& job) {
  const Job defaults;
  JobWriter writer;
  if (job.model.make) writer.comment("The model is the program's own.");
  if (job.data.own_train) writer.comment("The data is the program's own.");
  if (job.train.own_loss) writer.comment("The loss is the program's own.");
  for (const Key<Job>& key : job_keys()) {
    const std::string value = text_of_key(key, job);
    if (!says_nothing(value, text_of_key(key, defaults))) writer.add(key.path, value);
  }
  return writer.finish();
}

std::string key_reference() {
  const std::string head = "| key | type | default | meaning |\n|---|---|---|---|\n";
  std::string text = head;
  for (const Key<Job>& key : job_keys()) text += reference_row(key);
  text += "\nKeys of one entry of `model.layers`:\n\n" + head;
  for (const Key<LayerOptions>& key : layer_option_keys()) text += reference_row(key);
  text += "\nTypes of layers:\n\n| type | keys it reads |\n|---|---|\n";
  for (const std::string& type : model::layer_types()) {
    text += fmt::format("| `{}` | {} |\n", type, fmt::join(model::layer_keys(type), ", "));
  }
  return text + strategy_reference() + kind_reference();
}

}  // namespace cohort::job
