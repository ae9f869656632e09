// Holds the HMAC against published values, and files with secrets to their modes, owners and sizes.

#include "cluster/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/fail.h"
#include "base/files.h"

namespace cohort::cluster {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string hex(const Secret::Mac& mac) {
  std::string text;
  for (const std::byte byte : mac) text += fmt::format("{:02x}", static_cast<int>(byte));
  return text;
}

class SecretFileTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& text, mode_t mode = 0600) {
    const auto file = folder_.path() / "secret";
    std::ofstream(file, std::ios::binary) << text;
    ::chmod(file.c_str(), mode);
    return file;
  }

  std::string complaint(const std::filesystem::path& file) {
    try {
      Secret::from_file(file);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
};

/// Test case 2 of RFC 4231 has the key "Jefe"; its HMAC is the same with zeros behind it.
TEST_F(SecretFileTest, MacIsHmacWithSha256) {
  std::string key(32, '\0');
  std::memcpy(key.data(), "Jefe", 4);
  const Secret secret = Secret::from_file(write(key));
  EXPECT_EQ(hex(secret.mac({bytes("what do ya want "), bytes("for nothing?")})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_F(SecretFileTest, IsItsUsersAloneOrRefused) {
  const std::string key(32, 'k');
  EXPECT_EQ(complaint(write(key)), "");
  for (const mode_t mode : {0640, 0604, 0660, 0644}) {
    EXPECT_THAT(complaint(write(key, mode)), HasSubstr("chmod 600")) << std::oct << mode;
  }
  const auto file = write(key);
  std::filesystem::create_symlink(file, folder_.path() / "link");
  EXPECT_THAT(complaint(folder_.path() / "link"), HasSubstr("cannot be opened"));
  EXPECT_THAT(complaint(folder_.path()), HasSubstr("plain file"));
  EXPECT_THAT(complaint(folder_.path() / "none"), HasSubstr("No such file"));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
    EXPECT_THAT(complaint(file), HasSubstr("not this user's alone"));
  }
}

TEST_F(SecretFileTest, HasEnoughBytesAndNotTooMany) {
  EXPECT_THAT(complaint(write("")), HasSubstr("has 0 bytes"));
  EXPECT_THAT(complaint(write(std::string(31, 'k'))), HasSubstr("has 31 bytes"));
  EXPECT_EQ(complaint(write(std::string(4096, 'k'))), "");
  EXPECT_THAT(complaint(write(std::string(4097, 'k'))), HasSubstr("too many"));
  const auto long_one = Secret::from_file(write(std::string(100, 'k'))).mac({});
  EXPECT_NE(hex(long_one), hex(Secret::from_file(write(std::string(101, 'k'))).mac({})));
}

TEST_F(SecretFileTest, AllWhoComeAtOnceGetTheSame) {
  const auto file = folder_.path() / "fresh";
  std::vector<std::string> macs(8);
  {
    std::vector<std::jthread> comers;
    for (std::string& mac : macs) {
      comers.emplace_back([&] { mac = hex(Secret::in_file(file).mac({})); });
    }
  }
  for (const std::string& mac : macs) EXPECT_EQ(mac, macs.front());
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1)
      << "nothing else is left";
}

TEST(Secret, IsNeverTheSameAndRunsOfOneUserDiffer) {
  const Secret one = Secret::draw();
  EXPECT_FALSE(equal(one.mac({}), Secret::draw().mac({})));
  EXPECT_TRUE(equal(one.of("a:1").mac({}), one.of("a:1").mac({})));
  EXPECT_FALSE(equal(one.of("a:1").mac({}), one.of("a:2").mac({})));
}

/// Whether a child that is forked while another thread makes the first MAC of its process can make one.
bool can_prove_itself_after_fork(int delay) {
  const pid_t process = ::fork();
  if (process == 0) {
    const Secret secret = Secret::draw();
    std::thread other([&] { secret.mac({}); });
    std::atomic<int> turns = 0;
    while (turns.fetch_add(1) < delay) {
    }
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // Only one that hangs.
      secret.mac({});
      ::raise(SIGKILL);  // An exit would have sanitizers look for the other thread.
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    other.join();
    ::_exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : 1);
  }
  int status = 1;
  return ::waitpid(process, &status, 0) == process && status == 0;
}

// A launcher forks a worker that replaces another while those that live prove themselves to its store.
TEST(SecretDeathTest, AForkedWorkerWaitsForNoOtherThreadOfItsLauncher) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // In a program that has made no MAC yet.
  EXPECT_EXIT(
      {
        bool good = true;
        for (int i = 0; i < 150 && good; ++i) good = can_prove_itself_after_fork(i % 50 * 20'000);
        ::_exit(good ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cohort::cluster
