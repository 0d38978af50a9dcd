// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random operations on random trees of bubbles: many kernel threads at once, with everything found again
// afterwards; and the same traces by one thread beside a sequential model, which must agree at each step.
#include <gtest/gtest.h>

#include <thread>

#include "base/sanitizers.h"
#include "tree_model.h"
#include "tree_traces.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using sched::BubbleState;
using sched::NestedBubble;

#ifdef BOSK_TSAN
constexpr std::uint32_t kSteps = 60'000;
constexpr std::uint32_t kReplayed = 20'000;
#else
constexpr std::uint32_t kSteps = 500'000;  // of all workers together
constexpr std::uint32_t kReplayed = 150'000;
#endif
constexpr std::uint32_t kSeeds = 10;

/// Everything that is queued, blocked or running goes back into the outermost bubble.
void expect_all_found_again(RealTree& tree, std::vector<RealTree::Worker>& workers) {
  for (RealTree::Worker& w : workers) {
    for (TraceThread* t : w.running) sched::requeue(*t, tree.queues.of(0));
    for (TraceThread* t : w.blocked) sched::requeue(*t, tree.queues.of(0));
  }
  sched::close(tree.bubbles[0]);
  ASSERT_EQ(tree.bubbles[0].state, BubbleState::kClosed);
  std::uint32_t members = 0;
  for (NestedBubble& b : tree.bubbles) {
    ASSERT_EQ(b.state, BubbleState::kClosed);
    ASSERT_EQ(b.awaited, 0u);
    if (&b != &tree.bubbles[0]) {
      ASSERT_EQ(b.holder, b.bubble);
    }
    std::uint32_t counted = 0;
    for (const sched::TreeEntity* m = b.first_member; m != nullptr; m = m->next_member) {
      ++counted;
      ASSERT_EQ(m->bubble, &b);
    }
    ASSERT_EQ(b.member_count, counted);
    members += counted;
  }
  ASSERT_EQ(members, tree.threads.size() + tree.bubbles.size() - 1);
  std::uint64_t runs = 0;
  for (const TraceThread& t : tree.threads) {
    ASSERT_EQ(t.holder, t.bubble);
    runs += t.plain;
  }
  ASSERT_EQ(runs, tree.runs);
  std::uint32_t queued = 0;
  for (std::uint32_t d = 0; d < tree.machine().n_domains; ++d) queued += tree.queues.of(d).length;
  ASSERT_EQ(queued, 1u);
  ASSERT_EQ(tree.twice, 0);
}

void run_together(std::uint32_t workers, std::uint32_t seeds, std::uint32_t steps) {
  std::uint64_t runs = 0;
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Plan plan(seed, workers);
    RealTree tree(plan);
    std::vector<RealTree::Worker> state(workers);
    std::vector<std::thread> threads;
    for (std::uint32_t w = 0; w < workers; ++w) {
      state[w].number = w;
      threads.emplace_back([&, w] {
        Trace trace(seed, w);
        for (std::uint32_t i = 0; i < steps / workers; ++i) tree.carry_out(state[w], trace.next());
      });
    }
    for (std::thread& thread : threads) thread.join();
    runs += tree.runs;
    std::uint64_t ghosts = tree.ghosts_run;
    ASSERT_NO_FATAL_FAILURE(expect_all_found_again(tree, state));
    std::uint64_t had = 0;
    for (std::uint32_t i = 0; i < plan.ghosts.size(); ++i) {
      had += plan.ghosts[i];
      ghosts += tree.bubbles[i].ghosts_left();
    }
    EXPECT_EQ(ghosts, had);  // each ran once, or is left
  }
  EXPECT_GT(runs, seeds * (steps / 500));  // they did run things
}

TEST(TreeTraces, ThreeWorkers) { run_together(3, kSeeds, kSteps); }
TEST(TreeTraces, EightWorkers) { run_together(8, kSeeds / 2, kSteps); }
TEST(TreeTraces, OneWorker) { run_together(1, kSeeds / 5, kSteps); }

// ---- beside the model

void expect_same(RealTree& real, TreeModel& model) {
  const auto number = [&](const sched::Entity* e) -> long {
    for (std::uint32_t i = 0; i < real.bubbles.size(); ++i)
      if (e == &real.bubbles[i]) return model.n_threads() + i;
    return static_cast<const TraceThread*>(e)->number;
  };
  for (std::uint32_t d = 0; d < real.machine().n_domains; ++d) {
    std::vector<long> queued;
    for (const sched::Entity* e = real.queues.of(d).first; e != nullptr; e = e->next)
      queued.push_back(number(e));
    ASSERT_EQ(queued, model.queues[d]) << "queue " << d;
  }
  const auto check = [&](const sched::TreeEntity& e, const TreeModel::Thing& m) {
    ASSERT_EQ(e.bubble != nullptr ? number(e.bubble) : -1, m.outer);
    ASSERT_EQ(e.whereabouts == sched::Whereabouts::kHeld, m.place == TreeModel::Place::kHeld);
    ASSERT_EQ(e.whereabouts == sched::Whereabouts::kAwaited, m.awaited);
    ASSERT_EQ(e.priority, m.priority);
  };
  for (std::uint32_t i = 0; i < real.threads.size(); ++i)
    ASSERT_NO_FATAL_FAILURE(check(real.threads[i], model.things[i])) << "thread " << i;
  for (std::uint32_t i = 0; i < real.bubbles.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "bubble " << i);
    const NestedBubble& b = real.bubbles[i];
    const TreeModel::Thing& m = model.bubble(i);
    ASSERT_NO_FATAL_FAILURE(check(b, m));
    ASSERT_EQ(static_cast<int>(b.state), static_cast<int>(m.state));
    ASSERT_EQ(b.awaited, m.awaits);
    ASSERT_EQ(b.ghosts_left(), m.claimable + m.held);
    ASSERT_EQ(b.held_ghosts, m.held);
    std::vector<long> members;
    for (const sched::TreeEntity* e = b.first_member; e != nullptr; e = e->next_member)
      members.push_back(number(e));
    ASSERT_EQ(members, m.members);
  }
}

void replay(std::uint32_t seed, std::uint32_t workers, std::uint32_t steps) {
  SCOPED_TRACE(seed);
  const Plan plan(seed, workers);
  RealTree real(plan);
  TreeModel model(plan, real.machine());
  std::vector<RealTree::Worker> of_real(workers);
  std::vector<TreeModel::Worker> of_model(workers);
  std::vector<Trace> traces;
  for (std::uint32_t w = 0; w < workers; ++w) {
    of_real[w].number = of_model[w].number = w;
    traces.emplace_back(seed, w);
  }
  ASSERT_NO_FATAL_FAILURE(expect_same(real, model));
  for (std::uint32_t i = 0; i < steps; ++i) {
    const std::uint32_t w = i % workers;
    const Step step = traces[w].next();
    const Did did = real.carry_out(of_real[w], step);
    const Did expected = model.carry_out(of_model[w], step);
    ASSERT_TRUE(did == expected) << "step " << i << ", operation " << static_cast<int>(step.op);
    if (i < 3000 || i % 512 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_same(real, model))
          << "after step " << i << ", operation " << static_cast<int>(step.op);
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_same(real, model));
  ASSERT_NO_FATAL_FAILURE(expect_all_found_again(real, of_real));
}

TEST(TreeTraces, AgreeWithTheSequentialModel) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed)
    for (const std::uint32_t workers : {3u, 8u})
      ASSERT_NO_FATAL_FAILURE(replay(seed, workers, kReplayed));
}

}  // namespace
