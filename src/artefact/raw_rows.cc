#include "artefact/raw_rows.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/excerpt.h"
#include "base/fail.h"
#include "data/sources/parse_number.h"

namespace cohort {
namespace {

using Fields = std::vector<std::string>;
using Numbers = std::vector<double>;

const std::string kNoFile;

void check_count(const RowPlace& place, std::size_t found, std::size_t wanted, const char* what) {
  if (found == wanted) return;
  fail(ErrorCode::invalid, "{}: it has {} {}, expected {}", place.text(), found, what, wanted);
}

float checked_float(double number, const RowPlace& place) {
  if (std::abs(number) <= std::numeric_limits<float>::max()) return static_cast<float>(number);
  fail(ErrorCode::invalid, "{}: {} is not a number that a float can be", place.text(), number);
}

/// One overload for each kind of input and of row: what a row of that kind becomes, at `input`.
void convert(const TableInput& table, const Fields& row, const RowPlace& place, float* input) {
  check_count(place, row.size(), table.width(), "fields");
  std::vector<float> raw;
  for (std::size_t i = 0; i < row.size(); ++i) raw.push_back(table.number(i, row[i], place));
  table.standardise(raw, input);
}

void convert(const TableInput& table, const Numbers& row, const RowPlace& place, float* input) {
  check_count(place, row.size(), table.width(), "numbers");
  std::vector<float> raw;
  for (const double number : row) raw.push_back(checked_float(number, place));
  table.standardise(raw, input);
}

void convert(const SparseInput& sparse, const Fields& row, const RowPlace& place, float* input) {
  check_count(place, row.size(), 1, "fields");
  SparseRow entries;
  read_sparse_row(row[0], place, entries);
  sparse.expand(entries, place, input);
}

void convert(const SparseInput& sparse, const Numbers& row, const RowPlace& place, float* input) {
  check_count(place, row.size(), static_cast<std::size_t>(sparse.width), "numbers");
  for (const double number : row) *input++ = checked_float(number, place);
}

void convert(const ImageInput& image, const Numbers& row, const RowPlace& place, float* input) {
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

void convert(const PlainInput&, const Numbers& row, const RowPlace& place, float* input) {
  for (const double number : row) *input++ = checked_float(number, place);
}

Numbers numbers_of(const Fields& row, const RowPlace& place) {
  Numbers numbers;
  for (const std::string& field : row) {
    const auto number = parse_number(field);
    if (!number) {
      fail(ErrorCode::invalid, "{}: \"{}\" is not a number", place.text(), excerpt(field));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

/// Other kinds' numbers may be written as text too.
template <class Input>
void convert(const Input& kind, const Fields& row, const RowPlace& place, float* input) {
  convert(kind, numbers_of(row, place), place, input);
}

/// Ids of tokens that were numbers from the start. A model looks things up by them, so none may be
/// beyond those it has.
void convert_tokens(const Numbers& row, const RowPlace& place, std::int64_t vocabulary,
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

void convert_tokens(const Fields& row, const RowPlace& place, std::int64_t vocabulary,
                    std::int64_t* input) {
  convert_tokens(numbers_of(row, place), place, vocabulary, input);
}

void convert_text(const TextInput& text, const Fields& row, const RowPlace& place,
                  std::int64_t* input) {
  check_count(place, row.size(), 1, "fields");
  check_count(place, row[0].size(), static_cast<std::size_t>(text.context), "characters");
  text.vocabulary.check(row[0], fmt::format("row {}:", place.line));
  for (const char c : row[0]) *input++ = text.vocabulary.id(c);
}

void convert_text(const TextInput&, const Numbers&, const RowPlace& place, std::int64_t*) {
  fail(ErrorCode::invalid, "{}: the model takes text, not numbers", place.text());
}

template <class Row>
void convert_row(const Preprocessing& preprocessing, const DataSpec& spec, const Row& row,
                 const RowPlace& place, torch::Tensor input) {
  if (const auto* text = std::get_if<TextInput>(&preprocessing.input)) {
    return convert_text(*text, row, place, input.data_ptr<std::int64_t>());
  }
  if (std::holds_alternative<PlainInput>(preprocessing.input)) {
    check_count(place, row.size(), static_cast<std::size_t>(input.numel()), "numbers");
    if (spec.tokens) {
      return convert_tokens(row, place, spec.vocabulary, input.data_ptr<std::int64_t>());
    }
  }
  std::visit(
      [&](const auto& kind) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(kind)>, TextInput>) {
          convert(kind, row, place, input.data_ptr<float>());
        }
      },
      preprocessing.input);
}

template <class Row>
torch::Tensor all_input_of(const Preprocessing& preprocessing, const DataSpec& spec,
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

torch::Tensor input_of(const Preprocessing& preprocessing, const DataSpec& spec,
                       const std::vector<Fields>& rows) {
  return all_input_of(preprocessing, spec, rows);
}

torch::Tensor input_of(const Preprocessing& preprocessing, const DataSpec& spec,
                       const std::vector<Numbers>& rows) {
  return all_input_of(preprocessing, spec, rows);
}

}  // namespace cohort
