// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads, data, or both: the choice by the cost tables of the paper over the range of its figures (2009, tables 1 and 3,
// figures 2 and 3), and what must never be chosen.
#include "policies/memory/decision.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace bosk::policies {
namespace {

using memory::Access;
using memory::CostSource;
using memory::CostTable;
using memory::Figure;
using memory::MemoryLoad;
using memory::NodeIndex;
using memory::PageKind;
using Action = MemoryAction;

constexpr uint64_t kMega = 1'000'000;
constexpr uint32_t kNodes = 4;
constexpr uint32_t kPusOfNode = 4;

Figure known(double value) { return {static_cast<float>(value), CostSource::kMeasured}; }

struct FreeTable {
  void operator()(CostTable* table) const { memory::free_cost_table(table); }
};
using TablePtr = std::unique_ptr<CostTable, FreeTable>;

/// Nodes of the paper's machine stand in a square: 0 and 2 are opposite.
int way_of(NodeIndex from, NodeIndex to) { return from == to ? 0 : (from ^ to) == 2 ? 2 : 1; }

/// Four Opterons: latencies of table 3; bandwidths so that triad of all nodes makes the 9,108 MB/s of table 6, farther away
/// less in proportion to latency; migration and moving threads as in section 3.
TablePtr machine_of_2009() {
  TablePtr table{memory::make_cost_table(kNodes)};
  const double latency[2][3] = {{83, 98, 117}, {142, 177, 208}};
  const double alone[2] = {1.75, 1.02};
  const double node[2] = {5.151, 3.0};
  const double machine[2] = {2.82, 1.648};
  for (NodeIndex from = 0; from < kNodes; ++from)
    for (NodeIndex to = 0; to < kNodes; ++to) {
      for (const Access way : {Access::kRead, Access::kWrite}) {
        const auto w = static_cast<size_t>(way);
        const double ns = latency[w][way_of(from, to)];
        const double farther = ns / latency[w][0];
        const double rate[] = {alone[w], node[w], machine[w]};
        for (const MemoryLoad load : {MemoryLoad::kAlone, MemoryLoad::kNode, MemoryLoad::kMachine})
          table->access(from, to, way, load) = {known(ns),
                                                known(rate[static_cast<size_t>(load)] / farther)};
      }
      table->migration(from, to, PageKind::kBase) = {known(120'000), known(11'000)};
      table->migration(from, to, PageKind::kHuge) = {known(120'000), known(11'000 * 512)};
    }
  table->thread_move = {known(2'500), known(60)};
  // A pager in user space: a signal, two mprotect and a move_pages for each page.
  table->next_touch = {known(600), known(40), known(16'000)};
  return table;
}

struct World {
  TablePtr table = machine_of_2009();
  std::vector<UsingEntity> entities;
  std::vector<UsedArea> areas;
  std::vector<AreaUse> uses;
  std::vector<NodeState> nodes = std::vector<NodeState>(kNodes, {UINT64_C(8) << 30, kPusOfNode, 0});
  double rounds = 1;
  uint32_t movers = 1;
  uint32_t allowed = kAnyAction;

  /// The uses of this team are those that follow.
  void team(NodeIndex node, uint32_t threads = 4) {
    entities.push_back({node, threads, static_cast<uint32_t>(uses.size()), 0});
  }
  uint32_t area(NodeIndex node, uint64_t bytes) {
    areas.push_back({node, bytes});
    return static_cast<uint32_t>(areas.size() - 1);
  }
  void use(uint32_t area, float reads, float writes, float touched = 1) {
    uses.push_back({area, reads, writes, touched});
    ++entities.back().n_uses;
  }
  void reads(NodeIndex node, uint64_t bytes) { use(area(node, bytes), 1, 0); }
  void writes(NodeIndex node, uint64_t bytes) { use(area(node, bytes), 0, 1); }

  MemorySituation situation() const {
    MemorySituation s{};
    s.costs = table.get();
    s.entities = entities.data();
    s.n_entities = static_cast<uint32_t>(entities.size());
    s.areas = areas.data();
    s.n_areas = static_cast<uint32_t>(areas.size());
    s.uses = uses.data();
    s.n_uses = static_cast<uint32_t>(uses.size());
    s.nodes = nodes.data();
    s.rounds = rounds;
    s.movers = movers;
    s.allowed = allowed;
    return s;
  }
};

class Answer {
 public:
  explicit Answer(const World& world) { decide_memory(world.situation(), &decision_); }
  ~Answer() { decision_.release(); }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  const MemoryDecision* operator->() const { return &decision_; }
  double total(Action action) const {
    return decision_.costs[static_cast<size_t>(action)].total_ns();
  }
  bool possible(Action action) const {
    return decision_.costs[static_cast<size_t>(action)].possible;
  }
  /// As the axes of figure 3.
  double normalized(Action action) const { return total(action) / total(Action::kNothing); }

 private:
  MemoryDecision decision_;
};

constexpr uint64_t kVector = 40 * kMega;  // a team's quarter of 160 MB

/// Twisted-STREAM, phase 2: all teams' vectors are on the node `twist` further on.
World all_remote(NodeIndex twist) {
  World world;
  for (NodeIndex node = 0; node < kNodes; ++node) {
    const NodeIndex data = (node + twist) % kNodes;
    world.team(node);
    world.reads(data, kVector);
    world.reads(data, kVector);
    world.writes(data, kVector);
  }
  return world;
}

/// One vector that is read is local, one that is read and the one that is written are not.
World two_remote(NodeIndex twist) {
  World world;
  for (NodeIndex node = 0; node < kNodes; ++node) {
    const NodeIndex data = (node + twist) % kNodes;
    world.team(node);
    world.reads(node, kVector);
    world.reads(data, kVector);
    world.writes(data, kVector);
  }
  return world;
}

TEST(Figure2, ThreadsAreBestWhateverTheIterations) {
  for (const NodeIndex twist : {1u, 2u}) {
    bool data_paid = false;
    for (double rounds = 1; rounds <= 128; rounds *= 2) {
      World world = all_remote(twist);
      world.rounds = rounds;
      const Answer answer(world);
      EXPECT_EQ(answer->action, Action::kThreads) << rounds;
      for (uint32_t e = 0; e < kNodes; ++e)
        EXPECT_EQ(answer->entities[e].node, (e + twist) % kNodes) << rounds;
      for (uint32_t a = 0; a < world.areas.size(); ++a)
        EXPECT_EQ(answer->areas[a].node, world.areas[a].node);
      EXPECT_LT(answer.total(Action::kThreads), answer.total(Action::kNothing));
      EXPECT_LT(answer.total(Action::kThreads), answer.total(Action::kDataNow));
      // "If the thread workload becomes big enough, the cost for migrating memory may become lower than the cost for
      // accessing remote data": once it has, it stays so.
      const bool pays = answer.total(Action::kDataNow) < answer.total(Action::kNothing);
      EXPECT_TRUE(pays || !data_paid) << rounds;
      data_paid = pays;
      if (rounds == 1) {
        EXPECT_GT(answer.normalized(Action::kDataNow), 3);
      }
    }
    EXPECT_TRUE(data_paid);
  }
}

TEST(Figure2, WithoutThreadsItIsNothingAndThenData) {
  Action before = Action::kNothing;
  for (double rounds = 1; rounds <= 128; rounds *= 2) {
    World world = all_remote(2);
    world.rounds = rounds;
    world.allowed = action_bit(Action::kNothing) | action_bit(Action::kDataNow);
    const Answer answer(world);
    EXPECT_TRUE(before == Action::kNothing || answer->action == before) << rounds;
    before = answer->action;
    if (rounds == 1) {
      EXPECT_EQ(answer->action, Action::kNothing);
    }
  }
  EXPECT_EQ(before, Action::kDataNow);
}

TEST(Figure2, PhaseTwoLosesWhatTable6Says) {
  World world = all_remote(2);
  world.rounds = 1000;
  const Answer answer(world);
  // 9,108 and 6,008 MB/s.
  const double per_byte = answer->costs[0].rounds_ns / (world.rounds * 3 * kVector);
  const auto threads = answer->costs[static_cast<size_t>(Action::kThreads)];
  const double local_per_byte = threads.rounds_ns / (world.rounds * 3 * kVector);
  EXPECT_NEAR(kNodes / local_per_byte, 9.108, 0.2);
  EXPECT_NEAR(kNodes / per_byte, 6.008, 0.7);
}

/// Costs of moving just one kind of vector, which is what the figure draws.
double normalized_one(double rounds, bool written) {
  World world = two_remote(1);
  world.rounds = rounds;
  for (size_t a = 0; a < world.areas.size(); ++a) {
    const bool is_written = a % 3 == 2;
    world.areas[a].movable = is_written == written;
  }
  const Answer answer(world);
  return answer.normalized(Action::kOneArea);
}

TEST(Figure3, FirstIterations) {
  for (double rounds = 1; rounds <= 8; rounds *= 2) {
    World world = two_remote(1);
    world.rounds = rounds;
    world.allowed = kAnyAction & ~action_bit(Action::kThreads);
    const Answer answer(world);
    // Migration has not paid yet, and two vectors less than one.
    EXPECT_GT(answer.normalized(Action::kDataNow), answer.normalized(Action::kOneArea)) << rounds;
    EXPECT_LT(answer.normalized(Action::kMixed), answer.normalized(Action::kDataNow)) << rounds;
    EXPECT_LT(normalized_one(rounds, true), normalized_one(rounds, false)) << rounds;
    if (rounds == 1) {
      EXPECT_EQ(answer->action, Action::kNothing);
      EXPECT_GT(normalized_one(rounds, true), 1);
    }
  }
}

TEST(Figure3, FurtherIterations) {
  for (double rounds = 128; rounds <= 1024; rounds *= 2) {
    World world = two_remote(1);
    world.rounds = rounds;
    const Answer answer(world);
    EXPECT_EQ(answer->action, Action::kMixed) << rounds;
    for (uint32_t e = 0; e < kNodes; ++e) {
      const NodeIndex node = (e + 1) % kNodes;
      EXPECT_EQ(answer->entities[e].node, node);
      // What was local goes along, what was remote stays.
      for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(answer->areas[3 * e + i].node, node);
    }
    EXPECT_LT(answer.total(Action::kMixed), answer.total(Action::kDataNow));
    EXPECT_LT(answer.total(Action::kDataNow), answer.total(Action::kOneArea));
    EXPECT_LT(answer.total(Action::kOneArea), answer.total(Action::kNothing));
  }
  // Where the lines of the figure end.
  World world = two_remote(1);
  world.rounds = 1024;
  const Answer answer(world);
  EXPECT_NEAR(answer.normalized(Action::kDataNow), 0.86, 0.03);
  EXPECT_NEAR(answer.normalized(Action::kMixed), 0.86, 0.03);
  EXPECT_NEAR(normalized_one(1024, true), 0.90, 0.03);
  EXPECT_NEAR(normalized_one(1024, false), 0.96, 0.03);
}

TEST(Figure3, TheWrittenVectorGoesFirst) {
  for (double rounds = 1; rounds <= 1024; rounds *= 2) {
    World world = two_remote(2);
    world.rounds = rounds;
    world.allowed = action_bit(Action::kOneArea);
    const Answer answer(world);
    ASSERT_EQ(answer->action, Action::kOneArea);
    for (uint32_t e = 0; e < kNodes; ++e) {
      EXPECT_NE(answer->areas[3 * e + 1].node, e);
      EXPECT_EQ(answer->areas[3 * e + 2].node, e);
    }
  }
}

/// Table 1: a few threads are better off with everybody's memory, all of them with their own.
World table1(uint32_t teams) {
  World world;
  for (NodeIndex from = 0; from < kNodes; ++from)
    for (NodeIndex to = 0; to < kNodes; ++to)
      world.table->access(from, to, Access::kRead, MemoryLoad::kMachine).bytes_per_ns =
          known(from == to ? 3.635 : 1.9);
  for (NodeIndex node = 0; node < teams; ++node) {
    world.team(node);
    world.reads(node, 100 * kMega);
  }
  world.rounds = 10'000;
  return world;
}

TEST(Table1, FewThreadsSpreadTheirData) {
  const Answer answer(table1(1));
  EXPECT_EQ(answer->action, Action::kSpread);
  EXPECT_EQ(answer->areas[0].node, kSpreadOut);
  const double local = 100 * kMega * 10'000 / answer->costs[0].rounds_ns;
  const double spread =
      100 * kMega * 10'000 / answer->costs[static_cast<size_t>(Action::kSpread)].rounds_ns;
  EXPECT_NEAR(local, 5.151, 0.05);
  EXPECT_NEAR(spread, 5.740, 0.2);
}

TEST(Table1, ManyThreadsKeepThemLocal) {
  const Answer answer(table1(4));
  EXPECT_EQ(answer->action, Action::kNothing);
  const double local = 100 * kMega * 10'000 / answer->costs[0].rounds_ns;
  EXPECT_NEAR(local, 3.635, 0.05);
  EXPECT_GT(answer.normalized(Action::kSpread), 1.3);  // 2,257
}

TEST(Table1, NobodySpreadsForAFewRounds) {
  World world = table1(1);
  world.rounds = 3;
  EXPECT_EQ(Answer(world)->action, Action::kNothing);
}

// --- rules

TEST(MemoryDecisions, LeaveAloneWhatIsLocal) {
  World world = all_remote(0);
  world.rounds = 1e6;
  const Answer answer(world);
  EXPECT_EQ(answer->action, Action::kNothing);
  EXPECT_FALSE(answer.possible(Action::kThreads));
  EXPECT_FALSE(answer.possible(Action::kDataNow));
  EXPECT_FALSE(answer->unknown);
}

TEST(MemoryDecisions, AFullNodeTakesNoData) {
  World world = all_remote(1);
  world.rounds = 1e5;
  for (UsingEntity& entity : world.entities) entity.movable = false;
  EXPECT_EQ(Answer(world)->action, Action::kDataNow);
  // Two of three vectors.
  for (NodeState& node : world.nodes) node.free_bytes = 2 * kVector + 5;
  const Answer some(world);
  uint64_t arrived[kNodes] = {};
  for (uint32_t a = 0; a < world.areas.size(); ++a)
    if (some->areas[a].node != world.areas[a].node) arrived[some->areas[a].node] += kVector;
  for (const uint64_t bytes : arrived) EXPECT_EQ(bytes, 2 * kVector);
  for (NodeState& node : world.nodes) node.free_bytes = 1000;
  EXPECT_EQ(Answer(world)->action, Action::kNothing);
}

TEST(MemoryDecisions, ThreadsDoNotCrowdANode) {
  // All data are on node 0, where there is room for one team.
  World world;
  for (NodeIndex node = 0; node < kNodes; ++node) {
    world.team(node);
    world.reads(0, kVector);
  }
  world.rounds = 10;
  for (NodeState& node : world.nodes) node.free_bytes = 0;
  const Answer answer(world);
  uint32_t on[kNodes] = {};
  for (uint32_t e = 0; e < kNodes; ++e) on[answer->entities[e].node] += 4;
  for (const uint32_t threads : on) EXPECT_LE(threads, kPusOfNode);
  // Strangers take up PUs as well.
  World one;
  one.team(1);
  one.writes(0, kVector);
  one.rounds = 10;
  EXPECT_EQ(Answer(one)->action, Action::kThreads);
  one.nodes[0].other_threads = 1;
  EXPECT_NE(Answer(one)->entities[0].node, 0u);
}

TEST(MemoryDecisions, NodesWithoutPusGetNoThreads) {
  World world;
  world.team(0);
  world.reads(3, kVector);
  world.nodes[3].pus = 0;
  world.rounds = 1e5;
  world.allowed = kAnyAction & ~action_bit(Action::kSpread);
  const Answer answer(world);
  EXPECT_NE(answer->entities[0].node, 3u);
  EXPECT_EQ(answer->areas[0].node, answer->entities[0].node);
}

TEST(MemoryDecisions, NextTouchWhereLittleIsTouched) {
  World world;
  world.team(0, 1);
  world.entities[0].movable = false;
  world.use(world.area(2, 400 * kMega), 1, 1, 0.05F);
  world.rounds = 3000;
  Answer few(world);
  EXPECT_EQ(few->action, Action::kNextTouch);
  EXPECT_TRUE(few->areas[0].next_touch);
  // All of it, by eight threads at once: now.
  world.uses[0].touched = 1;
  world.movers = 8;
  const Answer all(world);
  EXPECT_EQ(all->action, Action::kDataNow);
  EXPECT_FALSE(all->areas[0].next_touch);
  // What may not be marked is not.
  world.uses[0].touched = 0.05F;
  world.movers = 1;
  world.areas[0].markable = false;
  EXPECT_NE(Answer(world)->action, Action::kNextTouch);
}

TEST(MemoryDecisions, SharedMemoryFollowsNobodyAlone) {
  World world;
  world.team(0);
  const uint32_t shared = world.area(2, kVector);
  world.use(shared, 1, 1);
  world.team(1);
  world.use(shared, 1, 1);
  world.rounds = 1e4;
  world.allowed =
      action_bit(Action::kNothing) | action_bit(Action::kDataNow) | action_bit(Action::kOneArea);
  EXPECT_EQ(Answer(world)->action, Action::kNothing);
  // Both on one node: then it may come, and they share what it costs.
  world.entities[1].node = 0;
  world.nodes[0].pus = 8;
  const Answer answer(world);
  EXPECT_EQ(answer->action, Action::kDataNow);
  EXPECT_EQ(answer->areas[shared].node, 0u);
  EXPECT_NEAR(answer->chosen().once_ns, (120'000 + 11'000 * kVector / 4096.0) / 2, 1e4);
}

/// Three threads of a team are on its node, and one is with an idle PU of another one just now.
TEST(MemoryDecisions, SharedMemoryFollowsMostOfItsUsers) {
  for (const bool stray_first : {false, true}) {
    World world;
    const uint32_t shared = world.area(2, kVector);
    if (stray_first) world.team(1, 1), world.use(shared, 0.25F, 0.25F);
    world.team(0, 3);
    world.use(shared, 0.75F, 0.75F);
    if (!stray_first) world.team(1, 1), world.use(shared, 0.25F, 0.25F);
    world.rounds = 1e4;
    world.allowed = action_bit(Action::kDataNow);
    EXPECT_EQ(Answer(world)->areas[shared].node, 0u);
    world.allowed = action_bit(Action::kOneArea);
    EXPECT_EQ(Answer(world)->areas[shared].node, 0u);
    // Half of them are no more than the other half.
    world.uses[0] = world.uses[1] = {shared, 0.5F, 0.5F, 1};
    EXPECT_EQ(Answer(world)->areas[shared].node, 2u);
  }
}

/// What most of the users win is less than what the others lose.
TEST(MemoryDecisions, SharedMemoryStaysWhereItsOtherUsersNeedIt) {
  World world;
  world.team(1, 3);
  const uint32_t shared = world.area(0, kVector);
  world.use(shared, 0.6F, 0.6F);
  world.team(0, 12);
  world.use(shared, 0.5F, 0.5F);
  world.rounds = 1e4;
  world.allowed = action_bit(Action::kNothing) | action_bit(Action::kMixed);
  world.entities[0].movable = world.entities[1].movable = false;
  EXPECT_EQ(Answer(world)->areas[shared].node, 0u);
}

TEST(MemoryDecisions, EntitiesMayDiffer) {
  World world;
  world.team(0);
  world.writes(2, 400 * kMega);  // goes to its data
  world.team(1);
  world.writes(3, kVector);  // may not go, its data come
  world.entities[1].movable = false;
  world.rounds = 300;
  world.allowed = kAnyAction & ~action_bit(Action::kSpread);
  const Answer answer(world);
  EXPECT_EQ(answer->action, Action::kMixed);
  EXPECT_EQ(answer->entities[0].action, Action::kThreads);
  EXPECT_EQ(answer->entities[1].action, Action::kDataNow);
  EXPECT_EQ(answer->entities[0].node, 2u);
  EXPECT_EQ(answer->areas[0].node, 2u);
  EXPECT_EQ(answer->entities[1].node, 1u);
  EXPECT_EQ(answer->areas[1].node, 1u);
}

TEST(MemoryDecisions, WithoutCostsNothingIsDone) {
  World world = all_remote(2);
  world.rounds = 1e6;
  world.table->access(1, 2, Access::kWrite, MemoryLoad::kMachine).bytes_per_ns = {};
  const Answer answer(world);
  EXPECT_TRUE(answer->unknown);
  EXPECT_EQ(answer->action, Action::kNothing);
  for (uint32_t e = 0; e < kNodes; ++e) EXPECT_EQ(answer->entities[e].node, e);
  for (uint32_t a = 0; a < world.areas.size(); ++a)
    EXPECT_EQ(answer->areas[a].node, world.areas[a].node);
}

TEST(MemoryDecisions, OfNothingAreNothing) {
  World world;
  EXPECT_EQ(Answer(world)->action, Action::kNothing);
  world.team(0);
  EXPECT_EQ(Answer(world)->action, Action::kNothing);
  world.use(world.area(1, 0), 1, 1);
  EXPECT_EQ(Answer(world)->action, Action::kNothing);
}

/// Whatever the situation: what was forbidden is not done, nodes are not overfilled, and nothing gets dearer.
TEST(MemoryDecisions, HoldOnRandomMachines) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    World world;
    const uint32_t teams = 1 + random() % 12;
    for (uint32_t i = 0; i < teams; ++i) {
      world.team(random() % kNodes, 1 + random() % 4);
      world.entities.back().movable = random() % 8 != 0;
      const uint32_t uses = random() % 5;
      for (uint32_t u = 0; u < uses; ++u) {
        const bool shared = !world.areas.empty() && random() % 4 == 0;
        const auto area = shared ? static_cast<uint32_t>(random() % world.areas.size())
                                 : world.area(random() % kNodes, random() % (200 * kMega));
        world.areas[area].movable = random() % 8 != 0;
        world.areas[area].markable = random() % 4 != 0;
        world.use(area, static_cast<float>(random() % 3), static_cast<float>(random() % 3),
                  static_cast<float>(random() % 101) / 100);
      }
    }
    for (NodeState& node : world.nodes) {
      node.free_bytes = random() % (800 * kMega);
      node.other_threads = random() % 3;
    }
    world.rounds = static_cast<double>(1 + random() % 2000);
    world.movers = 1 + random() % 4;
    if (random() % 4 == 0) world.allowed = random() % (kAnyAction + 1) | 1;
    const Answer answer(world);
    ASSERT_FALSE(answer->unknown);
    ASSERT_TRUE((world.allowed & action_bit(answer->action)) != 0) << seed;
    ASSERT_LE(answer->chosen().total_ns(), answer->nothing().total_ns()) << seed;
    for (uint32_t i = 1; i < kMemoryActions; ++i) {
      const PlanCost& cost = answer->costs[i];
      ASSERT_TRUE(!cost.possible || cost.total_ns() >= answer->chosen().total_ns() ||
                  answer->action == Action::kNothing)
          << seed;
    }
    uint64_t arrived[kNodes] = {};
    for (uint32_t a = 0; a < world.areas.size(); ++a) {
      const AreaPlan& plan = answer->areas[a];
      if (plan.node == world.areas[a].node) continue;
      ASSERT_TRUE(world.areas[a].movable) << seed;
      ASSERT_TRUE(!plan.next_touch || world.areas[a].markable) << seed;
      if (plan.node == kSpreadOut) continue;
      ASSERT_LT(plan.node, kNodes);
      arrived[plan.node] += world.areas[a].bytes;
    }
    uint32_t before[kNodes] = {};
    uint32_t after[kNodes] = {};
    for (uint32_t e = 0; e < teams; ++e) {
      const NodeIndex node = answer->entities[e].node;
      ASSERT_LT(node, kNodes);
      ASSERT_TRUE(world.entities[e].movable || node == world.entities[e].node) << seed;
      before[world.entities[e].node] += world.entities[e].threads;
      after[node] += world.entities[e].threads;
    }
    for (NodeIndex node = 0; node < kNodes; ++node) {
      ASSERT_LE(arrived[node], world.nodes[node].free_bytes) << seed;
      const uint32_t others = world.nodes[node].other_threads;
      ASSERT_LE(after[node] + others, std::max(before[node] + others, kPusOfNode)) << seed;
    }
  }
}

}  // namespace
}  // namespace bosk::policies
