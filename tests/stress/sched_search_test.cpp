// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Many kernel threads search, requeue, burst and regenerate on one tree of queues: nothing may be
// lost or found twice. Run it under ThreadSanitizer, too.
#include "sched/search.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "../unit/policy_harness.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using sched::Entity;
using sched::NestedBubble;
using sched::RunQueue;
using sched::TreeEntity;

constexpr int kPlainTurns = 60000;
constexpr int kBubbleTurns = 25000;

/// Runs f(number) on `count` kernel threads.
template <class F>
void on_threads(unsigned count, F&& f) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

class SearchStress : public testing::TestWithParam<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Workers, SearchStress, testing::Values(1u, 3u, 16u),
                         testing::PrintToStringParamName());

/// An entity that knows whether somebody runs it. What the runner writes needs no atomic: the
/// queues' locks order one runner after the other, which ThreadSanitizer checks.
struct Token : Entity {
  std::atomic<int> runners{0};
  std::uint64_t plain = 0;
};

TEST_P(SearchStress, EntitiesAreConserved) {
  const MachinePtr machine = symmetric(4, 1, 2, 2);
  sched::DomainQueues queues;
  ASSERT_TRUE(queues.build(*machine));
  std::deque<Token> tokens(40);
  std::mt19937 seed(1);
  for (Token& token : tokens) {
    token.priority = static_cast<std::int32_t>(seed() % 3);
    queues.of(seed() % machine->n_domains).enqueue(&token);
  }
  std::atomic<std::uint64_t> runs{0};
  std::atomic<int> twice{0};
  on_threads(GetParam(), [&](unsigned number) {
    std::mt19937 random(number);
    std::uint64_t mine = 0;
    for (int turn = 0; turn < kPlainTurns; ++turn) {
      const sched::QueuePath path = queues.path(random() % machine->n_pus);
      auto* token = static_cast<Token*>(sched::take_best(path));
      if (token == nullptr) continue;
      // It yields some times, then it goes to some queue of the machine.
      for (int yields = static_cast<int>(random() % 4);; --yields) {
        twice += token->runners.fetch_add(1) != 0;
        ++token->plain;
        ++mine;
        token->runners.fetch_sub(1);
        if (yields <= 0) break;
        RunQueue& home = *path.queue[random() % path.length];
        auto* next = static_cast<Token*>(sched::exchange_best(path, token, home));
        if (next != nullptr) token = next;
      }
      queues.of(random() % machine->n_domains).enqueue(token, random() % 4 == 0);
    }
    runs += mine;
  });
  EXPECT_EQ(twice, 0);
  EXPECT_GT(runs, kPlainTurns / 2u);  // it did meet something
  std::size_t queued = 0;
  std::uint64_t counted = 0;
  for (std::uint32_t d = 0; d < machine->n_domains; ++d) {
    RunQueue& queue = queues.of(d);
    while (queue.first != nullptr) {
      auto* token = static_cast<Token*>(queue.first);
      EXPECT_EQ(token->holder, &queue);
      queue.remove_locked(token);
      counted += token->plain;
      ++queued;
    }
    EXPECT_EQ(queue.best, sched::kNoEntity);
    EXPECT_EQ(queue.length, 0u);
  }
  EXPECT_EQ(queued, tokens.size());
  EXPECT_EQ(counted, runs);
  queues.release();
}

struct Job : TreeEntity {
  std::atomic<int> runners{0};
  std::uint64_t plain = 0;
};

void check_bubbles(unsigned workers, const char* plan) {
  World world(symmetric(4, 1, 2, 2), plan);
  std::deque<NestedBubble> bubbles(13);
  std::deque<sched::Bubble> teams(bubbles.size());
  std::deque<Job> jobs(60);
  constexpr std::uint32_t kGhosts = 300;
  for (std::size_t b = 0; b < bubbles.size(); b += 3) {
    teams[b].ghosts.open(kGhosts, 0);
    bubbles[b].team = &teams[b];
  }
  // Two outer bubbles, each with inner ones; jobs everywhere.
  for (std::size_t b = 2; b < bubbles.size(); ++b) sched::insert(bubbles[b % 2], bubbles[b]);
  for (std::size_t j = 0; j < jobs.size(); ++j) sched::insert(bubbles[j % bubbles.size()], jobs[j]);
  world.engine().wake(bubbles[0], 0);
  world.engine().wake(bubbles[1], 0);

  std::atomic<std::uint64_t> runs{0};
  std::atomic<int> twice{0};
  on_threads(workers, [&](unsigned number) {
    std::mt19937 random(number + 100);
    const std::uint32_t pus = world.machine().n_pus;
    // Who has a bubble in hand may lose its CPU, and the others find nothing for that long: they go on until they
    // have met something.
    for (int turn = 0; turn < kBubbleTurns || runs < kBubbleTurns / 4u; ++turn) {
      const std::uint32_t pu = random() % pus;
      const sched::Found found = world.engine().next(pu);
      if (found.entity != nullptr) {
        auto* job = static_cast<Job*>(found.entity);
        sched::note_running(*job, number, found.queue->domain);
        twice += job->runners.fetch_add(1) != 0;
        ++job->plain;
        ++runs;
        job->runners.fetch_sub(1);
        if (random() % 8 == 0 && job->bubble != nullptr) {  // it moves to another bubble
          sched::leave(*job);
          sched::insert(bubbles[random() % bubbles.size()], *job, true);
        }
        sched::requeue(*job, world.queue(found.queue->domain), random() % 4 == 0);
      }
      if (found.ghosts != nullptr) found.ghosts->ghosts.claim(1);
      if (random() % 32 == 0) sched::close(bubbles[random() % bubbles.size()]);
      if (random() % 64 == 0) sched::summarize(bubbles[random() % 2]);
    }
  });
  EXPECT_EQ(twice, 0);

  // Nothing runs any more: everything goes back into the outer bubbles, wherever it was.
  std::uint64_t counted = 0;
  std::size_t held = 0;
  for (int outer = 0; outer < 2; ++outer) {
    sched::close(bubbles[outer]);
    EXPECT_EQ(bubbles[outer].state, sched::BubbleState::kClosed);
    const sched::Summary sum = sched::summarize(bubbles[outer]);
    held += sum.threads;
    EXPECT_EQ(sum.bubbles, outer == 0 ? 7u : 6u);
    EXPECT_EQ(sum.ready, sum.threads);
  }
  EXPECT_EQ(held, jobs.size());
  for (std::size_t b = 2; b < bubbles.size(); ++b) {
    EXPECT_EQ(bubbles[b].state, sched::BubbleState::kClosed);
    EXPECT_EQ(bubbles[b].holder, bubbles[b].bubble);
  }
  for (const Job& job : jobs) {
    EXPECT_EQ(job.holder, job.bubble);
    counted += job.plain;
  }
  EXPECT_EQ(counted, runs);
  std::uint32_t queued = 0;
  for (std::uint32_t d = 0; d < world.machine().n_domains; ++d) queued += world.queue(d).length;
  EXPECT_EQ(queued, 2u);  // the outer bubbles
}

TEST_P(SearchStress, BubblesBurstAndRegenerateWithoutLoss) { check_bubbles(GetParam(), "burst"); }

TEST_P(SearchStress, BubblesAreSpreadAndRegenerateWithoutLoss) {
  check_bubbles(GetParam(), "spread:40@machine,burst@core");
}

TEST_P(SearchStress, GhostsAreServedOnceEach) {
  const unsigned workers = GetParam();
  World world(symmetric(4, 1, 2, 2), "burst");
  constexpr std::uint32_t kGhosts = 3000;
  std::deque<sched::Bubble> teams(4);
  std::deque<NestedBubble> bubbles(4);
  std::deque<TreeEntity> threads(4);
  for (std::size_t i = 0; i < teams.size(); ++i) {
    teams[i].ghosts.open(kGhosts, 0);
    bubbles[i].team = &teams[i];
    sched::insert(bubbles[i], threads[i]);
    world.engine().wake(bubbles[i], 0);
  }
  std::atomic<std::uint32_t> ghosts{0};
  std::atomic<std::uint32_t> ran{0};
  on_threads(workers, [&](unsigned number) {
    // Each worker plays all PUs in turn, so that one is enough for the whole machine.
    std::uint32_t idle = 0;
    for (std::uint32_t pu = number; idle < 2 * world.machine().n_pus; ++pu) {
      const sched::Found found = world.engine().next(pu % world.machine().n_pus);
      idle = found ? 0 : idle + 1;
      if (found.entity != nullptr) ++ran;
      if (found.ghosts != nullptr) ghosts += found.ghosts->ghosts.claim(3).count;
    }
  });
  EXPECT_EQ(ghosts, kGhosts * teams.size());
  // Whoever is idle stops, but a bubble may then still be in another one's hand: look once more.
  for (std::uint32_t pu = 0; pu < world.machine().n_pus; ++pu)
    while (world.engine().next(pu).entity != nullptr) ++ran;
  EXPECT_EQ(ran, threads.size());
}

}  // namespace
