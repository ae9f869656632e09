// Proves that a signal the process was started to ignore (nohup) is not watched.

#include "os/signal_watch.h"

#include <gtest/gtest.h>

namespace cohort::os {
namespace {

using namespace std::chrono_literals;

TEST(SignalWatch, WhatIsIgnoredStaysIgnored) {
  const auto before = ::signal(SIGUSR2, SIG_IGN);
  {
    SignalWatch watch({SIGUSR1, SIGUSR2});
    ::raise(SIGUSR2);
    ::raise(SIGUSR1);
    EXPECT_EQ(watch.wait(1min), SIGUSR1);
    EXPECT_EQ(watch.wait(0ms), std::nullopt);
  }
  ::signal(SIGUSR2, before);
}

}  // namespace
}  // namespace cohort::os
