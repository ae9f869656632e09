#include "cluster/handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/fail.h"
#include "os/endpoint.h"
#include "os/tcp_socket.h"

namespace cohort::cluster {
namespace {

template <class Plain>
std::span<const std::byte> bytes_of(const Plain& plain) {
  return std::as_bytes(std::span<const Plain, 1>(&plain, 1));
}

/// Which end makes a proof: one end's is worth nothing as the other's.
constexpr std::string_view kAccepts = "accepts";
constexpr std::string_view kConnects = "connects";

/// "CHA2" where this build has "CHA1", or the other way round.
bool is_of_another_build(const Opening& opening) {
  constexpr std::uint32_t kWord = 0xffffff;
  return opening.magic != Opening::kMagic && (opening.magic & kWord) == (Opening::kMagic & kWord);
}

Secret::Mac proof(const Secret& secret, std::string_view end, const Opening& opening,
                  const Nonce& answer) {
  return secret.mac({std::as_bytes(std::span(end.data(), end.size())), bytes_of(opening), answer});
}

void send_all(const UniqueFd& socket, std::span<const std::byte> bytes, const std::string& server,
              Deadline deadline) {
  while (!bytes.empty()) {
    const auto count = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      if (!os::wait_for_socket(socket, POLLOUT, deadline)) {
        fail(ErrorCode::timeout, "{} did not answer before the deadline.", server);
      }
    } else if (errno != EINTR) {
      fail(ErrorCode::peer_lost, "The connection to {} was lost: {}.", server,
           std::generic_category().message(errno));
    }
  }
}

Answer receive_answer(const UniqueFd& socket, const std::string& server, Deadline deadline) {
  Answer answer;
  std::span<std::byte> rest = std::as_writable_bytes(std::span<Answer, 1>(&answer, 1));
  while (!rest.empty()) {
    const auto count = ::recv(socket.get(), rest.data(), rest.size(), 0);
    if (count > 0) {
      rest = rest.subspan(static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EAGAIN) {
      if (!os::wait_for_socket(socket, POLLIN, deadline)) {
        fail(ErrorCode::timeout, "{} did not answer before the deadline.", server);
      }
    } else if (count == 0 || errno != EINTR) {
      fail(ErrorCode::peer_lost, "{} closed the connection before it had proved who it is.",
           server);
    }
  }
  return answer;
}

}  // namespace

Connecting::Connecting(const Secret& secret, Purpose purpose, const Member& self)
    : secret_(secret),
      opening_{.purpose = purpose,
               .role = self.role,
               .number = self.number,
               .generation = self.generation} {
  draw_bytes(opening_.nonce);
}

std::optional<Closing> Connecting::closing(const Answer& answer) const {
  if (!equal(proof(secret_, kAccepts, opening_, answer.nonce), answer.proof)) return std::nullopt;
  return proof(secret_, kConnects, opening_, answer.nonce);
}

Accepting::Accepting(const Secret& secret, Purpose purpose) : secret_(secret), purpose_(purpose) {}

std::optional<Answer> Accepting::answer(const Opening& opening) {
  if (is_of_another_build(opening)) return Answer{};
  if (opening.magic != Opening::kMagic || opening.purpose != purpose_ ||
      opening.role > Member::Role::server) {
    return std::nullopt;
  }
  opening_ = opening;
  draw_bytes(answer_.nonce);
  answer_.proof = proof(secret_, kAccepts, opening_, answer_.nonce);
  return answer_;
}

std::optional<Member> Accepting::member(const Closing& closing) const {
  const bool has_answered = answer_ != Answer{};
  if (!has_answered || !equal(proof(secret_, kConnects, opening_, answer_.nonce), closing))
    return std::nullopt;
  return Member{opening_.role, opening_.number, opening_.generation};
}

void prove(const UniqueFd& socket, const Connecting& connecting, const std::string& server,
           Deadline deadline) {
  if (!os::is_of_this_user(socket)) {
    fail(ErrorCode::invalid, "{} belongs to another user.", server);
  }
  send_all(socket, bytes_of(connecting.opening()), server, deadline);
  const Answer answer = receive_answer(socket, server, deadline);
  if (answer == Answer{}) {
    fail(ErrorCode::invalid,
         "{} is of another build of Cohort; start all tasks of a run with the same.", server);
  }
  const auto closing = connecting.closing(answer);
  if (!closing) {
    fail(ErrorCode::invalid,
         "{} does not know the secret of this run; where tasks are started one by one, let "
         "COHORT_SECRET_FILE name the same file for all of them.",
         server);
  }
  send_all(socket, *closing, server, deadline);
}

UniqueFd meet(const Meeting& meeting, const std::function<UniqueFd()>& connect, Deadline deadline) {
  constexpr Duration kPatience = std::chrono::seconds(10);
  constexpr Duration kPause = std::chrono::milliseconds(5);
  std::optional<Deadline> last_try;  // Once it was dropped: waiting at the door costs nothing.
  while (true) {
    UniqueFd socket = connect();
    try {
      prove(socket, Connecting(meeting.secret, meeting.purpose, meeting.self), meeting.server,
            deadline);
      return socket;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost) throw;
      if (!last_try) last_try = Deadline::in(std::min(deadline.remaining(), kPatience));
      if (last_try->passed()) throw;
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace cohort::cluster
