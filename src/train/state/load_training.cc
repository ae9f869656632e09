#include "train/state/load_training.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/fail.h"
#include "optimizer/optimizer.h"
#include "strategy/dealt_state.h"
#include "train/state/apart_tensors.h"
#include "train/state/checkpoint_text.h"
#include "train/state/training_snapshot.h"
#include "train/state/worker_file.h"

namespace cohort::training {
namespace {

/// The floats of a layout, from the tensors of a file that `name_of` says belong to its entries.
template <class NameOf>
std::vector<float> floats_of(const checkpoint::SafetensorsFile& file,
                             const tensor::FlatLayout& layout, const NameOf& name_of) {
  std::vector<float> floats(layout.size);
  for (const tensor::FlatEntry& entry : layout.entries) {
    const auto values = file.floats(name_of(entry));
    std::copy(values.begin(), values.end(),
              floats.begin() + static_cast<std::ptrdiff_t>(entry.offset));
  }
  return floats;
}

/// Builds the state for one model and job from one checkpoint: one call of load() or load_part().
class TrainingLoader {
 public:
  TrainingLoader(const checkpoint::Checkpoint& checkpoint, Model& model, const Job& job)
      : checkpoint_(checkpoint),
        text_(
            parse_checkpoint_text(checkpoint.state(), checkpoint.path() / checkpoint::kStateName)),
        layout_(tensor::ModelLayout::of(model)),
        names_of_state_(StateNames::of(model, job)),
        job_(job) {
    for (const NamedTensor& named : all_tensors(model)) names_.insert(named.name);
    for (const auto& [name, tensor] : apart_tensors(model)) {
      const bool counts = tensor.scalar_type() == torch::kInt64;
      apart_[name] = {
          .dtype = counts ? checkpoint::SafetensorsDtype::i64 : checkpoint::SafetensorsDtype::f32,
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
  std::optional<tensor::TrainingState> load_part(const WorkerPlace& place) {
    const bool as_before = place.world == saved_workers();
    if (as_before && is_same_way() && checkpoint_.has(worker_file_name(place.rank))) {
      return read_part(place.rank);
    }
    if (as_before || !has_parts()) return std::nullopt;
    load_chiefs();
    return dealt(place, std::move(loaded_.state));
  }

 private:
  /// What the files of all have, and the chief's own.
  void load_chiefs() {
    if (text_.step != checkpoint_.step()) {
      fail(ErrorCode::corrupt, "the checkpoint {} is of step {}, but its {} says {}",
           checkpoint_.path().string(), checkpoint_.step(), checkpoint::kStateName, text_.step);
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
  tensor::TrainingState read_part(int rank) const {
    tensor::TrainingState state = read_worker_file(checkpoint_, rank, names_of_state_);
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

  /// What falls to a worker where there are more or fewer than wrote the checkpoint. It takes
  /// everybody's file to know.
  tensor::TrainingState dealt(const WorkerPlace& place, tensor::TrainingState chiefs) const {
    strategy::DealtState dealt(
        {.rank = place.rank, .world = place.world, .saved = saved_workers()});
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

  using Stored = std::vector<checkpoint::StoredTensor>;

  /// That there is a tensor for every entry of the layout, by the name that `name_of` gives it.
  template <class NameOf>
  void check_entries(const Stored& tensors, const tensor::FlatLayout& layout,
                     const NameOf& name_of) const {
    for (const tensor::FlatEntry& entry : layout.entries) {
      const std::string name = name_of(entry);
      const auto stored = std::ranges::find(tensors, name, &checkpoint::StoredTensor::name);
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
    for (const checkpoint::StoredTensor& stored : tensors) {
      if (names_.contains(stored.name)) continue;
      fail_other_model(fmt::format("its tensor \"{}\" of shape [{}] is not in this job's model",
                                   excerpt(stored.name), listed(stored.shape)));
    }
  }

  /// Of a file with as many tensors for every one of the model. A multiple of what the names need,
  /// so that the file of another model can still be told what is wrong with it.
  checkpoint::SafetensorsExpectation expected(std::size_t copies) const {
    constexpr std::uint64_t kLeast = 1 << 20, kBesideName = 256, kPerByte = 8, kGenerous = 16;
    std::uint64_t bytes = 0;
    for (const std::string& name : names_) bytes += kBesideName + kPerByte * name.size();
    return {.most_header_bytes = kLeast + kGenerous * copies * bytes};
  }

  void load_model() {
    const auto by_name = [](const tensor::FlatEntry& entry) { return entry.name; };
    checkpoint::SafetensorsExpectation wanted = expected(1);
    wanted.check = [&](const Stored& tensors) {
      check_entries(tensors, layout_.parameters, by_name);
      check_entries(tensors, layout_.buffers, by_name);
      check_names(tensors);
      check_apart(tensors);
    };
    const checkpoint::SafetensorsFile file = checkpoint_.tensors(kModelFile, wanted);
    loaded_.state.parameters = floats_of(file, layout_.parameters, by_name);
    loaded_.state.buffers = floats_of(file, layout_.buffers, by_name);
    load_apart(file);
  }

  /// Frozen tensors and counters have the model's type and shape; some may be missing.
  void check_apart(const Stored& tensors) const {
    for (const checkpoint::StoredTensor& stored : tensors) {
      const auto found = apart_.find(stored.name);
      if (found == apart_.end()) continue;
      if (found->second.dtype == stored.dtype && found->second.shape == stored.shape) continue;
      fail_other_model(
          fmt::format("its tensor \"{}\" has the shape [{}] instead of [{}]{}", stored.name,
                      listed(stored.shape), listed(found->second.shape),
                      found->second.dtype == stored.dtype ? "" : ", and another type"));
    }
  }

  void load_apart(const checkpoint::SafetensorsFile& file) {
    for (const checkpoint::StoredTensor& stored : file.tensors()) {
      if (!apart_.contains(stored.name)) continue;
      if (stored.dtype == checkpoint::SafetensorsDtype::i64) {
        loaded_.state.apart[stored.name] = file.integers(stored.name);
      } else {
        const auto values = file.floats(stored.name);
        loaded_.state.apart[stored.name] = std::vector<float>(values.begin(), values.end());
      }
    }
  }

  /// What the optimizer keeps; nothing of another one, whose slots mean something else.
  void load_slots() {
    const std::vector<std::string> wanted =
        optimizer::make_optimizer(job_.train.optimizer)->slots();
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
      return [slot](const tensor::FlatEntry& entry) { return slot_tensor(slot, entry.name); };
    };
    checkpoint::SafetensorsExpectation slots = expected(wanted.size());
    slots.check = [&](const Stored& tensors) {
      if (tensors.empty()) return;
      for (const std::string& slot : wanted) {
        check_entries(tensors, layout_.parameters, named_in(slot));
      }
      check_floats(tensors, wanted.size() * layout_.parameters.size);
    };
    const checkpoint::SafetensorsFile file = checkpoint_.tensors(kOptimizerFile, slots);
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

  /// What only the chief had: leftovers of compression, a velocity of its own.
  void load_own() {
    if (!is_same_way() || !checkpoint_.has(worker_file_name(0))) return;
    tensor::TrainingState own = read_worker_file(checkpoint_, 0, names_of_state_);
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

  const checkpoint::Checkpoint& checkpoint_;
  const CheckpointText text_;
  const tensor::ModelLayout layout_;
  const StateNames names_of_state_;
  const Job& job_;
  std::set<std::string> names_;
  struct Apart {
    checkpoint::SafetensorsDtype dtype;
    std::vector<std::int64_t> shape;
  };
  std::map<std::string, Apart> apart_;  // Tensors that stand in no layout.
  LoadedTraining loaded_;
};

}  // namespace

LoadedTraining load_training(const checkpoint::Checkpoint& checkpoint, Model& model, const Job& job,
                             std::int64_t samples, const WorkerPlace& place) {
  return TrainingLoader(checkpoint, model, job).load(samples, place);
}

int saved_workers(const checkpoint::Checkpoint& checkpoint) {
  const auto path = checkpoint.path() / checkpoint::kStateName;
  return static_cast<int>(parse_checkpoint_text(checkpoint.state(), path).workers);
}

std::optional<tensor::TrainingState> load_worker_part(const checkpoint::Checkpoint& checkpoint,
                                                      Model& model, const Job& job,
                                                      const WorkerPlace& place) {
  return TrainingLoader(checkpoint, model, job).load_part(place);
}

}  // namespace cohort::training
