// What libFuzzer calls. COHORT_FUZZ_TARGET names the target: one program has them all.

#include <spdlog/spdlog.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/fail.h"
#include "fuzz.h"

namespace {

const cohort::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  spdlog::set_level(spdlog::level::off);
  const char* name = std::getenv("COHORT_FUZZ_TARGET");
  try {
    chosen = &cohort::fuzz::target_named(name != nullptr ? name : "");
  } catch (const cohort::Error& error) {
    std::fprintf(stderr, "COHORT_FUZZ_TARGET: %s\n", error.what());
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cohort::fuzz::takes(*chosen, std::as_bytes(std::span(data, size)));
  return 0;
}
