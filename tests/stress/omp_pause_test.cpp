// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pauses at any moment of threads that begin, open regions, wait for locks and end. The sanitizers look at
// what the program tests (programs/pause.c) only look at from outside.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <atomic>

#include "omp/locks.h"
#include "omp/routines.h"
#include "omp/team.h"

namespace bosk::omp {
namespace {

constexpr int kSoft = 1;
constexpr int kHard = 2;

template <typename Body>
void region(uint32_t size, Body body) {
  parallel([](void* data) { (*static_cast<Body*>(data))(); }, &body, size, 0);
}

void some_regions(uint32_t round) {
  std::atomic<uint32_t> members{0};
  const uint32_t size = 1 + round % 5;
  region(size, [&] {
    EXPECT_NE(pause_host(kHard), 0);
    barrier();
    members.fetch_add(1);
    if (round % 3 == 0) region(2, [&] { barrier(); });
  });
  EXPECT_EQ(members.load(), size);
}

struct Shared {
  std::atomic<uint32_t> pauses{0};
  std::atomic<bool> over{false};
  LockWord word{kLockFree};
  uint32_t guarded = 0;
};

void* busy(void* argument) {
  auto* shared = static_cast<Shared*>(argument);
  DataIcvs* icvs = changeable_icvs();
  icvs->max_active_levels = 2;
  for (uint32_t round = 0; !shared->over.load(); ++round) {
    some_regions(round);
    lock(shared->word);
    ++shared->guarded;
    unlock(shared->word);
    // So that pauses succeed, however slow regions are.
    const uint32_t seen = shared->pauses.load();
    while (round % 2 == 0 && !shared->over.load() && shared->pauses.load() == seen) sched_yield();
  }
  return nullptr;
}

void* brief(void*) {
  some_regions(2);
  return nullptr;
}

TEST(Pause, BesideThreadsThatComeAndGo) {
  setenv("OMP_DYNAMIC", "false", 1);
  // Members do not spin for one another, so that fewer workers than members will do without preemption.
  setenv("BOSK_WORKERS", "3", 1);
  constexpr uint32_t kWanted = 60;
  Shared shared;
  pthread_t threads[3];
  for (pthread_t& thread : threads) ASSERT_EQ(pthread_create(&thread, nullptr, busy, &shared), 0);
  uint32_t refused = 0;
  for (uint32_t round = 0; shared.pauses.load() < kWanted; ++round) {
    pthread_t other;
    ASSERT_EQ(pthread_create(&other, nullptr, brief, nullptr), 0);
    if (pause_host(round % 4 == 0 ? kSoft : kHard) == 0)
      shared.pauses.fetch_add(1);
    else
      ++refused;
    if (round % 2 == 0) some_regions(round);
    pthread_join(other, nullptr);
  }
  shared.over.store(true);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  EXPECT_EQ(pause_host(kHard), 0);
  some_regions(4);
  RecordProperty("refused", static_cast<int>(refused));
}

}  // namespace
}  // namespace bosk::omp
