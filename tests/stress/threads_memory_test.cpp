// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decisions about memory beside everything that they look at: threads attach, detach, free, migrate, ask for decisions and end, bubbles
// come and go, and memory is moved meanwhile; threads wait for each other, and are blocked when it is decided where they go, or wake
// just then. No byte is lost, nothing that has gone is touched, and nothing stays booked. Four invented nodes.
#include <bosk/memory.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "base/sanitizers.h"
#include "memory/area_migration.h"
#include "policies/memory/decision_log.h"
#include "threads/api.h"
#include "threads/attached.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

#if defined(BOSK_TSAN)
constexpr int kRounds = 4;
constexpr int kSteps = 40;
#else
constexpr int kRounds = 12;
constexpr int kSteps = 200;
#endif
constexpr int kPthreads = 2;
constexpr int kTeams = 3;
constexpr int kEach = 3;
constexpr size_t kBytes = 16 * 4096;

// Before the library reads the environment.
[[gnu::constructor]] void four_nodes() {
  setenv("BOSK_SYNTHETIC", "node:4 core:2 pu:1", 0);
  setenv("BOSK_WORKERS", "8", 0);
  setenv("BOSK_POLICY", "memory", 0);
}

/// Areas of one caller; everybody attaches them, and their owner takes them away under everybody's feet.
struct World {
  std::array<std::atomic<unsigned char*>, 6> area{};
  std::array<bosk_bubble_t, kTeams> team{};
  bosk_bubble_t all = nullptr;
  std::atomic<int> ended{0};
};

struct Job {
  World* world;
  bosk_bubble_t team;
  uint32_t seed;
};

/// As bosk_mem_register(), of pages that the books have on some node.
unsigned char* make_area(std::mt19937& random) {
  void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  memset(at, 0x5a, kBytes);
  uint64_t on[4] = {};
  on[random() % 4] = kBytes;
  memory::NewArea area{reinterpret_cast<uintptr_t>(at), kBytes};
  area.bytes_on = on;
  EXPECT_EQ(memory_areas()->add(area), BOSK_OK);
  return static_cast<unsigned char*>(at);
}

/// As bosk_mem_unregister(), and the memory is given back at once.
int free_area(unsigned char* at) {
  memory::AreaInfo gone;
  const int error =
      memory_areas()->remove(reinterpret_cast<uintptr_t>(at), memory::Origin::kForeign, &gone);
  memory_has_changed();
  munmap(at, kBytes);
  return error;
}

/// As bosk_mem_migrate().
int migrate(const unsigned char* at, uint32_t node) {
  memory::AreaInfo area;
  if (!memory_areas()->look_up(reinterpret_cast<uintptr_t>(at), &area)) return BOSK_ENOAREA;
  memory::Moved moved;
  memory::migrate_area(*memory_areas(), area, node, &moved);
  memory_has_changed();
  return BOSK_OK;
}

/// A code that a race may bring, or success.
void expect_sane(int code) {
  EXPECT_TRUE(code >= 0 || code == BOSK_ENOAREA || code == BOSK_ENOENT || code == BOSK_ESTALE ||
              code == BOSK_ESTATE)
      << code;
}

void step(World& world, bosk_bubble_t own, std::mt19937& random) {
  unsigned char* area = world.area[random() % world.area.size()].load();
  bosk_bubble_t team = world.team[random() % kTeams];
  const uint32_t times = random() % 3 == 0 ? BOSK_UNKNOWN : random() % 100'000;
  switch (random() % 10) {
    case 0:
    case 1:
      return expect_sane(attach_bubble(area, team, 1 + static_cast<int>(random() % 3), times));
    case 2:
      return expect_sane(attach_thread(area, this_thread(), BOSK_MEM_WRITES, times));
    case 3:
      return expect_sane(detach_bubble_from(area, team));
    case 4:
      return expect_sane(detach_thread_from(area, this_thread()));
    case 5:
      return expect_sane(redecide(random() % 2 == 0 ? team : world.all, BOSK_MEM_AT_ONCE));
    case 6:
      return expect_sane(redecide(team, BOSK_MEM_WHEN_ALL));
    case 7:
      return expect_sane(migrate(area, random() % 4));
    case 8:
      // Who has done its steps is not waited for.
      return expect_sane(bubble_barrier(own, nullptr));
    default:
      yield_thread();
      return;
  }
}

void* work(void* argument) {
  auto* job = static_cast<Job*>(argument);
  std::mt19937 random(job->seed);
  for (int i = 0; i < kSteps; ++i) step(*job->world, job->team, random);
  ++job->world->ended;
  delete job;
  return nullptr;
}

void run(uint32_t seed) {
  std::mt19937 random(seed);
  World world;
  for (auto& area : world.area) area = make_area(random);
  ASSERT_EQ(create_bubble(&world.all), BOSK_OK);
  std::vector<bosk_thread_t> threads;
  for (bosk_bubble_t& team : world.team) {
    ASSERT_EQ(create_bubble(&team), BOSK_OK);
    ASSERT_EQ(insert_bubble(world.all, team), BOSK_OK);
    bosk_thread_attr_t attr;
    init_attributes(&attr);
    attr.bubble = team;
    for (int i = 0; i < kEach; ++i)
      ASSERT_EQ(create_thread(&threads.emplace_back(), &attr, work,
                              new Job{&world, team, static_cast<uint32_t>(random())}),
                BOSK_OK);
  }
  ASSERT_EQ(wake_bubble(world.all, nullptr), BOSK_OK);
  // Areas go, and others come, while they are attached, looked at and moved.
  for (int i = 0; world.ended.load() != kTeams * kEach; ++i) {
    auto& slot = world.area[random() % world.area.size()];
    unsigned char* fresh = make_area(random);
    unsigned char* old = slot.exchange(fresh);
    for (size_t at = 0; at < kBytes; at += 512) ASSERT_EQ(old[at], 0x5a) << i;
    ASSERT_EQ(free_area(old), BOSK_OK);
    yield_thread();
  }
  for (bosk_thread_t thread : threads) ASSERT_EQ(join_thread(thread, nullptr), BOSK_OK);
  for (bosk_bubble_t team : world.team) ASSERT_EQ(destroy_bubble(team), BOSK_OK);
  ASSERT_EQ(destroy_bubble(world.all), BOSK_OK);
  for (auto& area : world.area) {
    for (size_t at = 0; at < kBytes; at += 512) ASSERT_EQ(area.load()[at], 0x5a);
    ASSERT_EQ(free_area(area.load()), BOSK_OK);
  }
}

TEST(ThreadsMemory, DecisionsBesideEverythingThatTheyLookAt) {
  const char* given = getenv("BOSK_STRESS_SEED");
  const auto first = static_cast<uint32_t>(given != nullptr ? strtoul(given, nullptr, 10) : 1);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> callers;
    for (int i = 1; i < kPthreads; ++i)
      callers.emplace_back(run, first + static_cast<uint32_t>(round * kPthreads + i));
    run(first + static_cast<uint32_t>(round * kPthreads));
    for (std::thread& caller : callers) caller.join();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "round " << round;
  }
  const policies::MemoryDecisions decisions = policies::memory_decisions();
  EXPECT_NE(decisions.taken, 0u);
  EXPECT_NE(decisions.taken, decisions.by_action[0]) << "none did anything";
  // All have ended.
  for (uint32_t domain = 0; domain < home()->machine->n_domains; ++domain)
    EXPECT_EQ(home()->engine.booked(domain), 0u) << domain;
}

}  // namespace
}  // namespace bosk::threads
