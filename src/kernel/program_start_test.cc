// A program that starts itself anew, seen from the one that started it: this very test program, of
// which one test, that does not count otherwise, is its main.

#include "kernel/program_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "base/files.h"
#include "os/this_process.h"

namespace cohort::kernel {
namespace {

using testing::HasSubstr;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "(none)" : value;
}

TEST(RunAgainProgram, DISABLED_TellsOfItself) {
  if (std::getenv(kMark) == nullptr) {
    fmt::print("first {}\n", ::getpid());
    std::fflush(stdout);
    std::string value = "PASSIVE";
    if (std::getenv("TOO_LARGE") != nullptr) value.resize(1 << 20, 'x');  // For the kernel.
    run_again({{"OMP_WAIT_POLICY", value, ""}});
    fmt::print("went on, policy {}\n", variable("OMP_WAIT_POLICY"));
    return;
  }
  std::string line;
  std::getline(std::cin, line);
  fmt::print("again {}\npolicy {}, mark {}, own {}\ninput {}\nfolder {}\nfile {}\nwords {}\n",
             ::getpid(), variable("OMP_WAIT_POLICY"), variable(kMark), variable("OWN"), line,
             std::filesystem::current_path().string(),
             std::filesystem::read_symlink("/proc/self/exe").string(), os::command_line());
}

const std::string kWords = " --gtest_also_run_disabled_tests --gtest_filter=RunAgainProgram.*";

/// What the program says when a shell runs `line`, in which PROGRAM stands for it.
std::string output_of(std::string line) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  line.replace(line.find("PROGRAM"), 7, "'" + program + "'" + kWords);
  FILE* pipe = ::popen(("unset COHORT_KERNELS OMP_WAIT_POLICY; " + line).c_str(), "r");
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  EXPECT_EQ(::pclose(pipe), 0) << output;
  return output;
}

std::string word_after(const std::string& text, const std::string& key) {
  if (text.find(key) == std::string::npos) return "no " + key + "in " + text;
  const auto begin = text.find(key) + key.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(RunAgain, KeepsAllButTheEnvironment) {
  const TemporaryFolder folder;
  const std::string said = output_of("cd '" + folder.path().string() +
                                     "' && echo hello | OWN=yes PROGRAM 'two words' '' last");
  EXPECT_EQ(word_after(said, "first "), word_after(said, "again ")) << "the process id";
  EXPECT_THAT(said, HasSubstr("policy PASSIVE, mark OMP_WAIT_POLICY=PASSIVE, own yes\n"));
  EXPECT_THAT(said, HasSubstr("input hello\n"));
  EXPECT_THAT(said, HasSubstr("folder " + folder.path().string() + "\n"));
  EXPECT_THAT(said,
              HasSubstr("file " + std::filesystem::read_symlink("/proc/self/exe").string() + "\n"));
  EXPECT_THAT(word_after(said, "words "), HasSubstr(R"("two words", "", "last"])"));
}

TEST(RunAgain, GoesOnWhereTheSystemRefuses) {
  EXPECT_THAT(output_of("TOO_LARGE=yes PROGRAM"), HasSubstr("went on, policy (none)\n"));
}

TEST(RunAgain, ThroughTheLoaderWhereItWasStartedSo) {
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(loader)) GTEST_SKIP() << "the loader is another here";
  const std::string said = output_of(loader + " PROGRAM last < /dev/null");
  EXPECT_THAT(said, HasSubstr("policy PASSIVE"));
  EXPECT_THAT(word_after(said, "words "), HasSubstr(R"("last"])"));
}

}  // namespace
}  // namespace cohort::kernel
