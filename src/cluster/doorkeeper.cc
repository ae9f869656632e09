#include "cluster/doorkeeper.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/fail.h"
#include "base/log.h"

namespace cohort::cluster {
namespace {

/// Empty where it is not in a folder.
std::string path_of(const std::string& endpoint) {
  return os::is_unix(endpoint) ? endpoint.substr(os::unix_endpoint("").size()) : "";
}

}  // namespace

Doorkeeper::Doorkeeper(const std::string& endpoint, const Pass& pass, Purpose purpose)
    : listener_(os::listen_at(endpoint)), pass_(pass), purpose_(purpose), maker_(::getpid()) {}

Doorkeeper::~Doorkeeper() {
  if (::getpid() != maker_) return;
  const std::string path = path_of(endpoint());
  if (!path.empty()) ::unlink(path.c_str());
}

int Doorkeeper::add_to(std::vector<pollfd>& sockets) const {
  const bool takes = taking_ && (!is_full() || has_room_to_make());
  sockets.push_back({listener_.socket.get(), static_cast<short>(takes ? POLLIN : 0), 0});
  for (const Stranger& stranger : strangers_) {
    sockets.push_back({stranger.socket.get(), POLLIN, 0});
  }
  if (strangers_.empty()) return -1;
  const Stranger& oldest = strangers_.front();
  // Once it has had its time in a crowd, whoever comes wakes the owner.
  const bool in_a_crowd = is_full() && !oldest.in_a_crowd.passed();
  const auto left = (in_a_crowd ? oldest.in_a_crowd : oldest.deadline).remaining();
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

// A crowd is taken in some rounds, and not in one: the owner has others to serve.
std::vector<Doorkeeper::Admitted> Doorkeeper::look() {
  constexpr int kMostRounds = 8;
  std::vector<Admitted> admitted;
  for (int round = 0; round < kMostRounds; ++round) {
    if (taking_) take_new();
    move_all_on(admitted);
    if (!make_room()) break;
  }
  return admitted;
}

void Doorkeeper::move_all_on(std::vector<Admitted>& admitted) {
  for (Stranger& stranger : strangers_) {
    if (const auto member = move_on(stranger)) {
      admitted.push_back({std::move(stranger.socket), *member});
      stranger.gone = true;
    } else if (!stranger.gone && stranger.deadline.passed()) {
      drop(stranger, "it has not proved in time that it is of this run");
    }
  }
  forget_if([](const Stranger& stranger) { return stranger.gone; });
}

void Doorkeeper::forget_if(const std::function<bool(const Stranger&)>& shall_go) {
  if (std::erase_if(strangers_, shall_go) > 0) no_descriptor_ = false;
}

bool Doorkeeper::has_room_to_make() const {
  return strangers_.front().in_a_crowd.passed() ||
         std::ranges::any_of(strangers_, &Stranger::is_silent);
}

bool Doorkeeper::somebody_waits() const {
  pollfd listener{listener_.socket.get(), POLLIN, 0};
  return ::poll(&listener, 1, 0) > 0;
}

/// Where it is full and somebody waits. Whether there is room now.
bool Doorkeeper::make_room() {
  if (!taking_ || !is_full() || !somebody_waits()) return false;
  forget_if([](const Stranger& stranger) { return stranger.is_silent(); });
  if (is_full() && strangers_.front().in_a_crowd.passed()) {
    strangers_.pop_front();
    no_descriptor_ = false;
  }
  return !is_full();
}

void Doorkeeper::take_new() {
  errno = 0;
  for (std::size_t count = 0; count < kMostStrangers && !is_full(); ++count) {
    UniqueFd socket = os::accept_from(listener_.socket);
    if (!socket) break;
    if (!os::is_of_this_user(socket)) continue;
    strangers_.push_back({.socket = std::move(socket),
                          .accepting = Accepting(pass_.secret, purpose_),
                          .deadline = Deadline::in(kPatience),
                          .in_a_crowd = Deadline::in(kPatienceInACrowd)});
  }
  // With no descriptor left the listener would be readable all the time: a stranger makes room, once
  // it was heard, or nobody new is taken until the owner says that there is some.
  if (errno != EMFILE && errno != ENFILE) return;
  no_descriptor_ = !strangers_.empty();
  taking_ = no_descriptor_;
}

/// The member, once its proof is there and right. Reads no more than the handshake has: what
/// follows is for whoever gets the connection.
std::optional<Member> Doorkeeper::move_on(Stranger& stranger) {
  while (!stranger.gone) {
    char buffer[sizeof(Opening)];
    const std::size_t whole = stranger.answered ? sizeof(Closing) : sizeof(Opening);
    const auto count =
        ::recv(stranger.socket.get(), buffer, whole - stranger.bytes.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return std::nullopt;
    if (count <= 0) {
      stranger.gone = true;
      return std::nullopt;
    }
    stranger.bytes.append(buffer, static_cast<std::size_t>(count));
    if (stranger.bytes.size() < whole) continue;
    if (stranger.answered) {
      Closing closing;
      std::memcpy(closing.data(), stranger.bytes.data(), closing.size());
      const auto member = stranger.accepting.member(closing);
      if (!member) drop(stranger, "it does not know the secret of this run");
      return member;
    }
    Opening opening;
    std::memcpy(static_cast<void*>(&opening), stranger.bytes.data(), sizeof(opening));
    const auto answer = stranger.accepting.answer(opening);
    stranger.bytes.clear();
    stranger.answered = true;
    // 64 bytes always fit into a connection that has sent nothing yet.
    if (!answer || ::send(stranger.socket.get(), &*answer, sizeof(*answer), MSG_NOSIGNAL) !=
                       static_cast<ssize_t>(sizeof(*answer))) {
      drop(stranger, "it does not begin as a task of this run does");
    } else if (*answer == Answer{}) {
      drop(stranger, "it is of another build of Cohort");
    }
  }
  return std::nullopt;
}

void Doorkeeper::drop(Stranger& stranger, const char* why) {
  stranger.gone = true;
  if (has_warned_) return;
  has_warned_ = true;
  log_warn("A connection to {} was dropped: {}. Others may be, without a word.", endpoint(), why);
}

}  // namespace cohort::cluster
