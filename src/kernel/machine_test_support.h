#pragma once

#include <map>
#include <string>
#include <utility>

#include "kernel/fast_settings.h"
#include "os/this_process.h"

namespace cohort::kernel {

/// An environment of a test's own, which has these variables and no others.
inline os::GetVariable environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

/// A CPU with AVX-512 and an OpenBLAS that has kernels for every core and took those of `core`.
inline Machine xeon207(const std::string& core) {
  return {{"Xeon of model 207", Vectors::avx512}, core, [](std::string_view) { return true; }};
}

}  // namespace cohort::kernel
