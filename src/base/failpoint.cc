#include "base/failpoint.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <deque>
#include <new>
#include <sstream>

#include "base/fail.h"

namespace cohort {
namespace {

struct Failpoint {
  std::string name;
  void (*act)(const std::string& name) = nullptr;
  std::atomic<int> passings_left = 1;  // It acts when this comes to 0, and goes on below.
};

struct Action {
  const char* name;
  void (*act)(const std::string& name);
};

constexpr Action kActions[] = {
    {"error",
     [](const std::string& name) { fail(ErrorCode::io, "failpoint {} was made to fail", name); }},
    {"no-space",
     [](const std::string& name) {
       fail(ErrorCode::no_space, "failpoint {} was made to find no space", name);
     }},
    {"no-memory", [](const std::string&) { throw std::bad_alloc(); }},
    {"exit", [](const std::string&) { ::_exit(1); }},
    {"kill", [](const std::string&) { ::kill(::getpid(), SIGKILL); }},
    {"stop", [](const std::string&) { ::kill(::getpid(), SIGSTOP); }},
};

// What a passing looks at first, so that it costs nothing where nothing is set.
std::atomic<bool> any_set = false;

// A deque, because an atomic cannot be moved.
std::deque<Failpoint>& failpoints() {
  static std::deque<Failpoint> all;
  return all;
}

int passing_of(const std::string& item, const std::string& digits) {
  int passing = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), passing);
  if (error != std::errc() || end != digits.data() + digits.size() || passing < 1) {
    fail(ErrorCode::invalid, "failpoint \"{}\": {} is no number of a passing; the first is 1", item,
         digits);
  }
  return passing;
}

void add_failpoint(const std::string& item) {
  const auto equals = item.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail(ErrorCode::invalid, "failpoint \"{}\" is not of the form NAME=ACTION[@N]", item);
  }
  const auto at = item.find('@', equals);
  const std::string wanted = item.substr(equals + 1, at - equals - 1);
  const auto* action =
      std::ranges::find_if(kActions, [&](const Action& known) { return wanted == known.name; });
  if (action == std::end(kActions)) {
    fail(ErrorCode::invalid,
         "failpoint \"{}\": there is no action {}; use error, no-space, no-memory, exit, kill or "
         "stop",
         item, wanted);
  }
  Failpoint& point = failpoints().emplace_back();
  point.name = item.substr(0, equals);
  point.act = action->act;
  if (at != std::string::npos) point.passings_left = passing_of(item, item.substr(at + 1));
}

}  // namespace

// Passings are counted by all threads together, and exactly one of them is the N-th.
void failpoint(const char* name) {
  if (!any_set.load(std::memory_order_relaxed)) return;
  for (Failpoint& point : failpoints()) {
    if (point.name == name && point.passings_left.fetch_sub(1) == 1) point.act(point.name);
  }
}

void set_failpoints(const std::string& text) {
  any_set = false;
  failpoints().clear();
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) add_failpoint(item);
  any_set = !failpoints().empty();
}

}  // namespace cohort
