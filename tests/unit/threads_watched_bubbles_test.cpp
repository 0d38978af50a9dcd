// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a source says of accesses to other nodes becomes a decision about the bubble that it said it of. The machine is made up, and
// so is the source.
#include "locality/watch.h"

#include <bosk/memory.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <array>
#include <atomic>

#include "threads/attached.h"
#include "threads/home.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

using policies::MemoryTrigger;

constexpr size_t kBytes = 64 * 4096;
constexpr int kThreads = 3;

// Before the library reads the environment.
[[gnu::constructor]] void four_nodes() {
  setenv("BOSK_SYNTHETIC", "node:4 core:2 pu:1", 0);
  setenv("BOSK_WORKERS", "8", 0);
  setenv("BOSK_POLICY", "memory", 0);
  setenv("BOSK_MEMORY_MOVES", "data", 0);
}

std::atomic<bool> far{false};
std::atomic<uint64_t> intervals{0};
std::atomic<uint64_t> asked{0};
std::atomic<uint64_t> said_much{0};
std::atomic<uint64_t> odd{0};  // what the source was told and should not have been
std::atomic<bool> stop{false};
std::atomic<int> running{0};

const locality::RemoteSource kMadeUp = {
    "what the test makes up", true,
    [] {
      intervals.fetch_add(1);
      return true;
    },
    [](memory::AreaTable&, const locality::Watched& bubble, policies::RemoteAmounts* amounts) {
      asked.fetch_add(1);
      for (uint32_t i = 0; i < bubble.workers.size(); ++i)
        if (bubble.workers[i] >= home()->pool->worker_count.load()) odd.fetch_add(1);
      if (bubble.users.empty() || bubble.workers.size() > kThreads) odd.fetch_add(1);
      const bool much = far.load();
      if (much) said_much.fetch_add(1);
      *amounts = much ? policies::RemoteAmounts{1, 9} : policies::RemoteAmounts{39, 1};
      return true;
    },
    [] {}};

void* turn(void*) {
  running.fetch_add(1);
  while (!stop.load()) yield_thread();
  return nullptr;
}

uint64_t looked() {
  return home()->engine.memory_counts().looked[static_cast<uint32_t>(MemoryTrigger::kRemote)];
}

void wait_for(uint64_t more) {
  const uint64_t until = intervals.load() + more;
  while (intervals.load() < until) yield_thread();
}

TEST(RemoteAccesses, AreDecidedAboutWhereThereAreMany) {
  locality::set_remote_source(&kMadeUp);
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  bosk_bubble_t bubble;
  bosk_bubble_t other;  // of which nothing is attached, and nobody asks
  ASSERT_EQ(create_bubble(&bubble), BOSK_OK);
  ASSERT_EQ(create_bubble(&other), BOSK_OK);
  std::array<bosk_thread_t, kThreads + 1> thread{};
  for (int i = 0; i <= kThreads; ++i) {
    bosk_thread_attr_t attr;
    init_attributes(&attr);
    attr.bubble = i < kThreads ? bubble : other;
    ASSERT_EQ(create_thread(&thread[i], &attr, turn, nullptr), BOSK_OK);
  }
  uint64_t on[4] = {0, 0, 0, kBytes};
  memory::NewArea area{reinterpret_cast<uintptr_t>(memory), kBytes};
  area.bytes_on = on;
  ASSERT_EQ(memory_areas()->add(area), BOSK_OK);
  ASSERT_EQ(attach_bubble(memory, bubble, BOSK_MEM_READS_AND_WRITES, 100), BOSK_OK);
  ASSERT_EQ(wake_bubble(bubble, nullptr), BOSK_OK);
  ASSERT_EQ(wake_bubble(other, nullptr), BOSK_OK);
  while (running.load() <= kThreads) yield_thread();

  wait_for(3);
  EXPECT_EQ(looked(), 0u);
  EXPECT_GT(asked.load(), 0u);
  far.store(true);
  while (looked() < 2) yield_thread();
  // Two intervals with much, then a pause of one.
  EXPECT_GE(said_much.load(), 4u);
  const policies::RemoteCounts counts = policies::remote_counts();
  EXPECT_STREQ(counts.source, kMadeUp.name);
  EXPECT_GE(counts.raised, 1u);
  EXPECT_DOUBLE_EQ(counts.last_share, 0.9);
  // It has helped.
  far.store(false);
  wait_for(2);
  const uint64_t then = looked();
  wait_for(3);
  EXPECT_EQ(looked(), then);
  EXPECT_EQ(odd.load(), 0u);

  stop.store(true);
  for (bosk_thread_t each : thread) EXPECT_EQ(join_thread(each, nullptr), BOSK_OK);
  memory::AreaInfo gone;
  EXPECT_EQ(
      memory_areas()->remove(reinterpret_cast<uintptr_t>(memory), memory::Origin::kForeign, &gone),
      BOSK_OK);
  munmap(memory, kBytes);
  EXPECT_EQ(destroy_bubble(bubble), BOSK_OK);
  EXPECT_EQ(destroy_bubble(other), BOSK_OK);
}

}  // namespace
}  // namespace bosk::threads
