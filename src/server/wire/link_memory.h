#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "compression/codec.h"
#include "server/wire/message_bytes.h"

namespace cohort {

/// How what a codec remembers travels between a server and the worker that saves it, or brings it
/// back: the count of its floats and of its numbers, then both. In a `recall` the parameters that
/// the worker has follow, where the server keeps a copy of them (floats, to the end).

void write_codec_memory(std::vector<std::byte>& bytes, const CodecMemory& memory);

/// Takes one off the message. Throws Error(corrupt) where it ends too early.
CodecMemory take_codec_memory(MessageReader& message);

}  // namespace cohort
