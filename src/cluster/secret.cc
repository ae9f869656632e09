#include "cluster/secret.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/sha256.h"
#include "base/unique_fd.h"

namespace cohort::cluster {
namespace {

constexpr std::size_t kLongestFile = 4096;

std::vector<std::byte> read_all(const UniqueFd& fd, const std::filesystem::path& file) {
  std::vector<std::byte> bytes(kLongestFile + 1);
  std::size_t have = 0;
  while (have < bytes.size()) {
    const auto count = ::read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_errno("Cannot read the secret in " + file.string());
    if (count == 0) break;
    have += static_cast<std::size_t>(count);
  }
  bytes.resize(have);
  return bytes;
}

void check_owner(const UniqueFd& fd, const std::filesystem::path& file) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_errno("Cannot look at " + file.string());
  if (S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0) {
    return;
  }
  fail(ErrorCode::invalid,
       "The secret in {} is not this user's alone; it must be a plain file of yours with mode 0600 "
       "(chmod 600).",
       file.string());
}

}  // namespace

void draw_bytes(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::getrandom(bytes.data(), bytes.size(), 0);
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) fail_errno("The kernel has no random bytes");
  }
}

bool equal(const Secret::Mac& one, const Secret::Mac& other) {
  return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

Secret Secret::draw() {
  Bytes bytes;
  draw_bytes(bytes);
  return Secret(bytes);
}

Secret Secret::from_file(const std::filesystem::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) {
    fail(ErrorCode::invalid, "The secret in {} cannot be opened: {}.", file.string(),
         std::strerror(errno));
  }
  check_owner(fd, file);
  const std::vector<std::byte> text = read_all(fd, file);
  if (text.size() < kBytes || text.size() > kLongestFile) {
    fail(ErrorCode::invalid,
         "The secret in {} has {} bytes; it needs {} to {} (make one with: "
         "head -c 32 /dev/urandom > FILE; chmod 600 FILE).",
         file.string(), text.size() > kLongestFile ? "too many" : std::to_string(text.size()),
         kBytes, kLongestFile);
  }
  Bytes bytes{};
  if (text.size() == kBytes) {
    std::memcpy(bytes.data(), text.data(), kBytes);
    return Secret(bytes);
  }
  return Secret(Secret(bytes).mac({text}));
}

// link() makes the name appear with all of the file, and only where there is none yet.
Secret Secret::in_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    std::string fresh = file.string() + ".XXXXXX";
    const UniqueFd fd(::mkostemp(fresh.data(), O_CLOEXEC));  // Mode 0600.
    if (!fd) fail_errno("Cannot write the secret beside " + file.string());
    const Secret secret = draw();
    const auto written = ::write(fd.get(), secret.bytes_.data(), kBytes);
    const bool whole = written == static_cast<ssize_t>(kBytes);
    if (whole) std::ignore = ::link(fresh.c_str(), file.c_str());
    ::unlink(fresh.c_str());
    if (!whole) fail(ErrorCode::no_space, "There is no room for the secret {}.", file.string());
  }
  return from_file(file);
}

Secret Secret::of(std::string_view name) const {
  return Secret(mac({std::as_bytes(std::span(name.data(), name.size()))}));
}

// By hand, and not by OpenSSL's HMAC: that takes locks of the whole process, and a worker that was
// forked while another thread had one would wait for it for ever.
Secret::Mac Secret::mac(std::initializer_list<std::span<const std::byte>> parts) const {
  constexpr std::size_t kBlock = 64;
  const auto begin = [this](std::byte pad) {
    std::array<std::byte, kBlock> key{};
    std::ranges::copy(bytes_, key.begin());
    for (std::byte& byte : key) byte ^= pad;
    Sha256 hash;
    hash.add(key);
    return hash;
  };
  Sha256 inner = begin(std::byte{0x36});
  for (const auto part : parts) inner.add(part);
  Sha256 outer = begin(std::byte{0x5c});
  outer.add(inner.finish());
  return outer.finish();
}

}  // namespace cohort::cluster
