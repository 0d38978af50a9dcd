// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Light threads that run on the stack of who joins them, and the bubbles of both.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "sched/address_wait.h"
#include "threads/api.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

struct World {
  bosk_bubble_t bubble = nullptr;
  bosk_thread_t light = nullptr;
  std::atomic<uint32_t> waits{0};  ///< 1: the light thread is about to wait for …
  std::atomic<uint32_t> told{0};   ///< … this
};

void* wait_until_told(void* argument) {
  auto* world = static_cast<World*>(argument);
  world->waits.store(1);
  while (world->told.load() == 0) sched::wait_on(world->told, 0);
  return nullptr;
}

void* join_a_light_one(void* argument) {
  bosk_thread_attr_t attr;
  init_attributes(&attr);
  attr.light = 1;
  bosk_thread_t& light = static_cast<World*>(argument)->light;
  EXPECT_EQ(create_thread(&light, &attr, wait_until_told, argument), BOSK_OK);
  EXPECT_EQ(join_thread(light, nullptr), BOSK_OK);
  return nullptr;
}

void* tell(void* argument) {
  auto* world = static_cast<World*>(argument);
  world->told.store(1);
  sched::wake(world->told, UINT32_MAX);
  return nullptr;
}

bool is_blocked(bosk_thread_t handle) {
  bosk_stats_t stats{};
  stats.size = sizeof stats;
  EXPECT_EQ(thread_stats(handle, &stats), BOSK_OK);
  return stats.running == 0 && stats.ready == 0;
}

/// A bubble that closes does not wait for a thread that waits for another: what that waits for in turn may
/// be in the bubble.
TEST(LightThreads, AClosingBubbleDoesNotWaitForWhoRunsOneThatBlocks) {
  setenv("BOSK_PREEMPT_PERIOD", "off", 1);  // else who is just being preempted looks blocked, too
  World world;
  ASSERT_EQ(create_bubble(&world.bubble), BOSK_OK);
  ASSERT_EQ(wake_bubble(world.bubble, nullptr), BOSK_OK);
  bosk_thread_attr_t attr;
  init_attributes(&attr);
  attr.bubble = world.bubble;
  bosk_thread_t joiner = nullptr;
  ASSERT_EQ(create_thread(&joiner, &attr, join_a_light_one, &world), BOSK_OK);
  // Another worker may have come for the light one before it was joined.
  while (world.waits.load() == 0 || !is_blocked(world.light) || !is_blocked(joiner)) yield_thread();
  bool closed;
  {
    Inside inside(omp::current_thread());
    HeldBubble bubble(world.bubble);
    ASSERT_TRUE(bubble);
    closed = sched::close(*bubble);
    if (closed) announce(home(), 0, 1);
  }
  EXPECT_TRUE(closed);
  bosk_thread_t teller = nullptr;
  ASSERT_EQ(create_thread(&teller, &attr, tell, &world), BOSK_OK);
  if (!closed) tell(&world);  // it would never be let out
  EXPECT_EQ(join_thread(teller, nullptr), BOSK_OK);
  EXPECT_EQ(join_thread(joiner, nullptr), BOSK_OK);
  EXPECT_EQ(join_bubble(world.bubble), BOSK_OK);
  EXPECT_EQ(destroy_bubble(world.bubble), BOSK_OK);
}

}  // namespace
}  // namespace bosk::threads
