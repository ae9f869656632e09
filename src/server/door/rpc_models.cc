#include "base/fail.h"
#include "server/door/server_doors.h"
#include "server/wire/message_bytes.h"
#include "server/wire/model_message.h"

// What the gRPC door does with whole models: the first one, which comes in parts; those that workers
// read for a checkpoint, in parts too; and what codecs remember.

namespace cohort::server {

void RpcDoor::take_first_model(rpc::RpcCall& call, const Request& request) {
  if (request.kind == RequestKind::initialise) {
    MessageReader reader(request.rest);
    const auto total = reader.take<std::uint64_t>();
    desk_.expect_model(request.header.worker, take_model_head(reader), total);
  } else {
    desk_.take_part(request.header.worker, read_model_part(request.rest));
  }
  reply(call, reply_bytes({}));
}

/// The desk's thread only copies the floats; they travel, in parts, while it goes on.
void RpcDoor::take_read(rpc::RpcCall& call, const Request& request) {
  std::span<float> floats = memory_for_model(request);
  auto& copy = model_copies_[static_cast<std::size_t>(request.header.worker)];
  copy.reset();
  if (floats.empty()) {
    copy = new_copy();
    copy->resize(desk_.look().model_floats);
    floats = *copy;
  }
  const ModelMessage model = desk_.read(floats);
  rpc::Bytes bytes = reply_bytes({.version = model.version});
  write_model(bytes, model);
  reply(call, std::move(bytes));
}

/// With the last part the copy is no longer its worker's, and can serve the next who reads.
void RpcDoor::take_read_part(rpc::RpcCall& call, const Request& request) {
  const ModelPart part = read_model_part(request.rest);
  auto& copy = model_copies_[static_cast<std::size_t>(request.header.worker)];
  if (!copy || part.begin > copy->size() || part.count > copy->size() - part.begin) {
    fail(ErrorCode::invalid,
         "worker {} wants {} floats of a model from number {} on; it reads a model of {}",
         request.header.worker, part.count, part.begin, copy ? copy->size() : 0);
  }
  const auto head = std::make_shared<const rpc::Bytes>(reply_bytes({}));
  const auto floats = std::span<const float>(*copy).subspan(part.begin, part.count);
  const bool last = part.begin + part.count == copy->size();
  const std::shared_ptr<Floats> kept = copy;
  if (last) spare_copy_ = std::move(copy);
  call.reply({*head, std::as_bytes(floats)}, [head, kept] {});
}

void RpcDoor::take_remember(rpc::RpcCall& call, int worker) {
  rpc::Bytes bytes = reply_bytes({});
  write_codec_memory(bytes, desk_.codec_memory(worker));
  reply(call, std::move(bytes));
}

/// A worker whose memory is shared has its parameters itself; of others the server keeps a copy,
/// which must be what the worker has.
void RpcDoor::take_recall(rpc::RpcCall& call, const Request& request) {
  MessageReader reader(request.rest);
  const compression::CodecMemory memory = take_codec_memory(reader);
  const auto has = reader.take_all<float>(reader.rest().size() / sizeof(float));
  auto& copy = copies_[static_cast<std::size_t>(request.header.worker)];
  if (!has.empty() && (!compressed_ || has.size() != desk_.shape().dense)) {
    fail(ErrorCode::invalid, "worker {} says that it has {} parameters of this server's {}",
         request.header.worker, has.size(), desk_.shape().dense);
  }
  desk_.recall_codec(request.header.worker, memory);
  if (!has.empty()) copy.assign(has.begin(), has.end());
  reply(call, reply_bytes({}));
}

/// Memory that nobody reads any more, gRPC included.
std::shared_ptr<RpcDoor::Floats> RpcDoor::new_copy() {
  const bool is_free = spare_copy_ && spare_copy_.use_count() == 1;
  return is_free ? std::move(spare_copy_) : std::make_shared<Floats>();
}

/// Empty where the reader gives no memory for it.
std::span<float> RpcDoor::memory_for_model(const Request& request) {
  if (request.rest.empty()) return {};
  const auto number = MessageReader(request.rest).take<std::uint64_t>();
  if (number != model_number_ || request.header.worker != model_reader_) {
    model_memory_ = memory_.take_memory(request.header.worker, number);
    model_number_ = number;
    model_reader_ = request.header.worker;
  }
  return {reinterpret_cast<float*>(model_memory_.data()), model_memory_.size() / sizeof(float)};
}

}  // namespace cohort::server
