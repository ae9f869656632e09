#include "kernel/loaded_libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>

namespace cohort {
namespace {

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

/// OpenBLAS keeps the kernels of each core in a table of its own.
bool has_table(std::string_view core) {
  std::string name = "gotoblas_" + std::string(core);
  std::transform(name.begin() + 9, name.end(), name.begin() + 9,
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return ::dlsym(RTLD_DEFAULT, name.c_str()) != nullptr;
}

/// oneDNN's number of its instruction set: a bit for each that it includes.
std::optional<unsigned> effective_isa() {
  auto* isa = find<unsigned()>("dnnl_get_effective_cpu_isa");
  if (isa == nullptr) return std::nullopt;
  return isa();
}

}  // namespace

std::string openblas_core() {
  auto* name = find<const char*()>("openblas_get_corename");
  return name == nullptr ? "" : name();
}

bool openblas_knows(std::string_view core) {
  // A build that shows not even the table in use hides them all: then the name is worth trying,
  // since OpenBLAS passes over one that it does not know.
  return has_table(core) || !has_table(openblas_core());
}

std::string onednn_isa() {
  const auto isa = effective_isa();
  auto* name = find<const char*(unsigned)>("dnnl_cpu_isa2str");
  if (!isa || name == nullptr) return "";
  const std::string text = name(*isa);
  constexpr std::string_view kPrefix = "cpu_isa_";
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

std::optional<Vectors> onednn_vectors() {
  const auto isa = effective_isa();
  if (!isa) return std::nullopt;
  const auto includes = [&](unsigned bits) { return (*isa & bits) == bits; };
  if (includes(0x27)) return Vectors::avx512;  // avx512_core
  if (includes(0x7)) return Vectors::avx2;
  return includes(0x3) ? Vectors::avx : Vectors::sse;
}

}  // namespace cohort
