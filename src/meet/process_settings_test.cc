// What malloc does after keep_large_blocks(), as the kernel sees it. In a process of its own: nothing undoes
// it.

#include "meet/process_settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace cohort::meet {
namespace {

/// Of the mapping that `at` stands in, as /proc/self/smaps calls them.
std::string flags_of_mapping(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      is_here = begin <= address && address < end;
    } else if (is_here && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return "";
}

/// Of a kernel that has none, or that counts every promise of memory, nothing is asked.
bool may_ask_for_huge_pages() {
  std::ifstream policy("/proc/sys/vm/overcommit_memory");
  return std::filesystem::exists("/sys/kernel/mm/transparent_hugepage") && policy.get() != '2';
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void exit_unless(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}

TEST(KeepLargeBlocksDeathTest, LargeBlocksComeBackInHugePagesAndCostNothingBefore) {
  const auto body = [] {
    const std::size_t before = resident_bytes();
    keep_large_blocks();
    exit_unless(resident_bytes() < before + (16 << 20), "memory was taken before anybody asked");
    constexpr std::size_t kBlock = 32 << 20;
    void* const first = std::malloc(kBlock);
    std::memset(first, 1, kBlock);
    const std::string flags = flags_of_mapping(static_cast<std::byte*>(first) + kBlock / 2);
    exit_unless(flags.find(" hg ") != std::string::npos || !may_ask_for_huge_pages(),
                "not in huge pages");
    std::free(first);
    exit_unless(resident_bytes() >= before + kBlock / 2, "given back to the system");
    void* const again = std::malloc(kBlock);
    exit_unless(again == first, "not handed out again");
    std::_Exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cohort::meet
