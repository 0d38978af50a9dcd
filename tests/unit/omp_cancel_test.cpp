// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cancellation of loops and regions, in real regions with OMP_CANCELLATION on.
#include "omp/cancel.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>

#include "context/annotations.h"
#include "omp/doacross.h"
#include "omp/environment.h"
#include "omp/loop.h"
#include "omp/ordered.h"
#include "omp/team.h"

namespace bosk::omp {
namespace {

class Cancellation : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Before the runtime reads its environment, which it does once.
    setenv("OMP_CANCELLATION", "true", 1);
    setenv("OMP_DYNAMIC", "false", 1);
    // Members spin for one another: without preemption each needs a kernel thread.
    if (!context::kPreemptible) setenv("BOSK_WORKERS", "5", 1);
    ASSERT_TRUE(process_icvs().cancellation);
  }
};

template <typename Body>
void region(uint32_t size, Body body) {
  parallel([](void* data) { (*static_cast<Body*>(data))(current_member()); }, &body, size, 0);
}

LoopBounds counting_to(uint64_t count) { return bounds_of(true, 0ull, count, 1ull); }

TEST_F(Cancellation, EndsOneLoopAndNoOther) {
  for (const uint32_t size : {1u, 2u, 5u}) {
    std::atomic<uint32_t> left{0};
    std::atomic<uint32_t> wrong{0};
    region(size, [&](ImplicitTask* member) {
      for (int loop = 0; loop < 20; ++loop) {
        // Loops with even numbers are cancelled by one member, the others by none.
        const bool cancelled = loop % 2 == 0;
        if (!cancelled && cancellation_point(kCancelLoop)) wrong.fetch_add(1);
        if (cancelled) {
          if (member->index == loop % size) {
            if (!cancel(kCancelLoop)) wrong.fetch_add(1);
            if (!cancellation_point(kCancelLoop)) wrong.fetch_add(1);
          } else {
            // It comes sooner or later: the construct does not end before.
            while (!cancellation_point(kCancelLoop)) sched_yield();
          }
          left.fetch_add(1);
        }
        if (end_cancellable(member)) wrong.fetch_add(1);
      }
    });
    EXPECT_EQ(wrong.load(), 0u);
    EXPECT_EQ(left.load(), size * 10);
  }
}

TEST_F(Cancellation, OfARegionReachesMembersInBarriers) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<uint32_t> went_on{0};
    std::atomic<uint32_t> left{0};
    region(4, [&](ImplicitTask* member) {
      if (member->index == static_cast<uint32_t>(round % 4)) {
        if (cancel(kCancelParallel)) left.fetch_add(1);
        return;
      }
      if (end_cancellable(member)) {
        left.fetch_add(1);
        return;
      }
      went_on.fetch_add(1);
    });
    EXPECT_EQ(went_on.load(), 0u);
    EXPECT_EQ(left.load(), 4u);
    // The next region, on the same team object, starts afresh.
    std::atomic<uint32_t> fresh{0};
    region(4, [&](ImplicitTask* member) {
      if (!cancellation_point(kCancelParallel) && !end_cancellable(member)) fresh.fetch_add(1);
    });
    EXPECT_EQ(fresh.load(), 4u);
  }
}

TEST_F(Cancellation, OfARegionReachesMembersThatWaitForTheirTurn) {
  // The member whose block comes first never enters the loop, so nobody's turn ever comes.
  for (int round = 0; round < 50; ++round) {
    std::atomic<uint32_t> ended{0};
    region(3, [&](ImplicitTask* member) {
      if (member->index == 0) {
        for (int i = 0; i < round; ++i) sched_yield();
        cancel(kCancelParallel);
        return;
      }
      Chunk chunk;
      if (loop_start(member, counting_to(30), {kScheduleStatic, 0, false}, true, &chunk)) {
        ordered_enter(member);
        ordered_leave(member);
        EXPECT_FALSE(loop_next(member, &chunk));
      }
      loop_finish(member);
      if (end_cancellable(member)) ended.fetch_add(1);
    });
    EXPECT_EQ(ended.load(), 2u);
  }
}

TEST_F(Cancellation, OfARegionReachesMembersThatWaitForAnIteration) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<uint32_t> ended{0};
    region(3, [&](ImplicitTask* member) {
      if (member->index == 0) {
        for (int i = 0; i < round; ++i) sched_yield();
        cancel(kCancelParallel);
        return;
      }
      const uint64_t counts[] = {30};
      Chunk chunk;
      if (doacross_start(member, 1, counts, {kScheduleStatic, 2, false}, {}, &chunk)) {
        do {
          const uint64_t before[] = {chunk.begin - 1};
          if (chunk.begin > 0) doacross_wait(member, before);
        } while (loop_next(member, &chunk));
      }
      loop_finish(member);
      if (end_cancellable(member)) ended.fetch_add(1);
    });
    EXPECT_EQ(ended.load(), 2u);
  }
}

}  // namespace
}  // namespace bosk::omp
