#include "train/state/checkpoint_state.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/excerpt.h"
#include "base/fail.h"
#include "optimizer/optimizer.h"
#include "strategy/dealt_state.h"
#include "train/loop/save_model.h"
#include "train/state/apart_tensors.h"
#include "train/state/checkpoint_text.h"
#include "train/state/worker_file.h"

namespace cohort {
namespace {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";

std::string slot_tensor(const std::string& slot, const std::string& parameter) {
  return slot + "/" + parameter;
}

std::vector<NamedTensor> all_tensors(Model& model) {
  std::vector<NamedTensor> tensors = model.parameters();
  for (NamedTensor& buffer : model.buffers()) tensors.push_back(std::move(buffer));
  return tensors;
}

bool can_be_saved(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kFloat32 || tensor.scalar_type() == torch::kInt64;
}

void check_size(const char* what, std::size_t found, std::size_t wanted) {
  if (found == wanted) return;
  fail(ErrorCode::invalid, "a training state has {} floats of {}, but its model has {}", found,
       what, wanted);
}

/// The floats of a layout, from the tensors of a file that `name_of` says belong to its entries.
template <class NameOf>
std::vector<float> floats_of(const SafetensorsFile& file, const FlatLayout& layout,
                             const NameOf& name_of) {
  std::vector<float> floats(layout.size);
  for (const FlatEntry& entry : layout.entries) {
    const auto values = file.floats(name_of(entry));
    std::copy(values.begin(), values.end(),
              floats.begin() + static_cast<std::ptrdiff_t>(entry.offset));
  }
  return floats;
}

/// Builds the state for one model and job from one checkpoint.
class TrainingLoader {
 public:
  TrainingLoader(const Checkpoint& checkpoint, Model& model, const Job& job)
      : checkpoint_(checkpoint),
        text_(parse_checkpoint_text(checkpoint.state(), checkpoint.path() / kStateName)),
        layout_(ModelLayout::of(model)),
        names_of_state_(StateNames::of(model, job)),
        job_(job) {
    for (const NamedTensor& named : all_tensors(model)) names_.insert(named.name);
    for (const auto& [name, tensor] : apart_tensors(model)) {
      const bool counts = tensor.scalar_type() == torch::kInt64;
      apart_[name] = {.dtype = counts ? SafetensorsDtype::i64 : SafetensorsDtype::f32,
                      .shape = tensor.sizes().vec()};
    }
  }

  LoadedTraining load(std::int64_t samples, const WorkerPlace& place) {
    load_chiefs();
    if (place.world > 0 && place.world != saved_workers() && has_parts()) {
      loaded_.state = dealt(place, std::move(loaded_.state));
    }
    note_differences(samples);
    return std::move(loaded_);
  }

  /// What a worker that is not the chief has.
  std::optional<TrainingState> load_part(const WorkerPlace& place) {
    const bool as_before = place.world == saved_workers();
    if (as_before && is_same_way() && checkpoint_.has(worker_file_name(place.rank))) {
      return read_part(place.rank);
    }
    if (as_before || !has_parts()) return std::nullopt;
    load_chiefs();
    return dealt(place, std::move(loaded_.state));
  }

 private:
  void load_chiefs() {
    if (text_.step != checkpoint_.step()) {
      fail(ErrorCode::corrupt, "the checkpoint {} is of step {}, but its {} says {}",
           checkpoint_.path().string(), checkpoint_.step(), kStateName, text_.step);
    }
    loaded_.state.step = text_.step;
    loaded_.state.work = text_.work;
    load_model();
    load_slots();
    load_own();
  }

  int saved_workers() const { return static_cast<int>(text_.workers); }

  /// Whether what only one worker has can be of use to this job.
  bool is_same_way() const {
    return text_.strategy == job_.strategy.kind &&
           text_.compression == job_.strategy.compression.kind;
  }

  /// Whether every worker has written what it has.
  bool has_parts() const {
    if (!is_same_way() || text_.workers < 2) return false;
    for (int rank = 1; rank < saved_workers(); ++rank) {
      if (!checkpoint_.has(worker_file_name(rank))) return false;
    }
    return true;
  }

  /// As with the chief's: what another optimizer kept is of no use.
  TrainingState read_part(int rank) const {
    TrainingState state = read_worker_file(checkpoint_, rank, names_of_state_);
    // Where nobody waits, others have saved later than the chief, and heard of more pieces done:
    // which of these are in somebody's saved model is not known, so all of them are made again.
    state.step = text_.step;
    state.work = text_.work;
    if (text_.optimizer != job_.train.optimizer.kind) {
      state.slots.clear();
      state.updates = 0;
    }
    return state;
  }

  TrainingState dealt(const WorkerPlace& place, TrainingState chiefs) const {
    DealtState dealt({.rank = place.rank, .world = place.world, .saved = saved_workers()});
    dealt.add(0, std::move(chiefs));
    for (int rank = 1; rank < saved_workers(); ++rank) {
      dealt.add(rank, read_part(rank));
    }
    return dealt.take();
  }

  [[noreturn]] void fail_other_model(const std::string& how) const {
    fail(ErrorCode::invalid, "the checkpoint {} is of another model: {}",
         checkpoint_.path().string(), how);
  }

  using Stored = std::vector<StoredTensor>;

  /// That there is a tensor for every entry of the layout, by the name that `name_of` gives it.
  template <class NameOf>
  void check_entries(const Stored& tensors, const FlatLayout& layout, const NameOf& name_of) const {
    for (const FlatEntry& entry : layout.entries) {
      const std::string name = name_of(entry);
      const auto stored = std::ranges::find(tensors, name, &StoredTensor::name);
      if (stored == tensors.end()) {
        fail_other_model(fmt::format("it has no tensor \"{}\" of shape [{}]", name,
                                     fmt::join(entry.shape, ", ")));
      }
      if (stored->shape != entry.shape) {
        fail_other_model(fmt::format("its tensor \"{}\" has the shape [{}] instead of [{}]", name,
                                     listed(stored->shape), fmt::join(entry.shape, ", ")));
      }
    }
  }

  void check_names(const Stored& tensors) const {
    for (const StoredTensor& stored : tensors) {
      if (names_.contains(stored.name)) continue;
      fail_other_model(fmt::format("its tensor \"{}\" of shape [{}] is not in this job's model",
                                   excerpt(stored.name), listed(stored.shape)));
    }
  }

  /// Of a file with as many tensors for every one of the model. A multiple of what the names need,
  /// so that the file of another model can still be told what is wrong with it.
  SafetensorsExpectation expected(std::size_t copies) const {
    constexpr std::uint64_t kLeast = 1 << 20, kBesideName = 256, kPerByte = 8, kGenerous = 16;
    std::uint64_t bytes = 0;
    for (const std::string& name : names_) bytes += kBesideName + kPerByte * name.size();
    return {.most_header_bytes = kLeast + kGenerous * copies * bytes};
  }

  void load_model() {
    const auto by_name = [](const FlatEntry& entry) { return entry.name; };
    SafetensorsExpectation wanted = expected(1);
    wanted.check = [&](const Stored& tensors) {
      check_entries(tensors, layout_.parameters, by_name);
      check_entries(tensors, layout_.buffers, by_name);
      check_names(tensors);
      check_apart(tensors);
    };
    const SafetensorsFile file = checkpoint_.tensors(kModelFile, wanted);
    loaded_.state.parameters = floats_of(file, layout_.parameters, by_name);
    loaded_.state.buffers = floats_of(file, layout_.buffers, by_name);
    load_apart(file);
  }

  /// Frozen tensors and counters have the model's type and shape; some may be missing.
  void check_apart(const Stored& tensors) const {
    for (const StoredTensor& stored : tensors) {
      const auto found = apart_.find(stored.name);
      if (found == apart_.end()) continue;
      if (found->second.dtype == stored.dtype && found->second.shape == stored.shape) continue;
      fail_other_model(
          fmt::format("its tensor \"{}\" has the shape [{}] instead of [{}]{}", stored.name,
                      listed(stored.shape), listed(found->second.shape),
                      found->second.dtype == stored.dtype ? "" : ", and another type"));
    }
  }

  void load_apart(const SafetensorsFile& file) {
    for (const StoredTensor& stored : file.tensors()) {
      if (!apart_.contains(stored.name)) continue;
      if (stored.dtype == SafetensorsDtype::i64) {
        loaded_.state.apart[stored.name] = file.integers(stored.name);
      } else {
        const auto values = file.floats(stored.name);
        loaded_.state.apart[stored.name] = std::vector<float>(values.begin(), values.end());
      }
    }
  }

  void load_slots() {
    const std::vector<std::string> wanted = make_optimizer(job_.train.optimizer)->slots();
    if (text_.optimizer != job_.train.optimizer.kind || text_.slots != wanted) {
      loaded_.notes.push_back(fmt::format(
          "the checkpoint was written with the optimizer {} (it keeps: {}); this job's {} (it "
          "keeps: {}) takes the parameters over and begins with nothing kept",
          excerpt(text_.optimizer), listed(text_.slots), job_.train.optimizer.kind,
          listed(wanted)));
      return;
    }
    loaded_.state.updates = text_.updates;
    const auto named_in = [](const std::string& slot) {
      return [slot](const FlatEntry& entry) { return slot_tensor(slot, entry.name); };
    };
    SafetensorsExpectation slots = expected(wanted.size());
    slots.check = [&](const Stored& tensors) {
      if (tensors.empty()) return;
      for (const std::string& slot : wanted) {
        check_entries(tensors, layout_.parameters, named_in(slot));
      }
      check_floats(tensors, wanted.size() * layout_.parameters.size);
    };
    const SafetensorsFile file = checkpoint_.tensors(kOptimizerFile, slots);
    if (file.tensors().empty()) return;
    for (const std::string& slot : wanted) {
      loaded_.state.slots.push_back(floats_of(file, layout_.parameters, named_in(slot)));
    }
  }

  /// A file shall not bring far more than there is use for.
  void check_floats(const Stored& tensors, std::size_t most) const {
    const std::size_t bytes = tensors.empty() ? 0 : tensors.back().end;
    if (bytes / sizeof(float) <= most) return;
    fail_other_model(fmt::format("it has {} floats where there is use for {} at most",
                                 bytes / sizeof(float), most));
  }

  template <class Items>
  static std::string listed(const Items& items) {
    return items.empty() ? "nothing" : excerpt(fmt::format("{}", fmt::join(items, ", ")));
  }

  void load_own() {
    if (!is_same_way() || !checkpoint_.has(worker_file_name(0))) return;
    TrainingState own = read_worker_file(checkpoint_, 0, names_of_state_);
    if (own.own.empty() && own.link.empty()) {
      loaded_.notes.push_back(fmt::format(
          "the checkpoint's {} does not say what it means: it is left out", worker_file_name(0)));
    }
    loaded_.state.own = std::move(own.own);
    loaded_.state.link = std::move(own.link);
  }

  template <class Number>
  void note_if_other(const char* what, Number then, Number now, const char* so) {
    if (then == now) return;
    loaded_.notes.push_back(fmt::format(
        "the checkpoint was written with {} {}, this job has {}: {}", what, then, now, so));
  }

  void note_differences(std::int64_t samples) {
    note_if_other("job.seed", text_.seed, job_.seed, "samples come in another order from here on");
    note_if_other("train.batch", text_.batch, job_.train.batch,
                  "its steps are counted as if they had had this job's batch");
    note_if_other("a number of training samples of", text_.samples, samples,
                  "it goes on with other data");
  }

  const Checkpoint& checkpoint_;
  const CheckpointText text_;
  const ModelLayout layout_;
  const StateNames names_of_state_;
  const Job& job_;
  std::set<std::string> names_;
  struct Apart {
    SafetensorsDtype dtype;
    std::vector<std::int64_t> shape;
  };
  std::map<std::string, Apart> apart_;  // Tensors that stand in no layout.
  LoadedTraining loaded_;
};

}  // namespace

void TrainingSnapshot::describe(Model& model, const Job& job, const CheckpointPlace& place) {
  const ModelLayout layout = ModelLayout::of(model);
  slots_ = make_optimizer(job.train.optimizer)->slots();
  check_sizes(layout, slots_.size());
  describe_tensors(model, layout);
  trained_ = layout.parameters.entries;
  text_ =
      to_json(CheckpointText{.step = state_.step,
                             .cursor = cursor_after(state_.step, place.samples, job.train.batch),
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

void TrainingSnapshot::check_sizes(const ModelLayout& layout, std::size_t slots) const {
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

void TrainingSnapshot::describe_tensors(Model& model, const ModelLayout& layout) {
  using In = NamedPlace::In;
  std::map<std::string, std::pair<In, const FlatEntry*>> flat;
  for (const FlatEntry& entry : layout.parameters.entries)
    flat[entry.name] = {In::parameters, &entry};
  for (const FlatEntry& entry : layout.buffers.entries) flat[entry.name] = {In::buffers, &entry};

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

TensorView TrainingSnapshot::view_of(const NamedPlace& tensor) const {
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

CheckpointContent::File TrainingSnapshot::model_file() const {
  CheckpointContent::File file;
  file.name = kModelFile;
  file.metadata = {{"format", "pt"}, {"step", std::to_string(state_.step)}};
  for (const NamedPlace& tensor : tensors_) file.tensors.push_back(view_of(tensor));
  return file;
}

CheckpointContent::File TrainingSnapshot::optimizer_file() const {
  CheckpointContent::File file;
  file.name = kOptimizerFile;
  for (std::size_t slot = 0; slot < state_.slots.size(); ++slot) {
    const std::span<const float> values = state_.slots[slot];
    for (const FlatEntry& entry : trained_) {
      file.tensors.push_back({slot_tensor(slots_[slot], entry.name), entry.shape,
                              values.subspan(entry.offset, entry.count)});
    }
  }
  return file;
}

CheckpointContent TrainingSnapshot::content() const {
  CheckpointContent content;
  content.step = state_.step;
  content.files = {model_file(), optimizer_file()};
  if (!state_.own.empty() || !state_.link.empty()) {
    content.files.push_back(chiefs_worker_file(state_));
  }
  content.state = text_;
  return content;
}

LoadedTraining load_training(const Checkpoint& checkpoint, Model& model, const Job& job,
                             std::int64_t samples, const WorkerPlace& place) {
  return TrainingLoader(checkpoint, model, job).load(samples, place);
}

int saved_workers(const Checkpoint& checkpoint) {
  const auto path = checkpoint.path() / kStateName;
  return static_cast<int>(parse_checkpoint_text(checkpoint.state(), path).workers);
}

std::optional<TrainingState> load_worker_part(const Checkpoint& checkpoint, Model& model,
                                              const Job& job, const WorkerPlace& place) {
  return TrainingLoader(checkpoint, model, job).load_part(place);
}

}  // namespace cohort
