// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers at once under every policy: trees with relations and priorities, bubbles that wait, thieves,
// slices that regenerate, threads that give way. Each thread is run to its end once, by one at a time.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "../unit/policy_harness.h"

namespace {

using namespace bosk;
using namespace bosk::test;

constexpr int kRounds = 150;

struct Job : sched::TreeEntity {
  std::atomic<int> runners{0};
  std::atomic<std::uint32_t> left{0};  ///< times that it gives way before it ends
};

/// A tree that outlives its workers.
struct Work {
  std::deque<sched::NestedBubble> bubbles;
  std::deque<Job> jobs;
  std::atomic<std::uint32_t> ended{0};
  std::atomic<bool> wrong{false};

  Work(std::uint32_t seed, std::uint32_t n_bubbles, std::uint32_t n_jobs)
      : bubbles(n_bubbles), jobs(n_jobs) {
    std::mt19937 random(seed);
    for (sched::NestedBubble& bubble : bubbles) {
      bubble.relation = static_cast<sched::Relation>(random() % sched::kRelations);
      bubble.priority = static_cast<std::int32_t>(random() % 2);
    }
    for (std::uint32_t i = 1; i < n_bubbles; ++i) sched::insert(bubbles[random() % i], bubbles[i]);
    for (Job& job : jobs) {
      job.left = random() % 4;
      sched::insert(bubbles[random() % n_bubbles], job);
    }
  }
};

void work_on(World& world, Work& work, std::uint32_t pu) {
  std::mt19937 random(pu);
  while (work.ended.load(std::memory_order_relaxed) != work.jobs.size()) {
    const sched::Found found = world.engine().next(pu);
    if (!found) {
      if (!world.engine().idle(pu)) std::this_thread::yield();
      continue;
    }
    auto& job = static_cast<Job&>(*found.entity);
    if (job.runners.fetch_add(1) != 0) work.wrong = true;
    sched::note_running(job, pu, world.machine().pu(pu).id);
    if (random() % 4 == 0) std::this_thread::yield();
    const std::uint32_t left = job.left.load();
    if (left != 0) job.left = left - 1;
    // Stable while the job belongs to it and is ours.
    sched::NestedBubble* around = job.bubble;
    if (random() % 3 == 0) world.engine().tick(*around);
    job.runners.fetch_sub(1);
    if (left != 0) {
      sched::requeue(job, *found.queue);
      continue;
    }
    world.engine().done(job);
    sched::leave(job);
    work.ended.fetch_add(1);
  }
}

class UnderPolicy : public testing::TestWithParam<const char*> {};

TEST_P(UnderPolicy, EachThreadIsRunOnceByOneAtATime) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const auto seed = static_cast<std::uint32_t>(round);
    World world(symmetric(2, 1, 1 + seed % 3, 1), GetParam());
    Work work(seed, 2 + seed % 15, 60);
    world.engine().wake(work.bubbles[0], 0);
    std::vector<std::thread> workers;
    for (std::uint32_t pu = 0; pu < world.machine().n_pus; ++pu)
      workers.emplace_back(work_on, std::ref(world), std::ref(work), pu);
    for (std::thread& worker : workers) worker.join();
    EXPECT_FALSE(work.wrong);
    for (const Job& job : work.jobs) EXPECT_EQ(job.bubble, nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnderPolicy,
                         testing::Values("null", "burst", "burst:core", "spread", "explode",
                                         "steal", "cache", "gang", "spread@machine,cache@node",
                                         "cache@machine,gang@node"));

}  // namespace
