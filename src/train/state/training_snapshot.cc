#include "train/state/training_snapshot.h"

#include <map>

#include "base/fail.h"
#include "optimizer/optimizer.h"
#include "train/state/apart_tensors.h"
#include "train/state/checkpoint_text.h"
#include "train/state/worker_file.h"

namespace cohort::training {
namespace {

void check_size(const char* what, std::size_t found, std::size_t wanted) {
  if (found == wanted) return;
  fail(ErrorCode::invalid, "a training state has {} floats of {}, but its model has {}", found,
       what, wanted);
}

}  // namespace

std::vector<NamedTensor> all_tensors(Model& model) {
  std::vector<NamedTensor> tensors = model.parameters();
  for (NamedTensor& buffer : model.buffers()) tensors.push_back(std::move(buffer));
  return tensors;
}

// Two halves, so that training stands still for as little as it can: the strategy has copied all
// floats into state() before; here names and shapes are put to them and the text is made, both of
// which need the model. content() then needs neither the model nor its thread.
void TrainingSnapshot::describe(Model& model, const Job& job, const CheckpointPlace& place) {
  const tensor::ModelLayout layout = tensor::ModelLayout::of(model);
  slots_ = optimizer::make_optimizer(job.train.optimizer)->slots();
  check_sizes(layout, slots_.size());
  describe_tensors(model, layout);
  trained_ = layout.parameters.entries;
  text_ = to_json(
      CheckpointText{.step = state_.step,
                     .cursor = data::cursor_after(state_.step, place.samples, job.train.batch),
                     .work = state_.work,
                     .updates = state_.updates,
                     .seed = job.seed,
                     .batch = job.train.batch,
                     .samples = place.samples,
                     .optimizer = job.train.optimizer.kind,
                     .slots = slots_,
                     .strategy = job.strategy.kind,
                     .compression = job.strategy.compression.kind,
                     .workers = place.workers});
}

void TrainingSnapshot::check_sizes(const tensor::ModelLayout& layout, std::size_t slots) const {
  check_size("parameters", state_.parameters.size(), layout.parameters.size);
  check_size("buffers", state_.buffers.size(), layout.buffers.size);
  if (state_.slots.empty()) return;
  if (state_.slots.size() != slots) {
    fail(ErrorCode::invalid, "a training state has {} optimizer slots, but its optimizer has {}",
         state_.slots.size(), slots);
  }
  for (const auto& slot : state_.slots) {
    check_size("an optimizer slot", slot.size(), layout.parameters.size);
  }
}

// A tied weight stands once in the flat space, under its first name, and in the file under all of
// them, each showing the same floats.
void TrainingSnapshot::describe_tensors(Model& model, const tensor::ModelLayout& layout) {
  using In = NamedPlace::In;
  std::map<std::string, std::pair<In, const tensor::FlatEntry*>> flat;
  for (const tensor::FlatEntry& entry : layout.parameters.entries)
    flat[entry.name] = {In::parameters, &entry};
  for (const tensor::FlatEntry& entry : layout.buffers.entries)
    flat[entry.name] = {In::buffers, &entry};

  tensors_.clear();
  std::map<const c10::TensorImpl*, std::string> first_names;
  for (const auto& [name, tensor] : all_tensors(model)) {
    const std::string& first =
        first_names.emplace(tensor.unsafeGetTensorImpl(), name).first->second;
    NamedPlace saved{.name = name, .shape = tensor.sizes().vec()};
    if (const auto found = flat.find(first); found != flat.end()) {
      saved.in = found->second.first;
      saved.offset = found->second.second->offset;
      saved.count = found->second.second->count;
    } else if (can_be_saved(tensor)) {
      // Counters go on counting while this is written; frozen parameters stay as they are.
      const bool frozen = tensor.scalar_type() == torch::kFloat32;
      saved.apart = frozen ? tensor.detach().contiguous() : tensor.detach().clone().contiguous();
    } else {
      continue;
    }
    tensors_.push_back(std::move(saved));
  }
}

checkpoint::TensorView TrainingSnapshot::view_of(const NamedPlace& tensor) const {
  if (tensor.in != NamedPlace::In::none) {
    const bool parameter = tensor.in == NamedPlace::In::parameters;
    const std::span<const float> all = parameter ? state_.parameters : state_.buffers;
    return {tensor.name, tensor.shape, all.subspan(tensor.offset, tensor.count)};
  }
  if (tensor.apart.scalar_type() == torch::kInt64) {
    return {tensor.name, tensor.shape, values_of<std::int64_t>(tensor.apart)};
  }
  return {tensor.name, tensor.shape, values_of<float>(tensor.apart)};
}

checkpoint::CheckpointContent::File TrainingSnapshot::model_file() const {
  checkpoint::CheckpointContent::File file;
  file.name = kModelFile;
  file.metadata = {{"format", "pt"}, {"step", std::to_string(state_.step)}};
  for (const NamedPlace& tensor : tensors_) file.tensors.push_back(view_of(tensor));
  return file;
}

checkpoint::CheckpointContent::File TrainingSnapshot::optimizer_file() const {
  checkpoint::CheckpointContent::File file;
  file.name = kOptimizerFile;
  for (std::size_t slot = 0; slot < state_.slots.size(); ++slot) {
    const std::span<const float> values = state_.slots[slot];
    for (const tensor::FlatEntry& entry : trained_) {
      file.tensors.push_back({slot_tensor(slots_[slot], entry.name), entry.shape,
                              values.subspan(entry.offset, entry.count)});
    }
  }
  return file;
}

// Views of what this object has: nothing is copied to be written. The chief's own file is there
// only where its strategy keeps something beside the model.
checkpoint::CheckpointContent TrainingSnapshot::content() const {
  checkpoint::CheckpointContent content;
  content.step = state_.step;
  content.files = {model_file(), optimizer_file()};
  if (!state_.own.empty() || !state_.link.empty()) {
    content.files.push_back(chiefs_worker_file(state_));
  }
  content.state = text_;
  return content;
}

}  // namespace cohort::training
