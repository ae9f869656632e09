#pragma once

#include <array>
#include <cstdint>

namespace cohort {

/// A file of the real MNIST: 60,000 images to train on, 10,000 to validate.
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

}  // namespace cohort
