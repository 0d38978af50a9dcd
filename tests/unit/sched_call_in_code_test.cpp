// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The code is that of glibc 2.36, where it waits with the cancellation type changed.
#include "sched/call_in_code.h"

#include <gtest/gtest.h>

#include <vector>

namespace bosk::sched {
namespace {

long number_in(const std::vector<uint8_t>& code) {
  return number_of_call_in(code.data(), code.size());
}

TEST(SchedCallInCode, TheNumberIsLoadedLast) {
  EXPECT_EQ(number_in({0xb8, 0x07, 0, 0, 0, 0x0f, 0x05}), 7);  // poll
  EXPECT_EQ(number_in({0x8b, 0x3c, 0x24, 0xb8, 0xe6, 0, 0, 0, 0x0f, 0x05}),
            230);  // clock_nanosleep
}

TEST(SchedCallInCode, ArgumentsAreLoadedAfterIt) {
  // pselect: mov 0x1c(%rsp),%edi
  EXPECT_EQ(number_in({0xb8, 0x0e, 1, 0, 0, 0x8b, 0x7c, 0x24, 0x1c, 0x0f, 0x05}), 270);
  // recvfrom: mov 0x10(%rsp),%rdx; mov 8(%rsp),%rsi
  EXPECT_EQ(number_in({0xb8, 0x2d, 0, 0, 0, 0x48, 0x8b, 0x54, 0x24, 0x10, 0x48, 0x8b, 0x74, 0x24,
                       0x08, 0x0f, 0x05}),
            45);
  // mov $8,%r10d; mov %rbx,%rdi; xor %edx,%edx; lea 0x20(%rsp),%rsi
  EXPECT_EQ(number_in({0xb8, 0x80, 0,    0,    0,    0x41, 0xba, 8,    0,    0,    0,   0x48,
                       0x89, 0xdf, 0x31, 0xd2, 0x48, 0x8d, 0x74, 0x24, 0x20, 0x0f, 0x05}),
            128);
}

TEST(SchedCallInCode, ReadHasTheNumberZero) {
  EXPECT_EQ(number_in({0x8b, 0x7c, 0x24, 0x08, 0x31, 0xc0, 0x0f, 0x05}), 0);
  EXPECT_EQ(number_in({0x33, 0xc0, 0x8b, 0x7c, 0x24, 0x08, 0x0f, 0x05}), 0);
  // xor %r8d,%r8d is another register.
  EXPECT_EQ(number_in({0x45, 0x31, 0xc0, 0x0f, 0x05}), -1);
}

TEST(SchedCallInCode, WhatElseComesBetweenLeavesItUnknown) {
  EXPECT_EQ(number_in({0xb8, 0x07, 0, 0, 0, 0x89, 0xd8, 0x0f, 0x05}), -1);  // mov %ebx,%eax
  EXPECT_EQ(number_in({0xb8, 0x07, 0, 0, 0, 0x8b, 0x44, 0x24, 8, 0x0f, 0x05}),
            -1);  // mov 8(%rsp),%eax
  EXPECT_EQ(number_in({0xb8, 0x07, 0, 0, 0, 0xe8, 1, 2, 3, 4, 0x0f, 0x05}), -1);  // call
  EXPECT_EQ(number_in({0xb8, 0x07, 0, 0, 0, 0x75, 0x02, 0x0f, 0x05}), -1);        // jne
  EXPECT_EQ(number_in({0xb8, 0x07, 0, 0, 0, 0x8b, 0x3d, 1, 2, 3, 4, 0x0f, 0x05}),
            -1);                                                         // mov x(%rip),%edi
  EXPECT_EQ(number_in({0xb8, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x05}), -1);  // no such number
  EXPECT_EQ(number_in({0x0f, 0x05}), -1);
  EXPECT_EQ(number_in({0x07, 0, 0, 0, 0x0f, 0x05}), -1);
  EXPECT_EQ(number_in({}), -1);
}

}  // namespace
}  // namespace bosk::sched
