#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "cluster/pass.h"

namespace cohort::cluster {

/// The first bytes of every connection of a run: each end proves to the other that it knows the
/// run's secret, before either reads anything else.
///
///   who connects                                          who listens
///   Opening: who I am, what for, a nonce   -- 64 bytes -->
///                                          <-- 64 --      Answer: a nonce, and its proof
///   checks the proof
///   Closing: its proof                     -- 32 -->      checks the proof: the connection is
///                                                         this member's from here on
///
/// A *nonce* is 32 bytes from the kernel, never used again, so that no old proof fits. A *proof* is
/// the HMAC, by the secret, of a word for the end that makes it, the opening and both nonces: one
/// end's proof is worth nothing as the other's, nor for another member, purpose or connection. All
/// sizes are fixed, nothing is allocated, and proofs are compared in constant time.
///
/// Who does not prove itself is told nothing: the connection is closed. Only who begins as a task of
/// another build does, with a magic of other digits, is answered by zeros, which prove nothing. A
/// member whose peer has a wrong proof, or zeros, gets Error(invalid) with the sentence that helps.
/// What follows on the connection is neither encrypted nor authenticated: on one host the kernel
/// keeps others out of it; between hosts see SECURITY.md.

/// What a connection is for. A proof for one is worth nothing for another.
enum class Purpose : std::uint32_t { store = 1, calls = 2, messages = 3 };

using Nonce = std::array<std::byte, 32>;

struct Opening {
  static constexpr std::uint32_t kMagic = 0x31414843;  // "CHA1"

  std::uint32_t magic = kMagic;
  Purpose purpose = Purpose::store;
  Member::Role role = Member::Role::worker;
  std::int32_t number = 0;
  std::int64_t generation = 0;
  std::int64_t reserved = 0;
  Nonce nonce = {};
};
static_assert(sizeof(Opening) == 64);

struct Answer {
  Nonce nonce = {};
  Secret::Mac proof = {};

  bool operator==(const Answer&) const = default;
};
static_assert(sizeof(Answer) == 64);

using Closing = Secret::Mac;

/// The end that connects, on whatever carries the messages.
class Connecting {
 public:
  Connecting(const Secret& secret, Purpose purpose, const Member& self);

  const Opening& opening() const { return opening_; }
  /// Nothing where the other end's proof is wrong.
  std::optional<Closing> closing(const Answer& answer) const;

 private:
  Secret secret_;
  Opening opening_;
};

/// The end that listens.
class Accepting {
 public:
  Accepting(const Secret& secret, Purpose purpose);

  /// Nothing where it cannot be an opening for this purpose, zeros where it is one of another build.
  std::optional<Answer> answer(const Opening& opening);
  /// Who is at the other end; nothing where its proof is wrong.
  std::optional<Member> member(const Closing& closing) const;

 private:
  Secret secret_;
  Purpose purpose_;
  Opening opening_;
  Answer answer_;
};

/// Proves both ends of a new socket to each other, as the end that connects. Throws Error(invalid)
/// where the other end does not know the secret, Error(peer_lost) where it closes the connection
/// before it has shown that it does, Error(timeout) at the deadline. `server` is for their words.
void prove(const UniqueFd& socket, const Connecting& connecting, const std::string& server,
           Deadline deadline);

/// What a connection shall be, and how errors name the other end.
struct Meeting {
  const Secret& secret;
  Purpose purpose;
  Member self;
  std::string server;
};

/// Connects by `connect`, which throws where it cannot, and proves. A door in a crowd may drop who
/// is not quick enough; so where the other end closes the connection before it has answered, it tries
/// again, for ten seconds from then on or until the deadline. Throws as prove() and connect().
UniqueFd meet(const Meeting& meeting, const std::function<UniqueFd()>& connect, Deadline deadline);

}  // namespace cohort::cluster
