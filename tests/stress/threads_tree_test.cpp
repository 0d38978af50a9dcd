// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random trees of bubbles on real workers: threads that make, insert, move, wake, change, yield, meet and
// join at random, from several pthreads at once. Everything that was made has run once when all was joined.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <vector>

#include "base/sanitizers.h"
#include "random_worlds.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

#if defined(BOSK_TSAN)
constexpr uint32_t kRounds = 6;
#else
constexpr uint32_t kRounds = 30;
#endif
constexpr uint32_t kPthreads = 3;

struct World;

/// What one thread is to do; from the heap, given back by the thread.
struct Job {
  World* world;
  uint32_t seed;
  int depth;
};

struct World {
  std::atomic<int> made{0};
  std::atomic<int> ran{0};
  std::vector<bosk_bubble_t> bubbles;
  std::vector<bosk_thread_t> roots;  ///< nobody else joins them
};

void* work(void* argument);

bosk_thread_attr_t random_attributes(std::mt19937& random) {
  bosk_thread_attr_t attr;
  init_attributes(&attr);
  attr.priority = static_cast<int32_t>(random() % 3);
  attr.light = static_cast<int32_t>(random() % 2);
  attr.load = random() % 4 == 0 ? BOSK_UNKNOWN : random() % 100;
  if (random() % 8 == 0) attr.affinity = "pu";
  if (random() % 8 == 0) attr.level = "core";
  return attr;
}

bosk_thread_t make(World* world, std::mt19937& random, int depth, bosk_thread_attr_t attr) {
  auto* job = new Job{world, static_cast<uint32_t>(random()), depth};
  ++world->made;
  bosk_thread_t thread = nullptr;
  EXPECT_EQ(create_thread(&thread, &attr, work, job), BOSK_OK);
  return thread;
}

bosk_bubble_t any_bubble(World* world, std::mt19937& random) {
  return world->bubbles[random() % world->bubbles.size()];
}

void* work(void* argument) {
  const Job job = *static_cast<Job*>(argument);
  delete static_cast<Job*>(argument);
  World* world = job.world;
  std::mt19937 random(job.seed);
  const bosk_thread_t me = this_thread();
  EXPECT_NE(me, nullptr);
  std::vector<bosk_thread_t> children;
  const int children_wanted = job.depth > 0 ? static_cast<int>(random() % 4) : 0;
  for (int i = 0; i < children_wanted; ++i) {
    bosk_thread_attr_t attr = random_attributes(random);
    const uint32_t how = random() % 4;
    if (how == 0) attr.bubble = any_bubble(world, random);
    if (how == 1) attr.asleep = 1;
    const bosk_thread_t child = make(world, random, job.depth - 1, attr);
    if (how == 1) {
      const bool by_itself = random() % 2 == 0;
      EXPECT_EQ(by_itself ? wake_thread(child) : insert_thread(any_bubble(world, random), child),
                BOSK_OK);
    }
    if (random() % 3 == 0) {
      EXPECT_EQ(set_thread_priority(child, static_cast<int32_t>(random() % 4)), BOSK_OK);
    }
    if (random() % 4 == 0) {
      // It may run or wait: then it stays where it is. What was taken out is asleep.
      if (remove_thread(child) == BOSK_OK) {
        EXPECT_EQ(wake_thread(child), BOSK_OK);
      }
    }
    if (random() % 4 == 0) move_thread(any_bubble(world, random), child);
    children.push_back(child);
    if (random() % 3 == 0) yield_thread();
  }
  if (random() % 4 == 0) {
    bosk_bubble_t in = nullptr;
    EXPECT_EQ(get_thread_bubble(me, &in), BOSK_OK);
    int error;
    if (in == nullptr) {
      error = insert_thread(any_bubble(world, random), me);
    } else {
      error = random() % 2 == 0 ? move_thread(any_bubble(world, random), me) : remove_thread(me);
    }
    EXPECT_EQ(error, BOSK_OK);
    yield_thread();
  }
  bosk_stats_t stats{};
  stats.size = sizeof stats;
  EXPECT_EQ(bubble_stats(any_bubble(world, random), &stats), BOSK_OK);
  for (const bosk_thread_t child : children) EXPECT_EQ(join_thread(child, nullptr), BOSK_OK);
  ++world->ran;
  return nullptr;
}

/// A forest of woken bubbles, some in others.
void build(World* world, std::mt19937& random) {
  // Threads that run already choose among all of them.
  world->bubbles.resize(12);
  for (bosk_bubble_t& bubble : world->bubbles) {
    ASSERT_EQ(create_bubble(&bubble), BOSK_OK);
    ASSERT_EQ(set_bubble_priority(bubble, static_cast<int32_t>(random() % 3)), BOSK_OK);
    if (random() % 3 == 0) {
      ASSERT_EQ(set_burst_level(bubble, random() % 2 == 0 ? "machine" : "core"), BOSK_OK);
    }
  }
  for (size_t i = 0; i < world->bubbles.size(); ++i) {
    const bosk_bubble_t bubble = world->bubbles[i];
    const bool nested = i != 0 && random() % 3 != 0;
    if (!nested && random() % 2 == 0) {
      bosk_thread_attr_t attr = random_attributes(random);
      attr.bubble = bubble;
      world->roots.push_back(make(world, random, 2, attr));
    }
    ASSERT_EQ(
        nested ? insert_bubble(world->bubbles[random() % i], bubble) : wake_bubble(bubble, nullptr),
        BOSK_OK);
  }
}

void run_world(uint32_t seed) {
  std::mt19937 random(seed);
  World world;
  build(&world, random);
  for (int i = 0; i < 12; ++i) {
    bosk_thread_attr_t attr = random_attributes(random);
    if (i % 2 == 0) attr.bubble = any_bubble(&world, random);
    world.roots.push_back(make(&world, random, 4, attr));
  }
  for (const bosk_thread_t root : world.roots) EXPECT_EQ(join_thread(root, nullptr), BOSK_OK);
  for (const bosk_bubble_t bubble : world.bubbles) EXPECT_EQ(join_bubble(bubble), BOSK_OK);
  EXPECT_EQ(world.made.load(), world.ran.load());
  // Inner ones come after those that they are in.
  while (!world.bubbles.empty()) {
    EXPECT_EQ(destroy_bubble(world.bubbles.back()), BOSK_OK);
    world.bubbles.pop_back();
  }
}

TEST(Threads, RandomTreesFromSeveralPthreads) { test::run_worlds(kPthreads, kRounds, run_world); }

}  // namespace
}  // namespace bosk::threads
