// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers with homes while pools come and go, teams change their size for long enough to change the seats,
// members exchange them, and members idle: what ThreadSanitizer can see of it, and that masks are what they were.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

#include "../unit/in_child.h"
#include "omp/explicit_task.h"
#include "omp/icv.h"
#include "omp/region.h"
#include "omp/team.h"
#include "sched/configuration.h"
#include "sched/homes.h"
#include "sched/scheduler.h"

namespace {

using namespace bosk;

constexpr int kPools = 3;
constexpr int kRounds = 6;

struct Counts {
  std::atomic<long> members{0};
  std::atomic<long> narrow{0};  ///< members that found another mask than the process has
  std::atomic<int> seated{0};   ///< pools that had seats
  std::atomic<int> exchanged{0};
  cpu_set_t given;
};

void look(void* data) {
  auto& counts = *static_cast<Counts*>(data);
  counts.members.fetch_add(1, std::memory_order_relaxed);
  cpu_set_t mask;
  CPU_ZERO(&mask);
  base::raw_syscall(SYS_sched_getaffinity, 0, sizeof mask, base::address_of(&mask));
  if (!CPU_EQUAL(&mask, &counts.given)) counts.narrow.fetch_add(1, std::memory_order_relaxed);
}

void outer(void* data) {
  look(data);
  omp::parallel(look, data, 2, 0);
}

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The two members change places, before a region.
void exchange(Counts* counts) {
  sched::Pool* pool = omp::current_thread()->pool;
  uint32_t parts[2];
  const topology::Machine* machine = sched::configuration().home_machine();
  if (machine == nullptr || !sched::parts_of_members(pool, *machine, 2, parts)) return;
  std::swap(parts[0], parts[1]);
  if (sched::exchange_seats(pool, 2, parts) == sched::Exchange::kDone)
    counts->exchanged.fetch_add(1, std::memory_order_relaxed);
}

/// A pool of its own: teams of two, then of three for long enough to be a habit, with pauses.
void* open_regions(void* data) {
  omp::own_icvs(omp::current_task())->max_active_levels = 3;
  for (const uint32_t size : {2u, 3u, 2u}) {
    const double end = now() + 0.12;
    for (int i = 0; now() < end || i < 20; ++i) {
      omp::parallel(i % 4 == 0 ? outer : look, data, size, 0);
      if (i % 16 == 0) usleep(1000);
      if (i % 8 == 5 && size == 2) exchange(static_cast<Counts*>(data));
    }
  }
  auto& counts = *static_cast<Counts*>(data);
  if (omp::current_thread()->pool->seats.load() != nullptr) counts.seated.fetch_add(1);
  return nullptr;
}

std::string run() {
  Counts counts;
  CPU_ZERO(&counts.given);
  sched_getaffinity(0, sizeof counts.given, &counts.given);
  if (CPU_COUNT(&counts.given) < 2) return "one CPU";
  for (int round = 0; round < kRounds; ++round) {
    pthread_t thread[kPools];
    for (pthread_t& t : thread) pthread_create(&t, nullptr, open_regions, &counts);
    for (const pthread_t& t : thread) pthread_join(t, nullptr);
    // One of them, at least, found the seats free: those of the round before have ended.
    if (counts.seated.load() <= round) return "nobody has seats in round " + std::to_string(round);
  }
  if (counts.members.load() < 1000) return "hardly any members";
  if (counts.exchanged.load() == 0) return "no seats were exchanged";
  if (counts.narrow.load() != 0) return std::to_string(counts.narrow.load()) + " narrow masks";
  return "fine";
}

TEST(Homes, leave_no_mask_narrow_while_pools_come_and_go) {
  for (const char* identity : {"auto", "kthread"}) {
    const auto result = bosk::testing::in_child(
        {{"BOSK_WORKER_HOMES", "on"}, {"BOSK_IDENTITY", identity}, {"BOSK_WORKERS", "2"}}, run);
    if (result.output == "one CPU") GTEST_SKIP() << "one CPU has no seats to give";
    EXPECT_EQ(result.output, "fine") << result.errors;
    EXPECT_EQ(result.errors, "");
  }
}

}  // namespace
