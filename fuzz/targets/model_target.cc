// Models on their way to and from parameter servers, whole and in parts, and what codecs remember.
// The first byte says which of the four it is; three more keep the rest where numbers can stand.

#include "base/fail.h"
#include "server/wire/message_bytes.h"
#include "server/wire/model_message.h"
#include "targets.h"

namespace cohort::fuzz {
namespace {

enum class ModelKind : unsigned { message, part, shape, codec_memory };
constexpr std::size_t kModelHead = 8;

std::string model_seed(ModelKind kind, const std::vector<std::byte>& bytes) {
  std::string text(kModelHead, '\0');
  text[0] = static_cast<char>(kind);
  return text.append(text_of(bytes));
}

}  // namespace

void model(Bytes input) {
  if (input.size() < kModelHead) return;
  const auto kind = static_cast<ModelKind>(std::to_integer<unsigned>(input[0]) % 4);
  const Bytes bytes = input.subspan(kModelHead);
  if (kind == ModelKind::message) {
    server::check_shape(server::read_model_message(bytes).shape);
  } else if (kind == ModelKind::part) {
    const server::ModelPart part = server::read_model_part(bytes);
    require(part.floats.empty() || part.floats.size() == part.count, "a part has what it says");
  } else if (kind == ModelKind::shape) {
    server::check_shape(server::read_shape(bytes));
  } else {
    server::MessageReader reader(bytes);
    const auto memory = server::take_codec_memory(reader);
    require(memory.floats.size() + memory.numbers.size() <= bytes.size(), "no more than came");
  }
}

Seeds model_seeds() {
  server::ModelMessage message{.version = 3, .slots = 1, .work = {.next = 9, .parts = 2}};
  message.work.again = {{.step = 1, .part = 1}};
  message.shape = {.dense = 6, .tables = {{.first_row = 2, .end_row = 4, .width = 3}}};
  message.shape.matrices = {{.offset = 0, .rows = 2, .columns = 3}};
  std::vector<std::byte> whole, part, shape, memory;
  server::write_model(whole, message);
  whole.resize(whole.size() + 2 * sizeof(float));
  server::write_model_part(part, {.begin = 2, .count = 3});
  part.resize(part.size() + 3 * sizeof(float));
  server::write_shape(shape, message.shape);
  server::write_codec_memory(memory, {.floats = {1, 2}, .numbers = {3}});
  return {model_seed(ModelKind::message, whole), model_seed(ModelKind::part, part),
          model_seed(ModelKind::shape, shape), model_seed(ModelKind::codec_memory, memory)};
}

}  // namespace cohort::fuzz
