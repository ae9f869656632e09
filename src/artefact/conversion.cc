#include "artefact/conversion.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/fail.h"

namespace cohort::artefact {
namespace {

using Fields = std::vector<std::string>;
using Numbers = std::vector<double>;

/// Of a RowPlace whose row comes out of a program.
const std::string kNoFile;

/// `what` a row consists of, for the message.
void check_count(const formats::RowPlace& place, std::size_t found, std::size_t wanted,
                 const char* what) {
  if (found == wanted) return;
  fail(ErrorCode::invalid, "{}: it has {} {}, expected {}", place.text(), found, what, wanted);
}

/// Also refuses what is not a number: then no comparison holds.
float checked_float(double number, const formats::RowPlace& place) {
  if (std::abs(number) <= std::numeric_limits<float>::max()) return static_cast<float>(number);
  fail(ErrorCode::invalid, "{}: {} is not a number that a float can be", place.text(), number);
}

// convert(): one overload for each kind of input and of row, which writes what the row becomes to
// `input`. Text and tokens are ids and not floats, and have functions of their own below.
void convert(const data::TableInput& table, const Fields& row, const formats::RowPlace& place,
             float* input) {
  check_count(place, row.size(), table.width(), "fields");
  std::vector<float> raw;
  for (std::size_t i = 0; i < row.size(); ++i) raw.push_back(table.number(i, row[i], place));
  table.standardise(raw, input);
}

void convert(const data::TableInput& table, const Numbers& row, const formats::RowPlace& place,
             float* input) {
  check_count(place, row.size(), table.width(), "numbers");
  std::vector<float> raw;
  for (const double number : row) raw.push_back(checked_float(number, place));
  table.standardise(raw, input);
}

void convert(const data::SparseInput& sparse, const Fields& row, const formats::RowPlace& place,
             float* input) {
  check_count(place, row.size(), 1, "fields");
  formats::SparseRow entries;
  formats::read_sparse_row(row[0], place, entries);
  sparse.expand(entries, place, input);
}

void convert(const data::SparseInput& sparse, const Numbers& row, const formats::RowPlace& place,
             float* input) {
  check_count(place, row.size(), static_cast<std::size_t>(sparse.width), "numbers");
  for (const double number : row) *input++ = checked_float(number, place);
}

void convert(const data::ImageInput& image, const Numbers& row, const formats::RowPlace& place,
             float* input) {
  std::size_t pixels = 1;
  for (const std::int64_t side : image.shape) pixels *= static_cast<std::size_t>(side);
  check_count(place, row.size(), pixels, "pixels");
  std::vector<std::uint8_t> bytes;
  for (const double number : row) {
    if (!(number >= 0 && number <= 255) || number != std::floor(number)) {
      fail(ErrorCode::invalid, "{}: {} is no pixel; they are whole numbers from 0 to 255",
           place.text(), number);
    }
    bytes.push_back(static_cast<std::uint8_t>(number));
  }
  image.scale(bytes.data(), input, bytes.size());
}

void convert(const data::PlainInput&, const Numbers& row, const formats::RowPlace& place,
             float* input) {
  for (const double number : row) *input++ = checked_float(number, place);
}

/// Fields that must all be numbers, as parse_number() reads them.
Numbers numbers_of(const Fields& row, const formats::RowPlace& place) {
  Numbers numbers;
  for (const std::string& field : row) {
    const auto number = formats::parse_number(field);
    if (!number) {
      fail(ErrorCode::invalid, "{}: \"{}\" is not a number", place.text(), excerpt(field));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

/// Where nothing above takes text, the fields are numbers that are written as text.
template <class Input>
void convert(const Input& kind, const Fields& row, const formats::RowPlace& place, float* input) {
  convert(kind, numbers_of(row, place), place, input);
}

/// Ids of tokens that were numbers from the start. A model looks things up by them, so none may be
/// beyond those it has.
void convert_tokens(const Numbers& row, const formats::RowPlace& place, std::int64_t vocabulary,
                    std::int64_t* input) {
  for (const double number : row) {
    if (!(number >= 0 && number < static_cast<double>(vocabulary)) ||
        number != std::floor(number)) {
      fail(ErrorCode::invalid, "{}: {} is no token; they are whole numbers from 0 to {}",
           place.text(), number, vocabulary - 1);
    }
    *input++ = static_cast<std::int64_t>(number);
  }
}

void convert_tokens(const Fields& row, const formats::RowPlace& place, std::int64_t vocabulary,
                    std::int64_t* input) {
  convert_tokens(numbers_of(row, place), place, vocabulary, input);
}

/// Text must be exactly as long as what the model sees: it has one input for each place.
void convert_text(const data::TextInput& text, const Fields& row, const formats::RowPlace& place,
                  std::int64_t* input) {
  check_count(place, row.size(), 1, "fields");
  check_count(place, row[0].size(), static_cast<std::size_t>(text.context), "characters");
  text.vocabulary.check(row[0], fmt::format("row {}:", place.line));
  for (const char c : row[0]) *input++ = text.vocabulary.id(c);
}

void convert_text(const data::TextInput&, const Numbers&, const formats::RowPlace& place,
                  std::int64_t*) {
  fail(ErrorCode::invalid, "{}: the model takes text, not numbers", place.text());
}

/// Chooses among all of these by what the data was; `input` is the row's place in the batch. A row
/// is refused by its number, and for what is wrong with it: who scores a million rows must find the
/// one that is not as the others. Nothing is guessed: a missing field, one too many, a pixel of
/// 255.5 are errors, since a model answers to any numbers whatever.
template <class Row>
void convert_row(const data::Preprocessing& preprocessing, const tensor::DataSpec& spec,
                 const Row& row, const formats::RowPlace& place, torch::Tensor input) {
  if (const auto* text = std::get_if<data::TextInput>(&preprocessing.input)) {
    return convert_text(*text, row, place, input.data_ptr<std::int64_t>());
  }
  if (std::holds_alternative<data::PlainInput>(preprocessing.input)) {
    check_count(place, row.size(), static_cast<std::size_t>(input.numel()), "numbers");
    if (spec.tokens) {
      return convert_tokens(row, place, spec.vocabulary, input.data_ptr<std::int64_t>());
    }
  }
  std::visit(
      [&](const auto& kind) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(kind)>, data::TextInput>) {
          convert(kind, row, place, input.data_ptr<float>());
        }
      },
      preprocessing.input);
}

/// All rows into one tensor, each at its place. Its size follows from the model, not from the rows.
template <class Row>
torch::Tensor all_input_of(const data::Preprocessing& preprocessing, const tensor::DataSpec& spec,
                           const std::vector<Row>& rows) {
  std::vector<std::int64_t> shape = {static_cast<std::int64_t>(rows.size())};
  shape.insert(shape.end(), spec.input_shape.begin(), spec.input_shape.end());
  torch::Tensor result = torch::empty(shape, spec.tokens ? torch::kInt64 : torch::kFloat32);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    convert_row(preprocessing, spec, rows[i], {kNoFile, at + 1}, result[at]);
  }
  return result;
}

}  // namespace

torch::Tensor input_of(const data::Preprocessing& preprocessing, const tensor::DataSpec& spec,
                       const std::vector<Fields>& rows) {
  return all_input_of(preprocessing, spec, rows);
}

torch::Tensor input_of(const data::Preprocessing& preprocessing, const tensor::DataSpec& spec,
                       const std::vector<Numbers>& rows) {
  return all_input_of(preprocessing, spec, rows);
}

// A model that predicts one value may leave out the dimension of the outputs.
// From a model's numbers to what a user is told. Of text (three dimensions) it is the output at the
// last place that counts: what comes next. Scores are shares that add up to 1; which class is the
// best is decided before they are rounded.
std::vector<Prediction> describe_output(const torch::Tensor& output, std::int64_t outputs,
                                        const std::vector<std::string>& class_names) {
  const torch::NoGradGuard no_grad;
  torch::Tensor rows = output.dim() == 3 ? output.select(1, output.size(1) - 1) : output;
  if (rows.dim() == 1 && outputs == 1) rows = rows.unsqueeze(1);
  if (rows.dim() != 2 || rows.size(1) != outputs) {
    fail(ErrorCode::invalid,
         "the model's output has the shape [{}], but there are {} {} to predict",
         fmt::join(output.sizes(), ", "), outputs, class_names.empty() ? "values" : "classes");
  }
  // Of the output itself, as accuracy is counted: the softmax may round two of them to one.
  const torch::Tensor best = rows.argmax(1).contiguous();
  if (!class_names.empty()) rows = torch::softmax(rows, 1);
  rows = rows.to(torch::kFloat32).contiguous();
  std::vector<Prediction> predictions(static_cast<std::size_t>(rows.size(0)));
  const float* from = rows.data_ptr<float>();
  for (std::size_t i = 0; i < predictions.size(); ++i, from += outputs) {
    Prediction& prediction = predictions[i];
    if (class_names.empty()) {
      prediction.values.assign(from, from + outputs);
      continue;
    }
    prediction.scores.assign(from, from + outputs);
    prediction.class_id = best.data_ptr<std::int64_t>()[i];
    prediction.class_name = class_names[static_cast<std::size_t>(prediction.class_id)];
  }
  return predictions;
}

}  // namespace cohort::artefact
