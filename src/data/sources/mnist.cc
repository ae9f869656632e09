#include "data/sources/sources.h"

#include <filesystem>
#include <string>
#include <vector>

#include "base/fail.h"
#include "data/datasets.h"
#include "data/sources/mnist_files.h"

namespace cohort::data {
namespace {

constexpr const char* kDefaultFolder = "data/mnist";
constexpr std::int64_t kClasses = 10;

/// Of the four files.
enum class Presence { none, all };

/// Some files without the others are an error: a broken copy must not go unnoticed.
Presence find_files(const std::filesystem::path& folder) {
  std::vector<std::string> present, missing;
  for (const MnistFile& file : kMnistFiles) {
    (std::filesystem::exists(folder / file.name) ? present : missing).emplace_back(file.name);
  }
  if (missing.empty()) return Presence::all;
  if (present.empty()) return Presence::none;
  fail(ErrorCode::not_found, "{} has {} but not {}; `cohort data mnist` fetches all of MNIST",
       folder.string(), fmt::join(present, ", "), fmt::join(missing, ", "));
}

/// Labels are ids below kClasses: a broken file is named here, and not by the loss.
void check_labels(const std::string& file, const torch::Tensor& labels) {
  const auto* bytes = labels.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < labels.size(0); ++i) {
    if (bytes[i] >= kClasses) {
      fail(ErrorCode::corrupt, "{}: the label of sample {} is {}, expected 0 to 9", file, i,
           bytes[i]);
    }
  }
}

/// Pixels stay in the mapped file; labels become ids.
std::shared_ptr<const Dataset> read_part(const std::filesystem::path& folder,
                                         const MnistFile& images, const MnistFile& labels) {
  const torch::Tensor pixels = read_idx(folder / images.name, 3);
  const torch::Tensor classes = read_idx(folder / labels.name, 1);
  const std::string file = (folder / images.name).string();
  if (pixels.numel() == 0) fail(ErrorCode::corrupt, "{} has no images", file);
  if (pixels.size(0) != classes.size(0)) {
    fail(ErrorCode::corrupt, "{} has {} images, but {} has {} labels", file, pixels.size(0),
         (folder / labels.name).string(), classes.size(0));
  }
  check_labels((folder / labels.name).string(), classes);
  return std::make_shared<ByteImages>(pixels.unsqueeze(1), classes.to(torch::kInt64));
}

std::vector<std::int64_t> image_shape(const Dataset& dataset) {
  const std::int64_t first = 0;
  return dataset.gather({&first, 1}).input.sizes().slice(1).vec();
}

}  // namespace

// Without files the first training of a newcomer still runs, on digits that are drawn; the note
// says so. Sizes of the images are taken from the files, so IDX images of other sizes work too.
LoadedData load_mnist(const DataOptions& options, std::uint64_t seed) {
  const std::filesystem::path folder = options.path.empty() ? kDefaultFolder : options.path;
  LoadedData data;
  data.spec.outputs = kClasses;
  if (find_files(folder) == Presence::none) {
    // Fewer than MNIST has: drawing them must not hold up the first step.
    data.train = make_digits({.samples = 12000, .noise = options.noise, .seed = seed, .part = 0});
    data.validation =
        make_digits({.samples = 2000, .noise = options.noise, .seed = seed, .part = 1});
    data.note = fmt::format(
        "no MNIST in {}: training on generated digits instead; `cohort data mnist` fetches it",
        folder.string());
  } else {
    data.train = read_part(folder, kMnistTrainImages, kMnistTrainLabels);
    data.validation = read_part(folder, kMnistTestImages, kMnistTestLabels);
  }
  data.spec.input_shape = image_shape(*data.train);
  if (image_shape(*data.validation) != data.spec.input_shape) {
    fail(ErrorCode::corrupt, "{}: the images to train and to validate on differ in size",
         folder.string());
  }
  data.preprocessing = {ImageInput{.shape = data.spec.input_shape}, Targets::counted(kClasses)};
  return data;
}

}  // namespace cohort::data
