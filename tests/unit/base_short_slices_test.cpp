// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel thread of the runtime's own asks the kernel for.
#include "base/short_slices.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

namespace bosk::base {
namespace {

struct Attributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

Attributes attributes() {
  Attributes all{};
  EXPECT_EQ(raw_syscall(SYS_sched_getattr, 0, address_of(&all), sizeof all, 0), 0);
  return all;
}

TEST(ShortSlices, NothingElseChanges) {
  std::thread([] {
    ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(thread_id()), 3), 0);
    const Attributes before = attributes();
    ask_for_short_slices();
    const Attributes after = attributes();
    EXPECT_EQ(after.policy, before.policy);
    EXPECT_EQ(after.nice, 3);
    EXPECT_EQ(after.flags, before.flags);
    // Linux before 6.12 says 0, whatever it was told.
    EXPECT_TRUE(before.runtime == 0 || after.runtime < before.runtime) << after.runtime;
  }).join();
  const uint64_t others = attributes().runtime;
  EXPECT_TRUE(others == 0 || others > 100'000U) << others;  // not of other threads
}

TEST(ShortSlices, OtherPoliciesAreLeftAlone) {
  std::thread([] {
    const sched_param none{};
    ASSERT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
    const Attributes before = attributes();
    ask_for_short_slices();
    const Attributes after = attributes();
    EXPECT_EQ(after.policy, static_cast<uint32_t>(SCHED_IDLE));
    EXPECT_EQ(after.runtime, before.runtime);
  }).join();
}

}  // namespace
}  // namespace bosk::base
