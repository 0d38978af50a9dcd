// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whose the processor time of one kernel thread is that runs several threads.
#include "sched/cpu_clock.h"

#include <gtest/gtest.h>

#include "context/identity.h"
#include "sched/thread_clock.h"

namespace {

using namespace bosk;
using namespace bosk::sched;

constexpr uint64_t kMs = 1'000'000;

class CpuTimeOf : public ::testing::Test {
 protected:
  CpuTimeOf() {
    kernel_.tid = base::thread_id();
    me_.identity = &kernel_;
    other_.identity = &kernel_;
  }
  /// Of this kernel thread's processor time.
  void burn(uint64_t ns) const {
    const uint64_t until = thread_clock_now(kernel_.tid) + ns;
    while (thread_clock_now(kernel_.tid) < until) {
    }
  }
  static uint64_t ask(Thread* thread) {
    uint64_t ns = 0;
    EXPECT_TRUE(ask_cpu_time(thread, &ns));
    return ns;
  }
  void expect_passed(uint64_t since, uint64_t ns) {
    const uint64_t passed = ask(&me_) - since;
    EXPECT_GE(passed, ns);
    // A handful of questions.
    EXPECT_LT(passed, ns + 2 * kMs);
  }

  context::Identity kernel_;
  Thread me_;
  Thread other_;
};

TEST_F(CpuTimeOf, AThreadIsItsOwn) {
  EXPECT_FALSE(asks_cpu_time(&me_));
  const uint64_t start = ask(&me_);
  EXPECT_TRUE(asks_cpu_time(&me_));
  burn(4 * kMs);
  leave_cpu_time(&me_);
  const uint64_t others = ask(&other_);
  burn(20 * kMs);
  leave_cpu_time(&other_);
  resume_cpu_time(&me_, &kernel_);
  burn(kMs);
  expect_passed(start, 5 * kMs);
  leave_cpu_time(&me_);
  resume_cpu_time(&other_, &kernel_);
  const uint64_t passed = ask(&other_) - others;
  EXPECT_GE(passed, 20 * kMs);
  EXPECT_LT(passed, 22 * kMs);
}

TEST_F(CpuTimeOf, WhoNeverAsksIsLeftAlone) {
  leave_cpu_time(&me_);
  resume_cpu_time(&me_, &kernel_);
  EXPECT_EQ(me_.cpu_time.tid, 0);
  EXPECT_EQ(me_.cpu_time.value, 0u);
}

TEST_F(CpuTimeOf, WhoKeepsItsKernelThreadGoesOn) {
  const uint64_t start = ask(&me_);
  burn(4 * kMs);
  resume_cpu_time(&me_, &kernel_);
  expect_passed(start, 4 * kMs);
}

TEST_F(CpuTimeOf, WhatGuestsUseIsTakenOut) {
  const uint64_t start = ask(&me_);
  burn(4 * kMs);
  const uint64_t since = begin_excluding(&me_);
  burn(10 * kMs);
  leave_cpu_time(&me_);
  burn(10 * kMs);
  resume_cpu_time(&me_, &kernel_);
  exclude(&me_, since);
  expect_passed(start, 4 * kMs);
}

TEST_F(CpuTimeOf, NobodyElsesKernelThreadAnswers) {
  kernel_.tid += 1;
  uint64_t ns = 77;
  EXPECT_FALSE(ask_cpu_time(&me_, &ns));
  EXPECT_EQ(ns, 77u);
  EXPECT_FALSE(asks_cpu_time(&me_));
}

}  // namespace
