// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Teams that were made just now are seen by strangers. Every round is a new pool, whose first teams are
// fresh memory: nothing but the scheduler's own words orders what other workers read of them, so that
// ThreadSanitizer sees each word that orders too little.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "../unit/in_child.h"
#include "omp/explicit_task.h"
#include "omp/icv.h"
#include "omp/region.h"
#include "omp/team.h"

namespace {

using namespace bosk;

constexpr int kRounds = 30;
constexpr int kPatience = 3000;  ///< looks before a member goes on although nobody has come

// Relaxed, all of it: the test itself must not order anything.
struct Round {
  std::atomic<int> step{0};
  std::atomic<int> inner_members{0};
};

uint32_t my_number() { return omp::current_thread()->member->index; }

void wait_for_step(Round& round, int step) {
  for (int i = 0; i < kPatience && round.step.load(std::memory_order_relaxed) < step; ++i)
    usleep(10);
}

/// The ghost of the first member's team keeps a third worker busy, so that the first member's own
/// worker idles, waiting for that team only.
void first_inner(void* data) {
  auto& round = *static_cast<Round*>(data);
  round.inner_members.fetch_add(1, std::memory_order_relaxed);
  if (my_number() == 1) {
    round.step.store(1, std::memory_order_relaxed);
    wait_for_step(round, 2);
  } else {
    wait_for_step(round, 1);
  }
}

/// Whoever opens this one looks for an idle worker, and at what that waits for.
void second_inner(void* data) {
  static_cast<Round*>(data)->inner_members.fetch_add(1, std::memory_order_relaxed);
}

void outer(void* data) {
  auto& round = *static_cast<Round*>(data);
  switch (my_number()) {
    case 0:
      omp::parallel(first_inner, data, 2, 0);
      break;
    case 1:
      wait_for_step(round, 1);
      usleep(2000);  // most likely it idles by now; nothing depends on it
      omp::parallel(second_inner, data, 2, 0);
      round.step.store(2, std::memory_order_relaxed);
      break;
  }
}

void* one_round(void* data) {
  omp::own_icvs(omp::current_task())->max_active_levels = 3;
  omp::parallel(outer, data, 3, 0);
  return nullptr;
}

TEST(NewTeams, are_complete_for_whoever_sees_them) {
  const auto result = bosk::testing::in_child({{"BOSK_WORKERS", "3"}}, [] {
    int members = 0;
    for (int i = 0; i < kRounds; ++i) {
      Round round;
      pthread_t thread;
      if (pthread_create(&thread, nullptr, one_round, &round) != 0) return std::string("no thread");
      pthread_join(thread, nullptr);
      members += round.inner_members.load(std::memory_order_relaxed);
    }
    return std::to_string(members);
  });
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, std::to_string(kRounds * 4));
  EXPECT_EQ(result.errors.find("data race"), std::string::npos) << result.errors;
}

}  // namespace
