#include "artefact/model_files.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/files.h"
#include "checkpoint/safetensors.h"
#include "model/make_model.h"

namespace cohort::artefact {
namespace {

namespace fs = std::filesystem;

/// Of model.json: room for a million features or classes. A larger file is refused unread.
constexpr std::uint64_t kMostArtefactBytes = 64 << 20;
constexpr std::size_t kBlock = 1 << 20;

/// Parameters, then buffers, as the model names them.
std::vector<NamedTensor> all_tensors(Model& model) {
  std::vector<NamedTensor> tensors = model.parameters();
  for (NamedTensor& buffer : model.buffers()) tensors.push_back(std::move(buffer));
  return tensors;
}

/// Only float32 and int64 tensors are saved and loaded; others are not trained.
bool is_kept(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kFloat32 || tensor.scalar_type() == torch::kInt64;
}

template <class T>
std::span<const T> span_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<T>(), static_cast<std::size_t>(tensor.numel())};
}

bool is_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

/// All tensors as the writer wants them, which refer to the memory of `tensors`; nothing where a
/// float is not finite. One that has two names is written under both.
std::optional<std::vector<checkpoint::TensorView>> views_of(std::vector<NamedTensor>& tensors) {
  std::vector<checkpoint::TensorView> views;
  for (auto& [name, tensor] : tensors) {
    if (!is_kept(tensor)) continue;
    tensor = tensor.detach().contiguous();
    if (tensor.scalar_type() == torch::kInt64) {
      views.push_back({name, tensor.sizes().vec(), span_of<std::int64_t>(tensor)});
      continue;
    }
    if (!is_finite(span_of<float>(tensor))) return std::nullopt;
    views.push_back({name, tensor.sizes().vec(), span_of<float>(tensor)});
  }
  return views;
}

/// For weights that are sound and do not fit the model.
[[noreturn]] void fail_other_model(const fs::path& path, const std::string& what) {
  fail(ErrorCode::invalid, "the weights in {} are of another model: {}", path.string(), what);
}

/// The file must have exactly the model's tensors, by name, shape and type. Called with the header,
/// before any value is read.
void check_tensors(const fs::path& path, const std::vector<NamedTensor>& wanted,
                   const std::vector<checkpoint::StoredTensor>& stored) {
  std::map<std::string, const checkpoint::StoredTensor*> by_name;
  for (const checkpoint::StoredTensor& tensor : stored) by_name[tensor.name] = &tensor;
  for (const auto& [name, tensor] : wanted) {
    if (!is_kept(tensor)) continue;
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      fail_other_model(path, fmt::format("there is no tensor \"{}\"", excerpt(name)));
    }
    if (found->second->shape != tensor.sizes().vec()) {
      fail_other_model(path, fmt::format("tensor \"{}\" has the shape [{}] there, and [{}] here",
                                         excerpt(name), fmt::join(found->second->shape, ", "),
                                         fmt::join(tensor.sizes(), ", ")));
    }
    const bool floats = tensor.scalar_type() == torch::kFloat32;
    if (floats != (found->second->dtype == checkpoint::SafetensorsDtype::f32)) {
      fail_other_model(path, fmt::format("tensor \"{}\" has another type", excerpt(name)));
    }
    by_name.erase(found);
  }
  if (!by_name.empty()) {
    fail_other_model(
        path, fmt::format("the model has no tensor \"{}\"", excerpt(by_name.begin()->first)));
  }
}

/// A value that is not finite was not written by us: save_model_files() refuses it.
void copy_values(const checkpoint::SafetensorsFile& file, const NamedTensor& named) {
  const torch::NoGradGuard no_grad;
  torch::Tensor tensor = named.tensor;
  if (tensor.scalar_type() == torch::kInt64) {
    tensor.copy_(torch::tensor(file.integers(named.name), torch::kInt64).view(tensor.sizes()));
    return;
  }
  const auto values = file.floats(named.name);
  if (!is_finite(values)) {
    fail(ErrorCode::corrupt, "tensor \"{}\" has a value that is not a finite number",
         excerpt(named.name));
  }
  tensor.copy_(torch::from_blob(const_cast<float*>(values.data()), tensor.sizes()));
}

/// Loading a model builds layers, which draw first weights from torch's generator. This puts the
/// generator back, so that a program's own random numbers are what they would be without.
class RandomNumbersKept {
 public:
  RandomNumbersKept() : state_(generator().get_state()) {}
  ~RandomNumbersKept() { generator().set_state(state_); }
  RandomNumbersKept(const RandomNumbersKept&) = delete;
  RandomNumbersKept& operator=(const RandomNumbersKept&) = delete;

 private:
  static at::Generator generator() { return at::detail::getDefaultCPUGenerator(); }

  at::Tensor state_;
};

/// The weights of all layers, nested ones too.
std::uint64_t planned_floats(const std::vector<model::LayerPlan>& layers) {
  std::uint64_t sum = 0;
  for (const model::LayerPlan& layer : layers) {
    sum += static_cast<std::uint64_t>(layer.weights) + planned_floats(layer.nested);
  }
  return sum;
}

/// Reads the whole file of weights once before anything is believed of it.
void check_seal(const fs::path& folder, const Artefact& artefact) {
  const fs::path path = folder / kWeightsFile;
  if (seal_of(path, Links::refuse) == artefact.weights) return;
  fail(ErrorCode::corrupt,
       "{} and {} do not belong together: the weights are not those that were saved with it",
       (folder / kArtefactFile).string(), path.string());
}

/// For weights whose seal has been checked.
void load_sealed(const fs::path& folder, Model& model) {
  const fs::path path = folder / kWeightsFile;
  const std::vector<NamedTensor> tensors = all_tensors(model);
  const checkpoint::SafetensorsFile file = checkpoint::read_safetensors(
      path, {.check = [&](const auto& stored) { check_tensors(path, tensors, stored); },
             .links = Links::refuse});
  for (const NamedTensor& named : tensors) {
    if (is_kept(named.tensor)) copy_values(file, named);
  }
  model.train(false);
}

}  // namespace

// The seal is computed of the bytes as they are written. Weights go first: with new weights and an
// old model.json the seal does not fit, which loading notices.
bool save_model_files(const fs::path& folder, Model& model, Artefact artefact,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<NamedTensor> tensors = all_tensors(model);
  const auto views = views_of(tensors);
  if (!views) return false;
  const fs::path path = folder / kWeightsFile;
  AtomicFile weights(path);
  WeightsSeal seal;
  checkpoint::write_safetensors(
      [&](std::string_view bytes) {
        weights.write(bytes);
        seal.bytes += bytes.size();
        seal.crc32c = crc32c(std::as_bytes(std::span(bytes)), seal.crc32c);
      },
      path, *views, metadata);
  artefact.weights = seal;
  const std::string text = to_json(artefact);
  weights.commit();
  write_file_atomically(folder / kArtefactFile, text);
  return true;
}

// The usual mistakes get sentences of their own: no folder, no run, a run of an older Cohort.
Artefact read_artefact(const fs::path& folder) {
  std::error_code cannot_tell;
  if (!fs::is_directory(folder, cannot_tell)) {
    fail(ErrorCode::not_found, "there is no folder {}", folder.string());
  }
  const fs::path path = folder / kArtefactFile;
  if (!fs::exists(path, cannot_tell)) {
    fail(ErrorCode::not_found, "{} has no {}: {}", folder.string(), kArtefactFile,
         fs::exists(folder / kWeightsFile, cannot_tell)
             ? "an older Cohort wrote its weights, and what they are for is not known; train it "
               "anew, or go on from its checkpoint (--resume) with as many steps as it has"
             : "it is no folder of a run, or its run has not got as far as a model");
  }
  return parse_artefact(read_file(path, Links::refuse, kMostArtefactBytes), path.string());
}

// Piece by piece: weights may be larger than what memory is left.
WeightsSeal seal_of(const fs::path& path, Links links) {
  InputFile file(path, links);
  std::vector<std::byte> block(kBlock);
  WeightsSeal seal;
  while (const std::size_t got = file.read(block)) {
    seal.bytes += got;
    seal.crc32c = crc32c(std::span(block).first(got), seal.crc32c);
  }
  return seal;
}

// For a model that somebody else made; make_trained_model() checks the seal before it makes one.
void load_weights(const fs::path& folder, const Artefact& artefact, Model& model) {
  check_seal(folder, artefact);
  load_sealed(folder, model);
}

std::unique_ptr<Model> make_trained_model(const fs::path& folder, const Artefact& artefact) {
  const Architecture& architecture = artefact.architecture;
  if (architecture.kind == Architecture::Kind::own) {
    fail(ErrorCode::invalid,
         "the model of {} is a program's own module; only a program that has it can load it, by "
         "load_model(dir, make)",
         folder.string());
  }
  if (architecture.kind == Architecture::Kind::torchscript) {
    fail(ErrorCode::invalid,
         "the model of {} is a TorchScript file, whose code is not in that folder; name the file "
         "that was trained (--torchscript FILE, or load_torchscript_model)",
         folder.string());
  }
  check_seal(folder, artefact);
  // Before the layers are made: a small file must not make them take any amount of memory.
  if (planned_floats(architecture.layers) > artefact.weights.bytes / sizeof(float)) {
    fail(ErrorCode::corrupt, "the layers of {} have more weights than {} has bytes for",
         (folder / kArtefactFile).string(), kWeightsFile);
  }
  const RandomNumbersKept kept;
  auto model = model::make_layers(architecture.layers);
  load_sealed(folder, *model);
  return model;
}

// The checksum of the script is compared before torch opens it: loading one runs its code.
std::unique_ptr<Model> make_script_model(const fs::path& folder, const Artefact& artefact,
                                         const fs::path& script) {
  if (artefact.architecture.kind != Architecture::Kind::torchscript) {
    fail(ErrorCode::invalid, "the model of {} is no TorchScript file", folder.string());
  }
  if (seal_of(script, Links::follow).crc32c != artefact.architecture.script_crc32c) {
    fail(ErrorCode::invalid, "{} is not the TorchScript file that the model of {} was trained from",
         script.string(), folder.string());
  }
  auto model = model::load_torchscript(script.string());
  load_weights(folder, artefact, *model);
  return model;
}

}  // namespace cohort::artefact
