#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string_view>

namespace cohort::cluster {

/// What every task of a run knows and nobody else does: 32 bytes. It never travels: tasks inherit
/// it by fork(), or read it from a file that only their user can read, and prove to each other that
/// they have it (cluster/handshake.h).
class Secret {
 public:
  static constexpr std::size_t kBytes = 32;
  using Bytes = std::array<std::byte, kBytes>;
  /// What only who has the secret can make of a message.
  using Mac = std::array<std::byte, 32>;

  /// A new one, from the kernel.
  static Secret draw();

  /// From a file: its first 32 bytes where it has just so many, or what is made of all of it (32
  /// bytes to 4 KiB). Throws Error(invalid), naming the file, where it is too short or too long, is
  /// no plain file, or others than its owner, who must be this user, may read or write it.
  static Secret from_file(const std::filesystem::path& file);

  /// The one in `file`, which is made with a new one (mode 0600) where it is not there yet: of
  /// several processes that come at the same time all get the same. Throws like from_file().
  static Secret in_file(const std::filesystem::path& file);

  /// Another secret that follows from this one and a name: that of one run of a user.
  Secret of(std::string_view name) const;

  /// HMAC-SHA-256 over the parts, one after the other: who writes them keeps them apart.
  Mac mac(std::initializer_list<std::span<const std::byte>> parts) const;

 private:
  explicit Secret(const Bytes& bytes) : bytes_(bytes) {}

  Bytes bytes_;
};

/// In a time that says nothing about where they differ.
bool equal(const Secret::Mac& one, const Secret::Mac& other);

/// Bytes from the kernel that nobody can guess.
void draw_bytes(std::span<std::byte> bytes);

}  // namespace cohort::cluster
