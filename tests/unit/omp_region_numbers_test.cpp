// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers of regions, barriers and teams: what happens after 2^32 of them, or whatever fits into the
// word, without waiting for so many.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <vector>

#include "omp/cancel.h"
#include "omp/environment.h"
#include "omp/single.h"
#include "omp/team.h"
#include "sched/barrier_protocol.h"
#include "sched/claim_protocol.h"

namespace bosk::omp {
namespace {

constexpr uint64_t kTwo32 = uint64_t{1} << 32;

class Numbers : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Before the runtime reads its environment: teams of six are flat, and a tree.
    setenv("BOSK_WORKERS", "6", 1);
    setenv("OMP_DYNAMIC", "false", 1);
    setenv("OMP_CANCELLATION", "true", 1);
    ASSERT_TRUE(process_icvs().cancellation);
  }
};

template <typename Body>
void region(uint32_t size, Body body) {
  parallel([](void* data) { (*static_cast<Body*>(data))(current_member()); }, &body, size, 0);
}

/// A region of `size` with `barriers` barriers, each of which must meet all members.
void check_region(uint32_t size, uint32_t barriers) {
  std::vector<std::atomic<uint32_t>> arrived(barriers);
  std::atomic<uint32_t> early{0};
  std::atomic<uint32_t> ran{0};
  region(size, [&](ImplicitTask* member) {
    EXPECT_TRUE(member->team->flat);
    for (uint32_t i = 0; i < barriers; ++i) {
      arrived[i].fetch_add(1);
      barrier();
      if (arrived[i].load() != size) early.fetch_add(1);
    }
    // Late, so that a join that does not wait is seen.
    for (int spins = 0; member->index != 0 && spins < 2000; ++spins) base::cpu_pause();
    ran.fetch_add(1);
  });
  EXPECT_EQ(ran.load(), size);
  EXPECT_EQ(early.load(), 0u);
}

void skip_to(uint64_t regions, uint64_t barriers) {
  sched::Thread* me = current_thread();
  ASSERT_GE(regions, me->flat_regions);
  ASSERT_GE(barriers, me->flat_barriers);
  me->flat_regions = regions;
  me->flat_barriers = barriers;
}

TEST_F(Numbers, RegionsAndBarriersGoOnAfterTwoToThe32) {
  for (const uint64_t multiple : {1, 2, 3}) {
    check_region(6, 2);
    skip_to(multiple * kTwo32 - 6, multiple * kTwo32 - 7);
    for (uint32_t round = 0; round < 12; ++round) check_region(round % 2 == 0 ? 3 : 6, round % 3);
  }
}

TEST_F(Numbers, WorkersMayHaveMissedAnyNumberOfRegions) {
  check_region(6, 1);
  for (const uint64_t missed : {kTwo32 / 2, kTwo32 - 1, kTwo32, kTwo32 + 1}) {
    sched::Thread* me = current_thread();
    skip_to(me->flat_regions + missed - 1, me->flat_barriers + missed - 1);
    check_region(2, 1);
    check_region(6, 2);
  }
}

TEST_F(Numbers, MembersMayLeaveACancelledRegionAtDifferentBarriers) {
  for (const uint32_t size : {3u, 6u}) {
    for (uint32_t round = 0; round < 100; ++round) {
      region(size, [&](ImplicitTask* member) {
        for (uint32_t i = 0; i < round % 4; ++i) barrier();
        if (member->index == round % size) {
          cancel(kCancelParallel);
          return;
        }
        while (!barrier_cancellable() && !cancellation_point(kCancelParallel)) {
        }
      });
      check_region(size, 3);
    }
  }
}

TEST_F(Numbers, AMemberMayPassBarriersThatTheOthersHaveLeft) {
  for (uint32_t round = 0; round < 50; ++round) {
    region(3, [&](ImplicitTask* member) {
      if (member->index != 0) {
        cancel(kCancelParallel);
        return;
      }
      for (int i = 0; i < 5; ++i) barrier();
    });
    check_region(3, 7);
  }
}

TEST_F(Numbers, SinglesGoOnAfterTwoToThe32) {
  std::atomic<uint32_t> executed{0};
  region(3, [&](ImplicitTask* member) {
    if (member->index == 0) member->team->single_taken.store(kTwo32 - 2);
    barrier();
    member->singles = kTwo32 - 2;
    for (int i = 0; i < 5; ++i)
      if (single_start(member)) executed.fetch_add(1);
    // One that is 2^32 behind comes too late.
    barrier();
    member->singles = 1;
    if (single_start(member)) executed.fetch_add(1);
    EXPECT_GT(member->team->single_taken.load(), kTwo32);
  });
  EXPECT_EQ(executed.load(), 5u);
}

TEST_F(Numbers, TheLivesOfAnObjectDiffer) {
  Team team;
  team.flat = true;
  team.sequence = 1;
  const uint64_t flat = team.life();
  team.flat = false;
  team.times_opened = 1;
  const uint64_t first = team.life();
  EXPECT_NE(first, flat);
  // As often as the generation in the claim word takes to come back.
  team.times_opened += uint64_t{1} << 24;
  EXPECT_NE(team.life(), first);
}

TEST_F(Numbers, AWrappedGenerationStillClaimsFromTheTeamThatIsOpen) {
  sched::ClaimWord<base::StdAtomics> ghosts;
  ghosts.open(3, 1);
  const uint32_t seen = ghosts.generation();
  EXPECT_TRUE(ghosts.claim(2));
  for (uint32_t i = 0; i < 1u << 24; ++i) {
    EXPECT_FALSE(i != 0 && ghosts.generation() == seen) << i;
    ghosts.open(5, 4);
    if (i + 1 < 1u << 24) {
      ASSERT_EQ(ghosts.claim_of(seen, 1).count, 0u) << i;
      ASSERT_EQ(ghosts.claim(1).index, 4u);
    }
  }
  // The thief that looked 2^24 teams ago gets what this one has, once.
  const sched::Claim claim = ghosts.claim_of(seen, 9);
  EXPECT_EQ(claim.index, 4u);
  EXPECT_EQ(claim.count, 1u);
  EXPECT_FALSE(ghosts.claim_of(seen, 9));
  EXPECT_FALSE(ghosts.claim(9));
}

TEST_F(Numbers, EpochsOfABarrierWrap) {
  sched::BarrierWord<base::StdAtomics> word;
  word.reset();
  // The caller says which barrier it is.
  EXPECT_TRUE(word.arrive(1, 1, UINT32_MAX - 1));
  EXPECT_EQ(word.epoch(), UINT32_MAX);
  EXPECT_FALSE(word.is_open(UINT32_MAX));
  EXPECT_FALSE(word.arrive(1, 2, UINT32_MAX));
  EXPECT_TRUE(word.arrive(1, 2, UINT32_MAX));
  EXPECT_TRUE(word.is_open(UINT32_MAX));
  EXPECT_EQ(word.epoch(), 0u);
  EXPECT_FALSE(word.is_open(0));
}

}  // namespace
}  // namespace bosk::omp
