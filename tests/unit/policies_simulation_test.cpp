// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole programs of random bubbles on invented machines of 1 to 1,024 PUs, in virtual time: how long
// they take against what is possible, how far from each other threads run that share, and that no PU is
// idle while there is something that it may run.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "base/sanitizers.h"
#include "machine_simulation.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using sched::NestedBubble;

#if defined(BOSK_TSAN)
constexpr bool kUnderTsan = true;
#else
constexpr bool kUnderTsan = false;
#endif

/// A program: bubbles in bubbles, threads of very different lengths in the innermost ones.
struct Program {
  std::deque<NestedBubble> bubbles;
  std::deque<SimThread> threads;
  std::vector<std::vector<std::size_t>> groups;  ///< threads of one innermost bubble

  Program(std::uint32_t seed, std::size_t n_threads, bool hints) {
    std::mt19937 random(seed);
    bubbles.emplace_back();
    while (threads.size() < n_threads) {
      // Down from the outermost one, by chance; then a group of 2 to 8 threads.
      NestedBubble* at = &bubbles[0];
      for (std::uint32_t depth = random() % 3; depth-- > 0;) {
        NestedBubble& inner = bubbles.emplace_back();
        sched::insert(*at, inner);
        at = &inner;
      }
      for (std::uint32_t n = 1 + random() % 3; n-- > 0;) {
        NestedBubble& group = bubbles.emplace_back();
        sched::insert(*at, group);
        groups.emplace_back();
        // Whole groups are light or heavy, and the threads in them differ, too.
        const std::uint64_t weight = std::uint64_t{1} << random() % 6;
        for (std::uint32_t m = 2 + random() % 7; m-- > 0;) {
          groups.back().push_back(threads.size());
          SimThread& t = threads.emplace_back();
          t.length = t.left = weight * (20'000 + random() % 80'000);
          if (hints) t.figures.load = static_cast<std::uint32_t>(t.length / 1000);
          sched::insert(group, t);
        }
      }
    }
  }

  std::uint64_t bound(std::uint32_t pus) const {
    std::uint64_t total = 0;
    std::uint64_t longest = 0;
    for (const SimThread& t : threads) {
      total += t.length;
      longest = std::max(longest, t.length);
    }
    return std::max((total + pus - 1) / pus, longest);
  }
  /// Over all pairs of threads of one group: levels from the PUs where they ran up to what is around
  /// both.
  std::uint64_t distance(const Machine& machine) const {
    std::uint64_t sum = 0;
    for (const auto& group : groups)
      for (std::size_t i = 0; i < group.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
          const Domain& a = machine.pu(threads[group[i]].last_pu);
          const Domain& b = machine.pu(threads[group[j]].last_pu);
          sum += machine.common_ancestor(a, b).height;
        }
    return sum;
  }
};

struct Shape {
  std::uint32_t nodes, caches, cores, pus;
  std::uint32_t count() const { return nodes * caches * cores * pus; }
};

struct Outcome {
  double times_bound = 0;
  std::uint64_t distance = 0;
  std::uint64_t held_up = 0;  ///< PUs that were idle while one of their queues had something
  policies::EvolutionCounts counts{};
};

enum class With { kBubbles, kOneQueue };

Outcome simulate(const Shape& shape, std::uint32_t seed, const char* plan, bool hints, With with) {
  World world(symmetric(shape.nodes, shape.caches, shape.cores, shape.pus), plan);
  const std::uint32_t pus = world.machine().n_pus;
  Program program(seed, std::size_t{pus} * 4, hints);
  Outcome outcome;
  Simulation simulation(world, {.tick = 50'000});
  simulation.settled = [&] {
    for (std::uint32_t pu = 0; pu < pus; ++pu) {
      if (simulation.on(pu) != nullptr) continue;
      for (const Domain* d = &world.machine().pu(pu); d != nullptr; d = d->parent)
        outcome.held_up += !world.queue(d->id).empty_hint();
    }
  };
  if (with == With::kOneQueue) {
    for (SimThread& t : program.threads) {
      EXPECT_TRUE(sched::remove(t));
      world.engine().wake(t, 0);
    }
  } else {
    world.engine().wake(program.bubbles[0], 0);
  }
  const std::uint64_t took = simulation.run();
  for (const SimThread& t : program.threads) EXPECT_TRUE(t.ended);
  outcome.times_bound = static_cast<double>(took) / static_cast<double>(program.bound(pus));
  outcome.distance = program.distance(world.machine());
  outcome.counts = world.engine().evolution_counts();
  return outcome;
}

/// `near`: the machine has levels enough that there is a distance to save.
void check(const Shape& shape, const char* plan, bool hints, std::uint32_t seeds, bool near) {
  std::uint64_t distance = 0;
  std::uint64_t of_one_queue = 0;
  double worst = 0;
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << shape.count() << " PUs, " << plan << ", seed " << seed);
    const Outcome bubbles = simulate(shape, seed, plan, hints, With::kBubbles);
    const Outcome queue = simulate(shape, seed, plan, hints, With::kOneQueue);
    EXPECT_LE(bubbles.times_bound, 2.0);
    EXPECT_EQ(bubbles.held_up, 0u);
    worst = std::max(worst, bubbles.times_bound);
    distance += bubbles.distance;
    of_one_queue += queue.distance;
  }
  const double part =
      of_one_queue != 0 ? static_cast<double>(distance) / static_cast<double>(of_one_queue) : 0;
  if (near) {
    EXPECT_LE(part, 0.5) << shape.count() << " PUs, " << plan;
  }
  std::printf("%4u PUs, %s%s: at most %.2f x the bound, %.2f of one queue's distance\n",
              shape.count(), plan, hints ? " with loads" : "", worst, part);
}

/// Three levels and more between the machine and the PU: there is a distance to save.
const Shape kDeep[] = {{2, 2, 4, 2}, {4, 2, 4, 2}, {8, 4, 4, 2}, {16, 4, 8, 2}};
/// Small and flat ones.
const Shape kSmall[] = {{1, 1, 1, 1}, {1, 1, 2, 1},  {2, 1, 1, 1}, {1, 1, 2, 2},
                        {2, 1, 2, 2}, {1, 1, 16, 1}, {1, 2, 8, 2}};

TEST(Simulation, EndsWithinTwiceTheBoundWhileThreadsThatShareAreNear) {
  for (const Shape& shape : kDeep) {
    // One thread plays all: ThreadSanitizer has nothing to find that it does not find on the smaller ones.
    if (kUnderTsan && shape.count() >= 1024) continue;
    for (const bool hints : {false, true})
      check(shape, "spread", hints, shape.count() >= 1024 ? 1 : 4, true);
  }
}

TEST(Simulation, SmallAndFlatMachinesAreKeptBusyToo) {
  for (const Shape& shape : kSmall)
    for (const bool hints : {false, true}) check(shape, "spread", hints, 6, false);
}

TEST(Simulation, WhateverThePolicy) {
  for (const char* plan : {"burst", "burst:core", "burst:l3", "spread@machine,burst@node"})
    for (const Shape& shape : {Shape{1, 1, 2, 2}, Shape{4, 2, 4, 2}})
      check(shape, plan, false, 3, false);
}

TEST(Simulation, WithoutPullsTheSameProgramTakesLonger) {
  // The test of the tests: what is measured above is the engine's doing.
  const Shape shape{4, 2, 4, 2};
  World world(symmetric(shape.nodes, shape.caches, shape.cores, shape.pus), "burst");
  Program program(1, 256, false);
  Simulation simulation(world, {.tick = 50'000, .idle_pulls = false});
  world.engine().wake(program.bubbles[0], 0);
  const std::uint64_t took = simulation.run();
  const Outcome pulled = simulate(shape, 1, "burst", false, With::kBubbles);
  EXPECT_GT(static_cast<double>(took) / static_cast<double>(program.bound(64)),
            2 * pulled.times_bound);
}

// ---- figure 1 of 2005

/// Pairs of threads, each in a bubble of lower priority than the threads, and a communication thread of
/// higher priority; all in one bubble.
struct FigureOne {
  NestedBubble all;
  std::deque<NestedBubble> pairs;
  std::deque<SimThread> threads;  // the first is the one that communicates

  explicit FigureOne(std::uint32_t n_pairs, std::uint64_t slice) : pairs(n_pairs) {
    SimThread& communication = threads.emplace_back();
    communication.priority = 2;
    communication.length = communication.left = 60'000;
    communication.block_every = communication.until_block = 2'000;
    communication.block_for = 15'000;
    sched::insert(all, communication);
    for (NestedBubble& pair : pairs) {
      pair.priority = 0;
      pair.evolution.slice_ns = slice;
      sched::insert(all, pair);
      for (int i = 0; i < 2; ++i) {
        SimThread& thread = threads.emplace_back();
        thread.priority = 1;
        thread.length = thread.left = 100'000;
        sched::insert(pair, thread);
      }
    }
  }
};

/// Virtual time by what runs.
struct GangTimes {
  std::uint64_t one = 0;     ///< of a pair whose both threads are alive, exactly one runs
  std::uint64_t both = 0;    ///< both do
  std::uint64_t wasted = 0;  ///< a PU is idle, and a thread is ready that could run there
  std::uint64_t late = 0;    ///< the communication thread is ready and does not run
  std::set<std::size_t> begun;
  std::uint32_t most_open = 0;
};

GangTimes run_figure_one(std::uint32_t pus, std::uint32_t n_pairs, std::uint64_t slice) {
  World world(symmetric(1, 1, pus / 2, 2), "burst:machine");
  FigureOne program(n_pairs, slice);
  Simulation simulation(world, {.tick = 5'000, .recall_cost = 0});
  GangTimes times;
  std::uint64_t last = simulation.now();
  std::uint64_t one = 0, both = 0, wasted = 0, late = 0;
  simulation.settled = [&] {
    const std::uint64_t took = simulation.now() - last;
    last = simulation.now();
    times.one += one * took;
    times.both += both * took;
    times.wasted += wasted * took;
    times.late += late * took;
    one = both = wasted = late = 0;
    std::uint32_t open = 0;
    bool ready = false;
    std::uint32_t busy = 0;
    for (std::uint32_t pu = 0; pu < pus; ++pu) busy += simulation.on(pu) != nullptr;
    for (std::size_t p = 0; p < n_pairs; ++p) {
      const SimThread& a = program.threads[1 + 2 * p];
      const SimThread& b = program.threads[2 + 2 * p];
      const int run = (a.pu != topology::kNone) + (b.pu != topology::kNone);
      ready |= (!a.ended && a.pu == topology::kNone) || (!b.ended && b.pu == topology::kNone);
      if (run != 0) times.begun.insert(p);
      open += run != 0;
      if (a.ended || b.ended) continue;
      one += run == 1;
      both += run == 2;
    }
    times.most_open = std::max(times.most_open, open);
    const SimThread& c = program.threads[0];
    const bool waits =
        !c.ended && c.pu == topology::kNone && c.activity.load() == sched::Activity::kReady;
    late = waits;
    wasted = (ready || waits) ? pus - busy : 0;
  };
  world.engine().wake(program.all, 0);
  simulation.run();
  for (const SimThread& t : program.threads) EXPECT_TRUE(t.ended);
  return times;
}

TEST(FigureOneOf2005, PairsRunTogetherAndTheCommunicationThreadFirst) {
  for (const std::uint32_t pus : {2u, 4u, 8u})
    for (const std::uint64_t slice : {0u, 20'000u}) {
      SCOPED_TRACE(testing::Message() << pus << " PUs, time slice " << slice);
      const GangTimes times = run_figure_one(pus, 6, slice);
      EXPECT_EQ(times.begun.size(), 6u);
      EXPECT_EQ(times.wasted, 0u);  // no processor is idle while another gang could run
      // As many pairs at a time as the PUs have room for, and one that fills up; with time slices also
      // one of which the second thread is on its way back.
      EXPECT_LE(times.most_open, pus / 2 + (slice == 0 ? 1 : 2));
      // It waits for at most the tick that lets it in.
      EXPECT_LE(times.late, 30u * 5'000u);
      EXPECT_GT(times.both, 4 * times.one);
    }
}

TEST(FigureOneOf2005, WithTimeSlicesAllPairsGetOnBeforeAnyEnds) {
  World world(symmetric(1, 1, 1, 2), "burst:machine");
  FigureOne program(4, 20'000);
  Simulation simulation(world, {.tick = 5'000, .recall_cost = 0});
  world.engine().wake(program.all, 0);
  simulation.run();
  // Round robin: the first to end does so after all have had nearly as much.
  std::uint64_t first = UINT64_MAX;
  std::uint64_t last = 0;
  for (std::size_t i = 1; i < program.threads.size(); ++i) {
    first = std::min(first, program.threads[i].ended_at);
    last = std::max(last, program.threads[i].ended_at);
  }
  EXPECT_GT(first, last * 2 / 3);
  EXPECT_GE(world.engine().evolution_counts().slices, 12u);
}

}  // namespace
