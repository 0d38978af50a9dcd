// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that are strangers to OpenMP look at teams that open and close, whose initial threads end, whose workers a pause ends, and
// whose members attach and detach; a forked child finds the teams of its own thread only.
#include <bosk/error.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/memory_moves_setting.h"
#include "locality/decider.h"
#include "memory/manager.h"
#include "omp/machine_aside.h"
#include "omp/open_teams.h"
#include "omp/team.h"
#include "sched/pause.h"

namespace bosk::omp {
namespace {

// Before the library reads the environment.
[[gnu::constructor]] void four_nodes() {
  setenv("BOSK_SYNTHETIC", "node:4 core:1 pu:1", 0);
  setenv("BOSK_WORKERS", "4", 0);
  setenv("BOSK_POLICY", "memory", 0);
  setenv("BOSK_MEMORY_MOVES", "data", 0);
  setenv("OMP_MAX_ACTIVE_LEVELS", "2", 0);
}

constexpr unsigned kOpeners = 3;
constexpr unsigned kLives = 12;
constexpr unsigned kRegions = 12;
constexpr uint32_t kMembers = 3;
constexpr size_t kBytes = size_t{1} << 16;
constexpr unsigned kAreas = kOpeners * kMembers * 2;

template <typename Body>
void region(uint32_t size, Body body) {
  parallel([](void* data) { (*static_cast<Body*>(data))(current_member()->index); }, &body, size,
           0);
}

/// Addresses that nobody touches; each its own area.
alignas(4096) char memory_of[kAreas][kBytes];

struct Shared {
  std::atomic<unsigned> openers{kOpeners};
  std::atomic<uint64_t> attached{0};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> looks{0};
  std::atomic<uint64_t> open{0};   // teams that were seen
  std::atomic<uint64_t> users{0};  // and members
};

void live(Shared* shared, unsigned opener) {
  for (unsigned r = 0; r < kRegions; ++r) {
    const bool nested = r % 3 == 2;
    const auto work = [&](unsigned slot) {
      sched::Thread* me = current_thread();
      const auto at = reinterpret_cast<uintptr_t>(memory_of[opener * kMembers * 2 + slot]);
      if (attach_memory(me, {Whose::kCaller}, at, kBytes, memory::kReads, 1) == BOSK_OK)
        shared->attached.fetch_add(1);
      barrier();
      if (r % 2 != 0 && detach_memory(me, {Whose::kCaller}, at) != BOSK_OK)
        shared->wrong.fetch_add(1);
    };
    region(nested ? 2 : kMembers, [&](uint32_t outer) {
      if (!nested) return work(outer);
      region(kMembers, [&](uint32_t inner) { work(outer * kMembers + inner); });
    });
  }
  detach_all_memory(current_thread(), {Whose::kNextTeam});
}

void look(Shared* shared) {
  memory::AreaTable& areas = *memory::areas();
  OpenTeams found;
  locality::Users users;
  while (shared->openers.load() != 0) {
    if (!list_open_teams(areas.nodes().machine(), &found)) abort();
    shared->looks.fetch_add(1);
    for (uint32_t t = 0; t < found.teams.size(); ++t) {
      const ListedTeam& team = found.teams[t];
      users.clear();
      for (uint32_t i = team.first_user; i < team.first_user + team.n_users; ++i) {
        const ListedUser& user = found.users[i];
        const memory::NodeIndex node = find_node(areas.nodes(), found, user);
        if (node != memory::kNoNode && node >= areas.nodes().count()) shared->wrong.fetch_add(1);
        if (user.owner % 4 != 0 || user.threads == 0) shared->wrong.fetch_add(1);
      }
      shared->open.fetch_add(team.n_users != 0);
      shared->users.fetch_add(team.n_users);
      if (!add_users(areas, found, team, true, &users)) abort();
      locality::bring_data(areas, users, base::memory_moves());
    }
  }
  users.release();
  found.release();
}

TEST(OpenTeams, AreLookedAtWhileTheyComeAndGo) {
  ASSERT_NE(memory::start(*read_machine_aside()), nullptr);
  Shared shared;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 2; ++i) threads.emplace_back(look, &shared);
  for (unsigned i = 0; i < kOpeners; ++i)
    threads.emplace_back([&shared, i] {
      // Each an initial thread of its own, with all that it has, again and again.
      for (unsigned n = 0; n < kLives; ++n) std::thread(live, &shared, i).join();
      shared.openers.fetch_sub(1);
    });
  // Ends the workers of those that have no region open.
  uint64_t pauses = 0;
  while (shared.openers.load() != 0) {
    pauses += sched::pause_all(nullptr, true) ? 1 : 0;
    std::this_thread::yield();
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(shared.wrong.load(), 0u);
  EXPECT_EQ(shared.attached.load(),
            uint64_t{kOpeners} * kLives * kRegions / 3 * (2 * kMembers + 2 * kMembers));
  EXPECT_GT(shared.looks.load(), 0u);
  EXPECT_FALSE(any_book());
  printf("%llu looks, %llu open teams, %llu users, %llu pauses\n",
         static_cast<unsigned long long>(shared.looks.load()),
         static_cast<unsigned long long>(shared.open.load()),
         static_cast<unsigned long long>(shared.users.load()),
         static_cast<unsigned long long>(pauses));
}

/// How many teams are open, and how many places have memory.
std::pair<uint32_t, uint32_t> seen() {
  OpenTeams found;
  if (!list_open_teams(memory::areas()->nodes().machine(), &found)) abort();
  std::pair<uint32_t, uint32_t> counts{0, found.teams.size()};
  for (uint32_t i = 0; i < found.teams.size(); ++i) counts.first += found.teams[i].n_users != 0;
  found.release();
  return counts;
}

using Counts = std::pair<uint32_t, uint32_t>;

TEST(OpenTeams, OfAForkedChildAreItsOwnThreads) {
  ASSERT_NE(memory::start(*read_machine_aside()), nullptr);
  const auto attach = [](const char* at) {
    return attach_memory(current_thread(), {Whose::kCaller}, reinterpret_cast<uintptr_t>(at),
                         kBytes, memory::kReads, 1);
  };
  std::atomic<int> stage{0};
  std::thread other([&] {
    region(2, [&](uint32_t i) {
      EXPECT_EQ(attach(memory_of[2 + i]), BOSK_OK);
      barrier();
      if (i == 0) stage.store(1);
      while (stage.load() != 2) std::this_thread::yield();
    });
  });
  while (stage.load() != 1) std::this_thread::yield();
  int status = -1;
  region(2, [&](uint32_t i) {
    EXPECT_EQ(attach(memory_of[i]), BOSK_OK);
    barrier();
    if (i != 0) return;
    EXPECT_EQ(seen(), Counts(2, 2));
    const pid_t child = fork();
    if (child == 0) _exit(seen() == Counts(0, 1) ? 0 : 1);
    waitpid(child, &status, 0);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(seen(), Counts(1, 2));
  stage.store(2);
  other.join();
  EXPECT_EQ(seen(), Counts(0, 1));
}

}  // namespace
}  // namespace bosk::omp
