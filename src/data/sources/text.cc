#include "data/sources/sources.h"

#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/files.h"
#include "data/datasets.h"

namespace cohort::data {
namespace {

/// A text as samples, which are cut out of it when they are gathered; they do not overlap.
/// Sample i is the `context` bytes from i * context on; its target the same, one byte later.
class TextSamples : public Dataset {
 public:
  TextSamples(std::string text, const Vocabulary& vocabulary, std::int64_t context)
      : text_(std::move(text)), vocabulary_(vocabulary), context_(context) {}

  std::int64_t size() const override {
    return (static_cast<std::int64_t>(text_.size()) - 1) / context_;
  }

  bool in_memory() const override { return true; }

  Batch gather(std::span<const std::int64_t> indices) const override {
    Batch batch;
    gather_into(indices, batch);
    return batch;
  }

  void gather_into(std::span<const std::int64_t> indices, Batch& into) const override {
    check_indices(indices, size());
    fit_buffer(into.input, indices.size(), {context_}, torch::kInt64);
    fit_buffer(into.target, indices.size(), {context_}, torch::kInt64);
    auto* input = into.input.data_ptr<std::int64_t>();
    auto* target = into.target.data_ptr<std::int64_t>();
    for (const std::int64_t index : indices) {
      const char* from = text_.data() + index * context_;
      for (std::int64_t i = 0; i < context_; ++i) {
        *input++ = vocabulary_.id(from[i]);
        *target++ = vocabulary_.id(from[i + 1]);
      }
    }
  }

 private:
  std::string text_;
  Vocabulary vocabulary_;
  std::int64_t context_;
};

/// The two texts, still as they are in the files.
struct Parts {
  std::string train;
  std::string validation;
  std::string validation_source;
};

/// Two files, or one whose end validates. It is cut once, at its end, and not by drawn samples:
/// neighbouring stretches of a text know too much of each other.
Parts read_parts(const DataOptions& options) {
  Parts parts;
  parts.train = read_file(options.path);
  if (parts.train.empty()) fail(ErrorCode::invalid, "{} is empty", options.path);
  if (!options.validation_path.empty()) {
    parts.validation = read_file(options.validation_path);
    parts.validation_source = options.validation_path;
    return parts;
  }
  check_validation_fraction(options.validation_fraction);
  const auto length = static_cast<double>(parts.train.size());
  const auto kept = static_cast<std::size_t>(length * (1 - options.validation_fraction));
  parts.validation = parts.train.substr(kept);
  parts.train.resize(kept);
  parts.validation_source = fmt::format("the last {} of {} (validation_fraction)",
                                        options.validation_fraction, options.path);
  return parts;
}

/// A sample needs `context` characters and the one after them.
void check_length(const std::string& source, const std::string& text, std::int64_t context) {
  if (static_cast<std::int64_t>(text.size()) > context) return;
  fail(ErrorCode::invalid, "{} has {} characters; with context = {} at least {} are needed", source,
       text.size(), context, context + 1);
}

}  // namespace

// The vocabulary is that of both texts, so that every character has an id; where an unknown one is
// accepted, only of the training text.
LoadedData load_text(const DataOptions& options, std::uint64_t) {
  if (options.path.empty()) fail(ErrorCode::invalid, "text data needs a path: the file to read");
  if (options.context < 1) {
    fail(ErrorCode::invalid, "context is {}; it must be at least 1", options.context);
  }
  Parts parts = read_parts(options);
  const bool cut = options.validation_path.empty();
  check_length(cut ? "the training part of " + options.path : options.path, parts.train,
               options.context);
  check_length(parts.validation_source, parts.validation, options.context);
  const bool unknown = accepts_unknown(options);
  const Vocabulary vocabulary(unknown ? parts.train : parts.train + parts.validation, unknown);

  LoadedData data;
  data.spec = {.input_shape = {options.context},
               .tokens = true,
               .vocabulary = vocabulary.size(),
               .classes = true,
               .outputs = vocabulary.size()};
  data.preprocessing = {TextInput{vocabulary, options.context}, Targets::named({}, false, false)};
  data.train = std::make_shared<TextSamples>(std::move(parts.train), vocabulary, options.context);
  data.validation =
      std::make_shared<TextSamples>(std::move(parts.validation), vocabulary, options.context);
  return data;
}

}  // namespace cohort::data
