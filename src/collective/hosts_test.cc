#include "collective/hosts.h"

#include <gmock/gmock.h>

#include <numeric>

#include "collective/make_schedule.h"
#include "collective/ring.h"
#include "collective/schedule_check_test_support.h"

namespace cohort {
namespace {

using testing::HasSubstr;
using testing::Not;
using Hosts = std::vector<int>;

const Hosts kEven[] = {{0, 0, 1, 1},       {0, 1, 0, 1},       {0, 1, 1, 0},
                       {0, 0, 0, 1, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 1, 2, 2, 1, 0, 0, 1, 2}};

std::vector<Schedule> schedules_of(const Hosts& hosts, std::size_t count) {
  std::vector<Schedule> schedules;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    schedules.push_back(hosts_all_reduce(static_cast<int>(rank), hosts, count));
  }
  return schedules;
}

TEST(HostsSchedule, EveryPartReachesEveryRankOnceInTheSameSum) {
  for (const Hosts& hosts : kEven) {
    for (const std::size_t count : {0, 1, 16, 17, 100, 1000, 4096}) {
      SCOPED_TRACE(testing::PrintToString(hosts) + " " + std::to_string(count));
      const ScheduleOutcome outcome = check_schedules(schedules_of(hosts, count), count);
      ASSERT_EQ(outcome.problem, "");
      for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
        EXPECT_EQ(outcome.sums[rank], outcome.sums[0]);
        for (const auto& parts : outcome.parts[rank]) {
          EXPECT_EQ(parts, std::vector<int>(hosts.size(), 1));
        }
      }
    }
  }
}

/// Elements that ranks of this host send to other hosts.
std::size_t sent_by(int host, const Hosts& hosts, const std::vector<Schedule>& schedules) {
  std::size_t sent = 0;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] != host) continue;
    for (const Step& step : schedules[rank].steps) {
      for (const Action& action : step.actions) {
        const bool leaves = hosts[static_cast<std::size_t>(action.peer)] != host;
        if (action.kind == ActionKind::send && leaves) sent += action.segment.size();
      }
    }
  }
  return sent;
}

TEST(HostsSchedule, AHostSendsItsShareOnceHoweverManyRanksItHas) {
  const std::size_t count = 16 * 3 * 3 * 100;
  const Hosts hosts = {0, 0, 0, 1, 1, 1, 2, 2, 2};
  const auto schedules = schedules_of(hosts, count);
  for (int host = 0; host < 3; ++host)
    EXPECT_EQ(sent_by(host, hosts, schedules), 2 * 2 * count / 3);
}

TEST(HostsSchedule, IsForHostsOfEqualSize) {
  for (const Hosts& hosts : kEven) EXPECT_TRUE(even_hosts(hosts));
  for (const Hosts& hosts : {Hosts{0, 0}, Hosts{0, 1}, Hosts{0, 0, 1}, Hosts{0}, Hosts{}}) {
    EXPECT_FALSE(even_hosts(hosts));
  }
}

TEST(HostsSchedule, IsWhatAutoMeansForLargeBuffersThere) {
  const Hosts even = {0, 0, 1, 1}, uneven = {0, 0, 1};
  EXPECT_THAT(all_reduce_schedule("auto", 0, even, 100'000).name, HasSubstr("hosts"));
  EXPECT_THAT(all_reduce_schedule("auto", 0, even, 100).name, Not(HasSubstr("hosts")));
  EXPECT_THAT(all_reduce_schedule("auto", 0, uneven, 100'000).name, HasSubstr("ring"));
  EXPECT_THAT(all_reduce_schedule("tree", 0, even, 100'000).name, HasSubstr("tree"));
}

}  // namespace
}  // namespace cohort
