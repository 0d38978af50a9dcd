// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tick sees that a thread waits by sched_yield() of libc's.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>

#include "sched/interrupted_call.h"

using namespace bosk;

namespace {

std::atomic<int> looks;
std::atomic<int> at_yield;

void on_signal(int, siginfo_t*, void* context) {
  looks.fetch_add(1);
  if (sched::is_at_yield(static_cast<ucontext_t*>(context))) at_yield.fetch_add(1);
}

/// How many of so many looks found a yield.
template <typename Step>
int looks_at(int wanted, Step step) {
  looks.store(0);
  at_yield.store(0);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval every_ms{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &every_ms, nullptr);
  while (looks.load() < wanted) step();
  const itimerval none{};
  setitimer(ITIMER_PROF, &none, nullptr);
  return at_yield.load();
}

TEST(AtYield, is_seen_where_the_thread_yields) {
#if defined(__x86_64__)
  EXPECT_GT(looks_at(20, [] { sched_yield(); }), 0);
#else
  GTEST_SKIP() << "not for emulators, which show other code";
#endif
}

TEST(AtYield, is_not_seen_elsewhere) {
  volatile long counter = 0;
  EXPECT_EQ(looks_at(20, [&] { counter = counter + 1; }), 0);
  EXPECT_EQ(looks_at(20, [] { getppid(); }), 0);
}

}  // namespace
