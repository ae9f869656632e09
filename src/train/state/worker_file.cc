#include "train/state/worker_file.h"

#include <algorithm>

#include "base/fail.h"
#include "optimizer/optimizer.h"
#include "train/state/checkpoint_text.h"

namespace cohort::training {
namespace {

constexpr const char* kText = "state";

/// The names in the file of one of a worker's memories, which its strategy understands.
struct MemoryNames {
  std::string meaning;  ///< In the metadata.
  std::string prefix;   ///< Of the vectors of floats, which are numbered.
  std::string doubles;
  std::string numbers;
};

const MemoryNames& own_names() {
  static const MemoryNames names{"meaning", "own/", "doubles", "numbers"};
  return names;
}

const MemoryNames& link_names() {
  static const MemoryNames names{"link", "link/", "link/doubles", "link/numbers"};
  return names;
}

// Such a file, by the names of its tensors and the keys of its metadata:
//
//   "meaning", "doubles", "numbers", "own/0", "own/1", …     TrainingState::own
//   "link", "link/doubles", "link/numbers", "link/0", …      TrainingState::link
//   "state", "model/<name>", "slot/<slot>/<name>"            of workers but the chief: how far its
//                                                            model has come, and that model
//
// A memory whose meaning is empty is not there at all. What a strategy keeps is written as it is,
// and not looked at here: only the one that finds its own meaning in it knows what it should be.
void add_memory(const tensor::OwnMemory& memory, const MemoryNames& names,
                checkpoint::CheckpointContent::File& file) {
  if (memory.empty()) return;
  file.metadata[names.meaning] = memory.meaning;
  const auto add = [&](const std::string& name, auto values) {
    file.tensors.push_back({name, {static_cast<std::int64_t>(values.size())}, values});
  };
  add(names.doubles, std::span(memory.doubles));
  add(names.numbers, std::span(memory.numbers));
  for (std::size_t i = 0; i < memory.floats.size(); ++i) {
    add(names.prefix + std::to_string(i), std::span(memory.floats[i]));
  }
}

tensor::OwnMemory memory_in(const checkpoint::SafetensorsFile& file, const MemoryNames& names) {
  const auto meaning = file.metadata().find(names.meaning);
  if (meaning == file.metadata().end() || meaning->second.empty()) return {};
  tensor::OwnMemory memory{.meaning = meaning->second,
                           .doubles = file.doubles(names.doubles),
                           .numbers = file.integers(names.numbers)};
  const auto has = [&](const std::string& name) {
    return std::ranges::find(file.tensors(), name, &checkpoint::StoredTensor::name) !=
           file.tensors().end();
  };
  for (std::size_t i = 0; has(names.prefix + std::to_string(i)); ++i) {
    const auto values = file.floats(names.prefix + std::to_string(i));
    memory.floats.emplace_back(values.begin(), values.end());
  }
  return memory;
}

std::string model_prefix() {
  return "model/";
}

std::string slot_prefix(const std::string& slot) {
  return "slot/" + slot + "/";
}

void add_flat(const std::string& prefix, const tensor::FlatLayout& layout,
              std::span<const float> values, checkpoint::CheckpointContent::File& file) {
  if (values.empty()) return;
  if (values.size() != layout.size) {
    fail(ErrorCode::invalid, "{} would have {} floats of {}*, but the model has {}", file.name,
         values.size(), prefix, layout.size);
  }
  for (const tensor::FlatEntry& entry : layout.entries) {
    file.tensors.push_back(
        {prefix + entry.name, entry.shape, values.subspan(entry.offset, entry.count)});
  }
}

/// Nothing where the file has none of them; all, where it has one.
std::vector<float> flat_in(const checkpoint::SafetensorsFile& file, const std::string& prefix,
                           const tensor::FlatLayout& layout, const std::string& path) {
  const auto stored_as = [&](const tensor::FlatEntry& entry) {
    return std::ranges::find(file.tensors(), prefix + entry.name, &checkpoint::StoredTensor::name);
  };
  const auto is_there = [&](const tensor::FlatEntry& entry) {
    return stored_as(entry) != file.tensors().end();
  };
  if (std::ranges::none_of(layout.entries, is_there)) return {};
  std::vector<float> floats(layout.size);
  for (const tensor::FlatEntry& entry : layout.entries) {
    if (!is_there(entry) || stored_as(entry)->shape != entry.shape) {
      fail(ErrorCode::invalid, "{} is of another model: it has no tensor \"{}{}\" of shape [{}]",
           path, prefix, entry.name, fmt::join(entry.shape, ", "));
    }
    const auto values = file.floats(prefix + entry.name);
    std::ranges::copy(values, floats.begin() + static_cast<std::ptrdiff_t>(entry.offset));
  }
  return floats;
}

/// A multiple of what the names need, and room for a few thousand vectors of its own.
std::uint64_t most_header_bytes(const StateNames& names) {
  constexpr std::uint64_t kLeast = 1 << 20, kBesideName = 256, kPerByte = 8, kGenerous = 4;
  std::uint64_t bytes = 0;
  for (const tensor::FlatLayout* layout : {&names.layout.parameters, &names.layout.buffers}) {
    for (const tensor::FlatEntry& entry : layout->entries) {
      bytes += kBesideName + kPerByte * entry.name.size();
    }
  }
  return kLeast + kGenerous * (1 + names.slots.size()) * bytes;
}

/// What workers keep of their own is of the size of the model, a few times.
void check_bytes(const std::vector<checkpoint::StoredTensor>& tensors, std::size_t model,
                 const std::string& path) {
  constexpr std::size_t kOfOwn = 64, kLeast = 1 << 20;
  const std::size_t floats = (tensors.empty() ? 0 : tensors.back().end) / sizeof(float);
  if (floats <= kLeast + kOfOwn * model) return;
  fail(ErrorCode::invalid, "{} has {} floats where there is use for {} at most", path, floats,
       kLeast + kOfOwn * model);
}

}  // namespace

std::string worker_file_name(int rank) {
  return fmt::format("worker-{}.safetensors", rank);
}

StateNames StateNames::of(Model& model, const Job& job) {
  return {.layout = tensor::ModelLayout::of(model),
          .slots = optimizer::make_optimizer(job.train.optimizer)->slots()};
}

checkpoint::CheckpointContent::File chiefs_worker_file(const tensor::TrainingState& state) {
  checkpoint::CheckpointContent::File file;
  file.name = worker_file_name(0);
  add_memory(state.own, own_names(), file);
  add_memory(state.link, link_names(), file);
  return file;
}

checkpoint::CheckpointContent::File worker_file(int rank, const tensor::TrainingState& state,
                                                const StateNames& names) {
  checkpoint::CheckpointContent::File file = chiefs_worker_file(state);
  file.name = worker_file_name(rank);
  file.metadata[kText] =
      to_json(WorkerText{.step = state.step, .updates = state.updates, .work = state.work});
  add_flat(model_prefix(), names.layout.parameters, state.parameters, file);
  add_flat(model_prefix(), names.layout.buffers, state.buffers, file);
  if (!state.slots.empty() && state.slots.size() != names.slots.size()) {
    fail(ErrorCode::invalid, "{} would have {} optimizer slots, but the optimizer has {}",
         file.name, state.slots.size(), names.slots.size());
  }
  for (std::size_t slot = 0; slot < state.slots.size(); ++slot) {
    add_flat(slot_prefix(names.slots[slot]), names.layout.parameters, state.slots[slot], file);
  }
  return file;
}

// A file that somebody else may have made: the header is bounded before it is parsed and all sizes
// before anything is allocated, by what the model needs; names and shapes of what is of the model
// must be the model's. Slots count only where there are all of them.
tensor::TrainingState read_worker_file(const checkpoint::Checkpoint& checkpoint, int rank,
                                       const StateNames& names) {
  const std::string path = (checkpoint.path() / worker_file_name(rank)).string();
  checkpoint::SafetensorsExpectation expected{.most_header_bytes = most_header_bytes(names)};
  expected.check = [&](const std::vector<checkpoint::StoredTensor>& tensors) {
    check_bytes(tensors, names.layout.parameters.size + names.layout.buffers.size, path);
  };
  const checkpoint::SafetensorsFile file = checkpoint.tensors(worker_file_name(rank), expected);
  tensor::TrainingState state;
  state.own = memory_in(file, own_names());
  state.link = memory_in(file, link_names());
  const auto text = file.metadata().find(kText);
  if (text == file.metadata().end()) return state;
  const WorkerText said = parse_worker_text(text->second, path);
  state.step = said.step;
  state.updates = said.updates;
  state.work = said.work;
  state.parameters = flat_in(file, model_prefix(), names.layout.parameters, path);
  state.buffers = flat_in(file, model_prefix(), names.layout.buffers, path);
  for (const std::string& slot : names.slots) {
    auto floats = flat_in(file, slot_prefix(slot), names.layout.parameters, path);
    if (!floats.empty()) state.slots.push_back(std::move(floats));
  }
  if (state.slots.size() != names.slots.size()) state.slots.clear();
  return state;
}

}  // namespace cohort::training
