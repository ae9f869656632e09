#include "fuzz.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "base/fail.h"
#include "base/files.h"
#include "base/names.h"
#include "targets/targets.h"

namespace cohort::fuzz {
namespace {

/// By name. A new target is a file in targets/, a line in targets.h and a line here.
const Target kTargets[] = {
    {"address", address, address_seeds},
    {"claims", claims, claims_seeds},
    {"codec", codec, codec_seeds},
    {"csv", csv, csv_seeds},
    {"door", door, door_seeds},
    {"gossip", gossip, gossip_seeds},
    {"idx", idx, idx_seeds},
    {"libsvm", libsvm, libsvm_seeds},
    {"manifest", manifest, manifest_seeds},
    {"model", model, model_seeds},
    {"replica", replica, replica_seeds},
    {"reply", reply, reply_seeds},
    {"report", report, report_seeds},
    {"request", request, request_seeds},
    {"rpc", rpc_frames, rpc_seeds},
    {"safetensors", safetensors, safetensors_seeds},
    {"state", state, state_seeds},
    {"store", store, store_seeds},
    {"toml", toml, toml_seeds},
};

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

const Target& target_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Target& target : kTargets) names.emplace_back(target.name);
  check_known("the target", name, names);
  for (const Target& target : kTargets) {
    if (target.name == name) return target;
  }
  std::abort();
}

// In memory of exactly its length, so that a sanitizer sees reads beyond it.
bool takes(const Target& target, Bytes input) {
  const std::vector<std::byte> exact(input.begin(), input.end());
  try {
    target.run(exact);
    return true;
  } catch (const Error&) {
    return false;
  }
}

FileOf::FileOf(Bytes bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  if (!fd_) fail_errno("no memory for a file");
  write_all(fd_.get(), text_of(bytes), path());
}

std::filesystem::path FileOf::path() const {
  return fmt::format("/proc/self/fd/{}", fd_.get());
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "this does not hold: %s\n", what);
  std::abort();
}

}  // namespace cohort::fuzz
