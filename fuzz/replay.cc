// The tests' end of the fuzzer, which needs no clang: every target is fed with its seeds, which it
// must take, with a few hundred injuries of each, and with every file that is kept of it.
//
//   fuzz_replay CORPUS           runs all; prints what was run, or aborts at the input that is wrong
//   fuzz_replay --seeds FOLDER   writes the seeds, a folder for each target, for libFuzzer

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>

#include "base/fail.h"
#include "base/files.h"
#include "base/mutate_test_support.h"
#include "fuzz.h"

namespace cohort::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int kInjuries = 200;  // Of each seed.

/// Says which input it is before it is run: what a sanitizer says comes after it.
bool run_named(const Target& target, const std::string& name, Bytes input) {
  fmt::print("{} {}\n", target.name, name);
  std::fflush(stdout);
  return takes(target, input);
}

void replay_seeds(const Target& target) {
  Random random(1);
  const auto seeds = target.seeds();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    if (!run_named(target, fmt::format("seed {}", i), bytes_of(seeds[i]))) {
      fail(ErrorCode::invalid, "{} refuses its seed {}", target.name, i);
    }
    for (int injury = 0; injury < kInjuries; ++injury) {
      takes(target, bytes_of(mutated(seeds[i], random, ",:\"[]{}\n\xff")));
    }
  }
}

/// Every folder belongs to a target: one of a target that has another name now would be forgotten.
std::size_t replay_files(const fs::path& corpus) {
  std::size_t files = 0;
  for (const auto& folder : fs::directory_iterator(corpus)) {
    const Target& target = target_named(folder.path().filename().string());
    std::vector<fs::path> paths;
    for (const auto& file : fs::directory_iterator(folder)) paths.push_back(file.path());
    std::ranges::sort(paths);
    for (const fs::path& path : paths) {
      run_named(target, path.filename().string(), bytes_of(read_file(path)));
      ++files;
    }
  }
  return files;
}

void write_seeds(const fs::path& folder) {
  for (const Target& target : targets()) {
    create_folder(folder / target.name);
    const auto seeds = target.seeds();
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      write_file_atomically(folder / target.name / fmt::format("seed-{}", i), seeds[i]);
    }
  }
}

int run(std::span<char*> words) {
  if (words.size() == 3 && std::string_view(words[1]) == "--seeds") {
    write_seeds(words[2]);
    return 0;
  }
  if (words.size() != 2) fail(ErrorCode::invalid, "say fuzz_replay CORPUS or --seeds FOLDER");
  for (const Target& target : targets()) replay_seeds(target);
  fmt::print("{} targets, {} files\n", targets().size(), replay_files(words[1]));
  return 0;
}

}  // namespace
}  // namespace cohort::fuzz

int main(int count, char** words) {
  spdlog::set_level(spdlog::level::off);
  try {
    return cohort::fuzz::run(std::span(words, static_cast<std::size_t>(count)));
  } catch (const cohort::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
