// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a tick may read of the code that it interrupts.
#include "sched/machine_context.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using bosk::sched::is_readable_code;

TEST(MachineContext, CodeIsReadOnlyWhereItCanBe) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto first = reinterpret_cast<uintptr_t>(memory);
  ASSERT_EQ(mprotect(memory, page, PROT_NONE), 0);
  const uintptr_t second = first + page;
  const uintptr_t third = second + page;
  EXPECT_FALSE(is_readable_code(first + 64));
  EXPECT_FALSE(is_readable_code(second)) << "what is before it is not";
  EXPECT_TRUE(is_readable_code(second + 4));
  EXPECT_TRUE(is_readable_code(third - 1));
  EXPECT_TRUE(is_readable_code(third));
  EXPECT_FALSE(is_readable_code(second)) << "the page alone says nothing at its begin";
  EXPECT_FALSE(is_readable_code(first + 64));
  munmap(memory, 3 * page);
}

}  // namespace
