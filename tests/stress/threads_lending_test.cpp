// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trees of nested bubbles of which nobody asks anything, so that closed ones lend their threads, while idle workers
// open them from outside and others move threads, insert, meet and look. Everything that was made has run once.
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "base/sanitizers.h"
#include "random_worlds.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

#if defined(BOSK_TSAN)
constexpr uint32_t kRounds = 8;
#else
constexpr uint32_t kRounds = 60;
#endif
constexpr uint32_t kPthreads = 2;
constexpr int kDepth = 7;

struct World {
  std::atomic<int> made{0};
  std::atomic<int> ran{0};
};

struct Job {
  World* world;
  uint32_t seed;
  int depth;
  bosk_bubble_t around;
};

void* branch(void* argument);

bosk_thread_t make(Job* job, bosk_bubble_t bubble, std::mt19937& random) {
  bosk_thread_attr_t attr;
  init_attributes(&attr);
  attr.bubble = bubble;
  attr.light = random() % 3 == 0 ? 1 : 0;
  attr.priority = random() % 6 == 0 ? 1 : 0;
  ++job->world->made;
  bosk_thread_t thread = nullptr;
  EXPECT_EQ(create_thread(&thread, &attr, branch, job), BOSK_OK);
  return thread;
}

void wake_or_insert(const Job& job, bosk_bubble_t bubble) {
  EXPECT_EQ(
      job.around != nullptr ? insert_bubble(job.around, bubble) : wake_bubble(bubble, nullptr),
      BOSK_OK);
}

void* branch(void* argument) {
  const Job& job = *static_cast<Job*>(argument);
  std::mt19937 random(job.seed);
  ++job.world->ran;
  if (job.depth == 0) return nullptr;
  bosk_bubble_t bubble = nullptr;
  EXPECT_EQ(create_bubble(&bubble), BOSK_OK);
  const bool early = random() % 3 == 0;
  if (early) wake_or_insert(job, bubble);
  Job children[3];
  bosk_thread_t thread[3];
  const uint32_t count = 2 + (random() % 8 == 0 ? 1 : 0);
  for (uint32_t i = 0; i < count; ++i) {
    const int depth = job.depth - 1 - static_cast<int>(i);
    children[i] = {job.world, static_cast<uint32_t>(random()), depth > 0 ? depth : 0, bubble};
    thread[i] = make(&children[i], bubble, random);
  }
  if (!early) wake_or_insert(job, bubble);
  if (random() % 6 == 0) yield_thread();
  if (random() % 6 == 0) {
    // It may run, wait or have ended by now; what was taken out is put in again.
    const int taken = remove_thread(thread[1]);
    EXPECT_TRUE(taken == BOSK_OK || taken == BOSK_EBUSY || taken == BOSK_ESTATE) << taken;
    if (taken == BOSK_OK) {
      EXPECT_EQ(insert_thread(bubble, thread[1]), BOSK_OK);
    }
  }
  if (random() % 6 == 0) {
    bosk_stats_t stats{};
    stats.size = sizeof stats;
    EXPECT_EQ(bubble_stats(bubble, &stats), BOSK_OK);
  }
  if (random() % 8 == 0) {
    EXPECT_EQ(join_bubble(bubble), BOSK_OK);
  }
  const uint32_t first = static_cast<uint32_t>(random()) % count;
  for (uint32_t i = 0; i < count; ++i)
    EXPECT_EQ(join_thread(thread[(first + i) % count], nullptr), BOSK_OK);
  EXPECT_EQ(destroy_bubble(bubble), BOSK_OK);
  return nullptr;
}

void run_world(uint32_t seed) {
  std::mt19937 random(seed);
  World world;
  Job job{&world, static_cast<uint32_t>(random()), kDepth, nullptr};
  const bosk_thread_t root = make(&job, nullptr, random);
  EXPECT_EQ(join_thread(root, nullptr), BOSK_OK);
  EXPECT_EQ(world.made.load(), world.ran.load());
  EXPECT_GT(world.made.load(), kDepth);
}

TEST(Threads, ClosedBubblesLendThemWhileOthersOpenThese) {
  test::run_worlds(kPthreads, kRounds, run_world);
}

}  // namespace
}  // namespace bosk::threads
