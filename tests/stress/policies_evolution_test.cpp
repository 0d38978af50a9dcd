// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Everything that evolves, at once and by many kernel threads: idle PUs pull, time slices end, phases
// redistribute, threads block, move and end, ghosts are taken. Nothing may be lost or run twice.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "../unit/policy_harness.h"
#include "base/sanitizers.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using sched::BubbleState;
using sched::Found;
using sched::NestedBubble;
using sched::TreeEntity;

#ifdef BOSK_TSAN
constexpr std::uint32_t kTurns = 150'000;
#else
constexpr std::uint32_t kTurns = 900'000;  // of all workers together
#endif

struct Job : TreeEntity {
  std::atomic<int> runners{0};
  std::atomic<bool> recalled{false};
  std::uint64_t plain = 0;
};

/// Threads that have blocked, for anybody to wake.
class Blocked {
 public:
  void add(Job& job) {
    const std::lock_guard guard(mutex_);
    jobs_.push_back(&job);
  }
  Job* take() {
    const std::lock_guard guard(mutex_);
    if (jobs_.empty()) return nullptr;
    Job* job = jobs_.back();
    jobs_.pop_back();
    return job;
  }

 private:
  std::mutex mutex_;
  std::vector<Job*> jobs_;
};

struct Forest {
  World world;
  std::deque<NestedBubble> bubbles;
  std::deque<sched::Bubble> teams;
  std::deque<Job> jobs;
  std::uint64_t ghosts = 0;
  std::atomic<std::uint64_t> time{1};

  Forest(const char* plan, std::uint32_t seed)
      : world(symmetric(4, 1, 2, 2), plan),
        bubbles(3 + seed % 20),
        teams(bubbles.size()),
        jobs(80) {
    std::mt19937 random(seed);
    for (std::uint32_t b = 0; b < bubbles.size(); ++b) {
      if (random() % 3 == 0) {
        ghosts += 500;
        teams[b].ghosts.open(500, 0);
        bubbles[b].team = &teams[b];
      }
      if (random() % 3 == 0) bubbles[b].evolution.slice_ns = 20 + random() % 200;
      bubbles[b].priority = static_cast<std::int32_t>(random() % 3) - 2;
      if (b != 0) sched::insert(bubbles[random() % b], bubbles[b]);
    }
    for (Job& job : jobs) {
      if (random() % 2 == 0) job.figures.load = random() % 8;
      sched::insert(bubbles[random() % bubbles.size()], job);
    }
    policies::PolicyEngine& engine = world.engine();
    engine.set_clock(
        {[](void* context) { return static_cast<Forest*>(context)->time.fetch_add(1); }, this});
    engine.set_recall({[](void*, TreeEntity& running) {
                         static_cast<Job&>(running).recalled.store(true, std::memory_order_relaxed);
                       },
                       nullptr});
    engine.set_damping({.settle_ns = 50, .worth_ns = 3});
    engine.set_redistribution_period(50'000);
    engine.wake(bubbles[0], 0);
  }
};

void turn_many(Forest& f, Blocked& blocked, std::uint32_t number, std::uint32_t turns,
               std::atomic<std::uint64_t>& runs, std::atomic<std::uint64_t>& claimed,
               std::atomic<int>& twice) {
  std::mt19937 random(number + 77);
  policies::PolicyEngine& engine = f.world.engine();
  const std::uint32_t pus = f.world.machine().n_pus;
  std::vector<Job*> mine;
  std::uint64_t ran = 0;
  std::uint64_t took = 0;
  const auto stop = [&](std::size_t i) {
    Job* job = mine[i];
    mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(i));
    job->recalled.store(false, std::memory_order_relaxed);
    job->runners.fetch_sub(1);
    return job;
  };
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const std::uint32_t pu = random() % pus;
    const std::uint32_t what = random() % 32;
    if (mine.size() < 4 && what < 16) {
      const Found found = engine.next(pu);
      if (found.ghosts != nullptr) took += found.ghosts->ghosts.claim(1 + random() % 3).count;
      if (found.entity == nullptr) {
        if (!found) engine.idle(pu);
        continue;
      }
      auto* job = static_cast<Job*>(found.entity);
      sched::note_running(*job, number, found.queue->domain);
      twice += job->runners.fetch_add(1) != 0;
      ++job->plain;
      ++ran;
      mine.push_back(job);
      continue;
    }
    if (what == 16) sched::close(f.bubbles[random() % f.bubbles.size()]);
    if (what == 17 && random() % 64 == 0)
      engine.redistribute(random() % f.world.machine().n_domains);
    if (what == 18) engine.set_load(f.jobs[random() % f.jobs.size()], random() % 8);
    if (what == 19)
      if (Job* job = blocked.take()) sched::requeue(*job, f.world.queue(random() % pus));
    if (mine.empty()) continue;
    const std::size_t i = random() % mine.size();
    Job& job = *mine[i];
    sched::RunQueue& back = f.world.queue(job.figures.last_domain);
    const bool yields = engine.tick_thread(job) || job.recalled.load(std::memory_order_relaxed);
    if (what == 20) {
      sched::note_blocked(job);  // before anybody can wake it
      blocked.add(*stop(i));
    } else if (what == 21) {
      job.figures.cpu_ns.store(random() % 64, std::memory_order_relaxed);
      engine.done(job);
      sched::leave(job);
      sched::insert(f.bubbles[random() % f.bubbles.size()], job, true);
    } else if (what == 22) {
      job.priority = static_cast<std::int32_t>(random() % 3) - 1;
    } else if (yields || what > 24) {
      sched::requeue(*stop(i), back, random() % 4 == 0);
    }
  }
  while (!mine.empty()) {
    sched::RunQueue& back = f.world.queue(mine[0]->figures.last_domain);
    sched::requeue(*stop(0), back);
  }
  runs += ran;
  claimed += took;
}

void evolve(const char* plan, std::uint32_t workers, std::uint32_t seed) {
  SCOPED_TRACE(testing::Message() << plan << ", seed " << seed);
  Forest f(plan, seed);
  Blocked blocked;
  std::atomic<std::uint64_t> runs{0};
  std::atomic<std::uint64_t> claimed{0};
  std::atomic<int> twice{0};
  std::vector<std::thread> threads;
  for (std::uint32_t w = 0; w < workers; ++w)
    threads.emplace_back(
        [&, w] { turn_many(f, blocked, w, kTurns / workers, runs, claimed, twice); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(twice, 0);
  EXPECT_GT(runs,
            0u);  // how many hangs on the CPUs: who is off them holds jobs that others would run
  const policies::EvolutionCounts counts = f.world.engine().evolution_counts();
  EXPECT_GT(counts.moved + counts.regenerated + counts.widened + counts.threads, 0u);
  EXPECT_GT(counts.phases, 0u);

  // Nothing runs any more, and nothing waits for ever: all of it closes.
  while (Job* job = blocked.take()) sched::requeue(*job, f.world.queue(0));
  sched::close(f.bubbles[0]);
  std::uint64_t plain = 0;
  for (const NestedBubble& bubble : f.bubbles) {
    ASSERT_EQ(bubble.state, BubbleState::kClosed);
    claimed += bubble.ghosts_left();
    if (bubble.bubble != nullptr) {
      ASSERT_EQ(bubble.holder, bubble.bubble);
    }
  }
  for (const Job& job : f.jobs) {
    ASSERT_EQ(job.holder, job.bubble);
    plain += job.plain;
  }
  EXPECT_EQ(plain, runs);
  EXPECT_EQ(claimed, f.ghosts);
  std::uint32_t queued = 0;
  for (std::uint32_t d = 0; d < f.world.machine().n_domains; ++d) queued += f.world.queue(d).length;
  EXPECT_EQ(queued, 1u);
}

class EvolutionStress : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Workers, EvolutionStress, testing::Values(1u, 3u, 8u),
                         testing::PrintToStringParamName());

TEST_P(EvolutionStress, UnderBurst) {
  for (std::uint32_t seed = 0; seed < 3; ++seed) evolve("burst", GetParam(), seed);
}
TEST_P(EvolutionStress, UnderSpread) {
  for (std::uint32_t seed = 10; seed < 13; ++seed) evolve("spread:60", GetParam(), seed);
}
TEST_P(EvolutionStress, UnderBoth) {
  for (std::uint32_t seed = 20; seed < 22; ++seed)
    evolve("spread@machine,burst:core@node", GetParam(), seed);
}

}  // namespace
