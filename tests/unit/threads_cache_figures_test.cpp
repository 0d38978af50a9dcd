// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cache misses by thread and bubble: each has what was counted while it ran, and nothing else. The counter is made up: it counts
// what running threads say. One worker, so that what they say is of its counter.
#include "threads/cache_figures.h"

#include <gtest/gtest.h>
#include <stddef.h>
#include <stdlib.h>

#include "sched/worker_caches.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

// Before the library reads the environment.
[[gnu::constructor]] void one_worker() {
  setenv("BOSK_WORKERS", "1", 0);
  setenv("BOSK_COUNTERS", "on", 0);
}

std::atomic<uint64_t> accesses{1'000'000};
std::atomic<uint64_t> misses{1'000};
std::atomic<bool> readable{true};

bool made_up(const sched::Worker*, base::CacheCount* count) {
  *count = {accesses.load(), misses.load()};
  return readable.load();
}

struct Use {
  uint64_t accesses;
  uint64_t misses;
  int turns;
};

void* use(void* argument) {
  const auto* mine = static_cast<const Use*>(argument);
  for (int i = 0; i < mine->turns; ++i) {
    accesses.fetch_add(mine->accesses);
    misses.fetch_add(mine->misses);
    yield_thread();
  }
  return nullptr;
}

bosk_stats_t fresh() {
  bosk_stats_t stats{};
  stats.size = sizeof stats;
  return stats;
}

struct Figures {
  uint64_t accesses;
  uint64_t misses;
  bool operator==(const Figures&) const = default;
};
constexpr Figures kNothing = {BOSK_UNKNOWN_64, BOSK_UNKNOWN_64};

Figures of(bosk_thread_t thread) {
  bosk_stats_t stats = fresh();
  EXPECT_EQ(thread_stats(thread, &stats), BOSK_OK);
  return {stats.cache_accesses, stats.cache_misses};
}
Figures of(bosk_bubble_t bubble) {
  bosk_stats_t stats = fresh();
  EXPECT_EQ(bubble_stats(bubble, &stats), BOSK_OK);
  return {stats.cache_accesses, stats.cache_misses};
}

class CacheFigures : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { sched::set_cache_reader(made_up); }

  static bosk_thread_t make(bosk_bubble_t bubble, const Use& what) {
    bosk_thread_attr_t attr;
    init_attributes(&attr);
    attr.bubble = bubble;
    bosk_thread_t thread;
    EXPECT_EQ(create_thread(&thread, &attr, use, const_cast<Use*>(&what)), BOSK_OK);
    return thread;
  }
};

struct Team {
  bosk_bubble_t bubble;
  bosk_thread_t much;
  bosk_thread_t little;
};
struct Member {
  Team* team;
  Use use;
  bool looks;
};

/// All meet when each has had its turns, and again when one of them has looked.
void* use_and_meet(void* argument) {
  auto* mine = static_cast<Member*>(argument);
  const Team& team = *mine->team;
  use(&mine->use);
  EXPECT_EQ(bubble_barrier(team.bubble, nullptr), BOSK_OK);
  if (mine->looks) {
    EXPECT_EQ(of(team.much), (Figures{5000, 500}));
    EXPECT_EQ(of(team.little), (Figures{210, 30}));
    EXPECT_EQ(of(this_thread()), (Figures{3000, 3}));
    EXPECT_EQ(of(team.bubble), (Figures{8210, 533}));
  }
  EXPECT_EQ(bubble_barrier(team.bubble, nullptr), BOSK_OK);
  return nullptr;
}

TEST_F(CacheFigures, AreOfWhoeverRan) {
  Team team;
  ASSERT_EQ(create_bubble(&team.bubble), BOSK_OK);
  Member much{&team, {100, 10, 50}, false};
  Member little{&team, {7, 1, 30}, false};
  Member looking{&team, {1000, 1, 3}, true};
  bosk_thread_attr_t attr;
  init_attributes(&attr);
  attr.bubble = team.bubble;
  bosk_thread_t third;
  ASSERT_EQ(create_thread(&team.much, &attr, use_and_meet, &much), BOSK_OK);
  ASSERT_EQ(create_thread(&team.little, &attr, use_and_meet, &little), BOSK_OK);
  ASSERT_EQ(create_thread(&third, &attr, use_and_meet, &looking), BOSK_OK);
  EXPECT_EQ(of(team.much), kNothing);
  EXPECT_EQ(of(team.bubble), kNothing);
  ASSERT_EQ(wake_bubble(team.bubble, nullptr), BOSK_OK);
  for (bosk_thread_t thread : {team.much, team.little, third})
    ASSERT_EQ(join_thread(thread, nullptr), BOSK_OK);
  EXPECT_EQ(of(team.bubble), kNothing);
  ASSERT_EQ(destroy_bubble(team.bubble), BOSK_OK);
}

/// Of itself, up to now; and the next thread of the same record begins with nothing.
void* ask_itself(void*) {
  const Figures before = of(this_thread());
  accesses.fetch_add(11);
  misses.fetch_add(2);
  const Figures after = of(this_thread());
  EXPECT_EQ(after.accesses - before.accesses, 11u);
  EXPECT_EQ(after.misses - before.misses, 2u);
  EXPECT_EQ(before, (Figures{0, 0}));
  return nullptr;
}

TEST_F(CacheFigures, AreKnownToTheThreadItself) {
  for (int i = 0; i < 3; ++i) {
    bosk_thread_t thread;
    ASSERT_EQ(create_thread(&thread, nullptr, ask_itself, nullptr), BOSK_OK);
    ASSERT_EQ(join_thread(thread, nullptr), BOSK_OK);
  }
}

void* use_and_ask(void* argument) {
  use(argument);
  EXPECT_EQ(of(this_thread()), kNothing);
  return nullptr;
}

TEST_F(CacheFigures, AreUnknownWhereNothingCanBeRead) {
  readable.store(false);
  Use what{3, 1, 5};
  bosk_thread_t thread;
  ASSERT_EQ(create_thread(&thread, nullptr, use_and_ask, &what), BOSK_OK);
  ASSERT_EQ(join_thread(thread, nullptr), BOSK_OK);
  readable.store(true);
}

TEST_F(CacheFigures, CallersOfEarlierVersionsGetNoneOfIt) {
  bosk_thread_t thread;
  const Use what{1, 1, 1};
  thread = make(nullptr, what);
  bosk_stats_t stats = fresh();
  stats.size = offsetof(bosk_stats_t, cache_accesses);
  stats.cache_accesses = 77;
  ASSERT_EQ(thread_stats(thread, &stats), BOSK_OK);
  EXPECT_EQ(stats.cache_accesses, 77u);
  EXPECT_EQ(stats.size, offsetof(bosk_stats_t, cache_accesses));
  ASSERT_EQ(join_thread(thread, nullptr), BOSK_OK);
}

}  // namespace
}  // namespace bosk::threads
