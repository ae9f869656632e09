#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

// OpenSSL's own; the one file that includes it is sha256.cc.
struct SHA256state_st;

namespace cohort {

/// SHA-256, computed by OpenSSL: for what somebody may have forged. Damage is found much faster by
/// crc32c.h. All functions may be called by any thread, and by a process that was forked while another
/// thread used OpenSSL: it is the plain SHA-256, which takes no locks of the whole process.

using Sha256Digest = std::array<std::byte, 32>;

/// The digest of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();

  void add(std::span<const std::byte> bytes);
  /// The last call.
  Sha256Digest finish();

 private:
  struct Free {
    void operator()(SHA256state_st* context) const;
  };
  std::unique_ptr<SHA256state_st, Free> context_;
};

Sha256Digest sha256(std::span<const std::byte> bytes);

/// Of a file as it is read, in little memory. Throws as InputFile (files.h) does.
Sha256Digest sha256_of_file(const std::filesystem::path& path);

/// Two lower-case digits a byte, as sha256sum prints them.
std::string to_hex(std::span<const std::byte> bytes);

}  // namespace cohort
