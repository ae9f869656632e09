#pragma once

#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "cluster/handshake.h"
#include "os/endpoint.h"

namespace cohort::cluster {

/// Lets in who proves to be of the run (cluster/handshake.h), for whoever listens: it owns the
/// listening socket and the connections that have not proved themselves yet.
///
///   listener ──▶ strangers (at most 64, at most 10 s each) ──▶ admitted: a socket and its member
///
/// A stranger costs one descriptor and about 200 bytes, for ten seconds at most. Where there are as
/// many as may be, others wait in the kernel. Then whoever has not said a word goes at once, since a
/// member speaks as soon as it is connected (and one that was too slow comes again: meet()); of those
/// that have spoken the oldest goes once it has had a second. So a crowd of members that come at once
/// all get in, and idle ones cannot keep members out. The same holds for as few as there are
/// descriptors left in the process. Strangers are dropped without a word to them, but for who begins
/// as a task of another build does (handshake.h); of the first the log says so.
///
/// It has no thread: its owner polls what add_to() names and calls look(). One thread at a time.
class Doorkeeper {
 public:
  static constexpr std::size_t kMostStrangers = 64;
  static constexpr Duration kPatience = std::chrono::seconds(10);
  static constexpr Duration kPatienceInACrowd = std::chrono::seconds(1);

  /// Listens from here on. Throws Error(io).
  Doorkeeper(const std::string& endpoint, const Pass& pass, Purpose purpose);
  /// A socket in a folder is removed, by the process that made it.
  ~Doorkeeper();
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

  const std::string& endpoint() const { return listener_.endpoint; }

  /// Adds what shall be polled; how long poll() may wait at most, in milliseconds: -1 for ever.
  int add_to(std::vector<pollfd>& sockets) const;

  struct Admitted {
    UniqueFd socket;
    Member member;
  };

  /// Takes new connections, and moves all that wait on. Returns who has proved itself.
  std::vector<Admitted> look();

  /// Whether new connections are taken; otherwise they wait in the kernel. Becomes false by itself
  /// where the process has no descriptor left: the owner sets it again once it has closed some.
  bool is_taking() const { return taking_; }
  void set_taking(bool taking) {
    taking_ = taking;
    no_descriptor_ = false;
  }

 private:
  struct Stranger {
    UniqueFd socket;
    Accepting accepting;
    Deadline deadline;
    Deadline in_a_crowd;
    std::string bytes = {};  ///< Of the opening, then of the closing.
    bool answered = false;
    bool gone = false;

    bool is_silent() const { return !answered && bytes.empty(); }
  };

  bool is_full() const { return no_descriptor_ || strangers_.size() >= kMostStrangers; }
  bool has_room_to_make() const;
  bool somebody_waits() const;
  void take_new();
  bool make_room();
  void forget_if(const std::function<bool(const Stranger&)>& shall_go);
  void move_all_on(std::vector<Admitted>& admitted);
  std::optional<Member> move_on(Stranger& stranger);
  void drop(Stranger& stranger, const char* why);

  os::Listener listener_;
  const Pass pass_;
  const Purpose purpose_;
  const pid_t maker_;
  bool taking_ = true;
  // There was none for one who waits: no more strangers than there are, until one of them goes.
  bool no_descriptor_ = false;
  bool has_warned_ = false;
  std::list<Stranger> strangers_;  // The oldest first.
};

}  // namespace cohort::cluster
