#include "chaos/faults/slow_disk.h"

#include "base/files.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;

fs::path note_of(const fs::path& gate) {
  return gate.string() + ".waiting";
}

}  // namespace

SlowDisk::SlowDisk(const fs::path& library, const fs::path& run_dir)
    : gate_(fs::absolute(run_dir).string() + ".gate") {
  if (library.empty()) return;
  // The library compares with names as the kernel tells them.
  const fs::path real = fs::weakly_canonical(fs::absolute(run_dir));
  environment_ = {"LD_PRELOAD=" + fs::absolute(library).string(),
                  "SLOW_DISK_FOLDER=" + (real / "checkpoints").string(),
                  "SLOW_DISK_GATE=" + gate_.string()};
}

void SlowDisk::hold() {
  fs::remove(note_of(gate_));
  write_file_atomically(gate_, "");
}

bool SlowDisk::keeps_waiting() const {
  return fs::exists(note_of(gate_));
}

void SlowDisk::release() noexcept {
  std::error_code ignored;
  fs::remove(gate_, ignored);
  fs::remove(note_of(gate_), ignored);
}

}  // namespace cohort
