// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The initial thread's stack is found without libc's help, which takes milliseconds in a process of many libraries; and is where libc says.
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "sched/scheduler.h"

namespace {

using bosk::sched::Thread;

struct Bounds {
  uintptr_t low;
  uintptr_t high;
};

Bounds by_libc() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  EXPECT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<uintptr_t>(low), reinterpret_cast<uintptr_t>(low) + size};
}

TEST(InitialStack, IsWhereLibcSays) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_STACK, &limit), 0);
  if (limit.rlim_cur > size_t{128} << 20) GTEST_SKIP() << "libc is asked where the limit is large";
  const Thread* me = bosk::sched::attach_calling_thread();
  const Bounds libc = by_libc();
  // libc leaves out the program's arguments and environment, which are above its first frame.
  const auto high = reinterpret_cast<uintptr_t>(me->own->stack_high);
  EXPECT_GE(high, libc.high);
  EXPECT_LT(reinterpret_cast<uintptr_t>(getauxval(AT_EXECFN)), high);
  EXPECT_LE(high - reinterpret_cast<uintptr_t>(getauxval(AT_EXECFN)), 2u * 4096);
  const auto low = reinterpret_cast<uintptr_t>(me->own->stack_low);
  // libc leaves out what another mapping has; within the usual limit nothing has.
  EXPECT_LE(low < libc.low ? libc.low - low : low - libc.low, 2u * 4096)
      << "limit " << limit.rlim_cur;
}

}  // namespace
