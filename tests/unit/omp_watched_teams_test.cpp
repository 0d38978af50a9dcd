// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a source says of accesses to other nodes becomes a decision about the memory of an OpenMP team inside of its region. The machine
// is made up, and so is the source.
#include <bosk/error.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <atomic>

#include "locality/watch.h"
#include "memory/manager.h"
#include "omp/machine_aside.h"
#include "omp/open_teams.h"
#include "omp/team.h"
#include "policies/memory/decision_log.h"

namespace bosk::omp {
namespace {

constexpr uint32_t kMembers = 4;
constexpr size_t kBytes = 16 * 4096;

// Before the library reads the environment.
[[gnu::constructor]] void four_nodes() {
  setenv("BOSK_SYNTHETIC", "node:4 core:1 pu:1", 0);
  setenv("BOSK_WORKERS", "4", 0);
  setenv("BOSK_POLICY", "memory", 0);
  setenv("BOSK_MEMORY_MOVES", "data", 0);
}

std::atomic<bool> all_attached{false};
std::atomic<bool> far{false};
std::atomic<uint64_t> intervals{0};
std::atomic<uint64_t> asked{0};
std::atomic<uint64_t> odd{0};  // what the source was told and should not have been

const locality::RemoteSource kMadeUp = {
    "what the test makes up", true,
    [] {
      intervals.fetch_add(1);
      return true;
    },
    [](memory::AreaTable&, const locality::Watched& watched, policies::RemoteAmounts* amounts) {
      asked.fetch_add(1);
      policies::MemoryQuestion users{};
      watched.users.put_into(&users);
      if (!watched.workers.empty()) odd.fetch_add(1);  // those are of bubbles
      // One for each member, on the node of its worker, as soon as all have attached theirs and a new look has begun.
      static bool complete = false;
      if (!complete) {
        complete = all_attached.load();
        return false;
      }
      if (users.n_users != kMembers || users.n_uses != kMembers) odd.fetch_add(1);
      for (uint32_t i = 0; i < users.n_users; ++i)
        if (users.users[i].node != i || users.users[i].threads != 1 || users.uses[i].share != 1)
          odd.fetch_add(1);
      *amounts = far.load() ? policies::RemoteAmounts{1, 9} : policies::RemoteAmounts{39, 1};
      return true;
    },
    [] {}};

template <typename Body>
void region(uint32_t size, Body body) {
  parallel([](void* data) { (*static_cast<Body*>(data))(current_member()->index); }, &body, size,
           0);
}

void wait_for(uint64_t more) {
  const uint64_t until = intervals.load() + more;
  while (intervals.load() < until) base::raw_syscall(SYS_sched_yield);
}

/// Bytes of the area on the node, as the books have it.
uint64_t bytes_on(const char* at, uint32_t node) {
  uint64_t on[4] = {};
  memory::AreaInfo area;
  return memory::areas()->look_up(reinterpret_cast<uintptr_t>(at), &area, on) ? on[node] : 0;
}

TEST(RemoteTeams, AreDecidedAboutInsideOfARegion) {
  locality::set_remote_source(&kMadeUp);
  memory::AreaTable* areas = memory::start(*read_machine_aside());
  ASSERT_NE(areas, nullptr);
  char* memory[kMembers];
  for (uint32_t i = 0; i < kMembers; ++i) {
    memory[i] = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
    ASSERT_NE(memory[i], MAP_FAILED);
    uint64_t on[4] = {};
    on[(i + 1) % kMembers] = kBytes;  // the next member's node
    memory::NewArea area{reinterpret_cast<uintptr_t>(memory[i]), kBytes};
    area.bytes_on = on;
    ASSERT_EQ(areas->add(area), BOSK_OK);
  }
  region(kMembers, [&](uint32_t me) {
    EXPECT_EQ(
        attach_memory(current_thread(), {Whose::kCaller}, reinterpret_cast<uintptr_t>(memory[me]),
                      kBytes, memory::kReads | memory::kWrites, 100000),
        BOSK_OK);
    barrier();
    if (me == 0) {
      all_attached.store(true);
      // All is near, says the source: nobody decides.
      wait_for(4);
      EXPECT_EQ(policies::memory_decisions().taken, 0u);
      EXPECT_EQ(policies::remote_counts().raised, 0u);
      far.store(true);
      while (policies::memory_decisions().areas < kMembers) base::raw_syscall(SYS_sched_yield);
      far.store(false);
      wait_for(2);
    }
    barrier();
    EXPECT_EQ(bytes_on(memory[me], me), kBytes) << me;
  });
  const policies::RemoteCounts counts = policies::remote_counts();
  EXPECT_STREQ(counts.source, kMadeUp.name);
  EXPECT_GE(counts.raised, 1u);
  // Where no team is open there is nothing to ask about; the one that runs may have been listed before.
  wait_for(1);
  const uint64_t then = asked.load();
  wait_for(2);
  EXPECT_EQ(asked.load(), then);
  EXPECT_EQ(odd.load(), 0u);
  // The next region is looked at without anybody's doing.
  region(kMembers, [&](uint32_t me) {
    while (me == 0 && asked.load() == then) base::raw_syscall(SYS_sched_yield);
    barrier();
  });
  EXPECT_EQ(odd.load(), 0u);
  detach_all_memory(current_thread(), {Whose::kNextTeam});
}

}  // namespace
}  // namespace bosk::omp
