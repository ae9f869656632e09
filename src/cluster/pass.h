#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cluster/secret.h"
#include "os/private_folder.h"

namespace cohort::cluster {

/// Who is at an end of a connection: a task of the run, as it has said and proved (handshake.h). The
/// launcher, which speaks for all, is none: it has the store in its own memory and connects to nobody.
struct Member {
  enum class Role : std::uint32_t { worker, server };

  Role role = Role::worker;
  std::int32_t number = 0;  ///< Of the worker in its group, or of the server.
  /// Of the group it works in; kEveryGeneration where a connection outlives groups.
  std::int64_t generation = kEveryGeneration;

  static constexpr std::int64_t kEveryGeneration = -1;

  bool operator==(const Member&) const = default;
};

/// "worker 3", "server 0".
std::string name_of(const Member& member);

/// How keys of a store end that this member alone may write: "@worker-3", "@server-0".
std::string mark_of(const Member& member);

/// What a task needs to meet the others of its run: the secret they share, and the folder of this
/// host in which they listen. Everything that connects or listens gets it from the store of its run
/// (Store::pass). A copy is the same pass; the folder goes with the last copy in the processes that
/// have made or opened it.
struct Pass {
  Secret secret;
  std::shared_ptr<const os::PrivateFolder> held;
  std::string folder;  ///< Its path.

  /// For a new run: a new secret and a new folder.
  static Pass draw();

  /// An address on this host that nobody else has, as others may be told it: "unix:<name>-<number>",
  /// without the folder, which is theirs too. No task takes a path from another.
  std::string new_address(const std::string& name) const;

  /// Where an address is: in the folder, or "host:port" as it stands. Throws Error(corrupt) for one
  /// that would lead out of the folder.
  std::string endpoint_of(const std::string& address) const;
};

}  // namespace cohort::cluster
