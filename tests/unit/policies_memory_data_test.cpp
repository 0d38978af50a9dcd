// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the books to what is moved, and when the engine has somebody look at memory, on an invented machine.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <vector>

#include "memory/manager.h"
#include "policies/memory/data_plan.h"
#include "policies/memory/decision_log.h"
#include "policy_simulation.h"
#include "threads/bubble_users.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using base::MemoryMoves;
using memory::NodeIndex;
using policies::action_bit;
using policies::MemoryAction;
using policies::MemoryTrigger;

constexpr std::uint32_t kNodes = 4;
constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr std::uint8_t kBoth = memory::kReads | memory::kWrites;
constexpr std::uint32_t kData =
    action_bit(MemoryAction::kNothing) | action_bit(MemoryAction::kDataNow);

const Machine& machine() {
  static const MachinePtr made = symmetric(kNodes, 1, 2, 1);
  return *made;
}
memory::AreaTable& areas() { return *memory::start(machine()); }

const memory::CostTable& costs() {
  static memory::CostTable* table = [] {
    memory::CostTable* made = memory::make_cost_table(kNodes);
    memory::estimate_costs(machine(), made);
    return made;
  }();
  return *table;
}

/// Bytes of one area per node, in pages that are there, until the end.
class Range {
 public:
  explicit Range(std::vector<std::uint64_t> on) {
    std::uint64_t bytes = 0;
    on.resize(kNodes);
    for (const std::uint64_t part : on) bytes += part;
    bytes_ = bytes;
    at_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
               -1, 0);
    memory::NewArea area{begin(), bytes};
    area.bytes_on = on.data();
    EXPECT_EQ(areas().add(area), 0);
  }
  ~Range() {
    memory::AreaInfo gone;
    areas().remove(begin(), memory::Origin::kForeign, &gone);
    munmap(at_, bytes_);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(at_); }
  memory::AreaInfo info() const {
    memory::AreaInfo info{};
    EXPECT_TRUE(areas().look_up(begin(), &info));
    return info;
  }
  std::vector<std::uint64_t> on() const {
    memory::AreaInfo info{};
    std::vector<std::uint64_t> bytes(kNodes);
    EXPECT_TRUE(areas().look_up(begin(), &info, bytes.data()));
    return bytes;
  }

 private:
  void* at_;
  std::size_t bytes_;
};

/// Users as they come, with what they use.
struct Asking {
  std::vector<policies::MemoryUser> users;
  std::vector<policies::MemoryUse> uses;
  std::vector<policies::NodeState> nodes =
      std::vector<policies::NodeState>(kNodes, {UINT64_C(1) << 30, 2, 0});
  std::uint32_t allowed = kData;
  policies::DataPlan plan;

  ~Asking() { plan.release(); }
  void user(NodeIndex node, std::uint32_t threads = 1) {
    users.push_back({node, threads, static_cast<std::uint32_t>(uses.size()), 0});
  }
  void uses_it(const Range& range, std::uint32_t times = 10'000, float share = 1) {
    uses.push_back({{range.info(), times, kBoth}, share});
    ++users.back().n_uses;
  }
  const policies::DataPlan& ask() {
    plan.release();
    plan = {};
    const policies::MemoryQuestion question{&areas(),     &costs(),
                                            users.data(), static_cast<std::uint32_t>(users.size()),
                                            uses.data(),  static_cast<std::uint32_t>(uses.size()),
                                            nodes.data(), allowed};
    EXPECT_TRUE(policies::plan_data(question, &plan));
    return plan;
  }
  policies::DataMoved move() {
    policies::DataMoved moved;
    policies::move_data(areas(), ask(), &moved);
    return moved;
  }
};

using Bytes = std::vector<std::uint64_t>;

TEST(MemoryData, ComesToWhoeverUsesItOften) {
  const Range far({0, kBytes});
  const Range near({kBytes});
  Asking asking;
  asking.user(0, 2);
  asking.uses_it(far);
  asking.uses_it(near);
  const policies::DataMoved moved = asking.move();
  EXPECT_EQ(asking.plan.action, MemoryAction::kDataNow);
  EXPECT_EQ(moved.areas, 1u);
  EXPECT_EQ(far.on(), Bytes({kBytes, 0, 0, 0}));
  EXPECT_EQ(near.on(), Bytes({kBytes, 0, 0, 0}));
  EXPECT_LT(asking.plan.costs[2].total_ns(), asking.plan.costs[0].total_ns());
  // And once there, it stays.
  EXPECT_EQ(asking.move().areas, 0u);
  EXPECT_EQ(asking.plan.action, MemoryAction::kNothing);
}

TEST(MemoryData, StaysIfItIsSeldomUsed) {
  const Range far({0, kBytes});
  Asking asking;
  asking.user(0);
  asking.uses_it(far, 1);
  EXPECT_EQ(asking.ask().action, MemoryAction::kNothing);
  EXPECT_TRUE(asking.plan.moves.empty());
  // Unless it has to come.
  asking.allowed = action_bit(MemoryAction::kDataNow);
  EXPECT_EQ(asking.move().areas, 1u);
  EXPECT_EQ(far.on(), Bytes({kBytes, 0, 0, 0}));
}

TEST(MemoryData, PartsOfAnAreaComeTogether) {
  const Range torn({kBytes, kBytes, 0, 2 * kBytes});
  Asking asking;
  asking.user(3);
  asking.uses_it(torn);
  EXPECT_EQ(asking.move().areas, 1u);
  EXPECT_EQ(torn.on(), Bytes({0, 0, 0, 4 * kBytes}));
}

TEST(MemoryData, APartMayHaveNoRoom) {
  const Range torn({0, kBytes, 2 * kBytes});
  Asking asking;
  asking.nodes[0].free_bytes = kBytes + kBytes / 2;
  asking.user(0);
  asking.uses_it(torn);
  EXPECT_EQ(asking.move().areas, 1u);
  EXPECT_EQ(torn.on(), Bytes({kBytes, 0, 2 * kBytes, 0}));
}

TEST(MemoryData, WhatSeveralNodesUseStays) {
  const Range shared({0, kBytes});
  Asking asking;
  asking.user(0);
  asking.uses_it(shared, 10'000, 0.5F);
  asking.user(2);
  asking.uses_it(shared, 10'000, 0.5F);
  EXPECT_EQ(asking.move().areas, 0u);
  // Both on one node: it comes, once.
  asking.users[1].node = 0;
  EXPECT_EQ(asking.move().areas, 1u);
  EXPECT_EQ(shared.on(), Bytes({kBytes, 0, 0, 0}));
}

TEST(MemoryData, WhatSomebodyUsesOfWhomNobodyKnowsWhereHeIsStays) {
  const Range shared({0, kBytes});
  const Range own({0, kBytes});
  Asking asking;
  asking.user(0);
  asking.uses_it(shared);
  asking.uses_it(own);
  asking.user(memory::kNoNode);
  asking.uses_it(shared);
  EXPECT_EQ(asking.move().areas, 1u);
  EXPECT_EQ(shared.on(), Bytes({0, kBytes, 0, 0}));
  EXPECT_EQ(own.on(), Bytes({kBytes, 0, 0, 0}));
  // One of many is not waited for.
  asking.uses[2].share = 0.2F;
  EXPECT_EQ(asking.move().areas, 1u);
  EXPECT_EQ(shared.on(), Bytes({kBytes, 0, 0, 0}));
}

TEST(MemoryData, WhatWasPutRoundTheNodesOnPurposeStays) {
  const Range range({kBytes, kBytes, kBytes, kBytes});
  const Bytes on = range.on();
  areas().set_pages(range.info(), on.data(), memory::kNone, memory::Placement::kInterleaved);
  Asking asking;
  asking.allowed = action_bit(MemoryAction::kDataNow);
  asking.user(0);
  asking.uses_it(range);
  EXPECT_EQ(asking.move().areas, 0u);
  EXPECT_EQ(range.on(), on);
}

TEST(MemoryData, AnAreaThatHasGoneIsLeftOut) {
  Asking asking;
  asking.user(0);
  {
    const Range gone({0, kBytes});
    asking.uses_it(gone);
  }
  EXPECT_EQ(asking.move().areas, 0u);
  EXPECT_EQ(asking.plan.moves.size(), 0u);
  // Nor is what lies at its place now moved by a plan that was made before.
  Asking early;
  early.user(0);
  {
    const Range before({0, kBytes});
    early.uses_it(before);
    EXPECT_EQ(early.ask().moves.size(), 1u);
  }
  policies::DataMoved moved;
  policies::move_data(areas(), early.plan, &moved);
  EXPECT_EQ(moved.areas + moved.stayed, 0u);
}

TEST(MemoryData, RoundAllNodesForFewThreads) {
  const Range range({64 * kBytes});
  Asking asking;
  asking.allowed = action_bit(MemoryAction::kSpread);
  asking.user(0, 2);
  asking.uses_it(range);
  EXPECT_EQ(asking.move().areas, 1u);
  EXPECT_EQ(range.on(), Bytes(kNodes, 16 * kBytes));
  EXPECT_EQ(range.info().placement, memory::Placement::kInterleaved);
}

TEST(MemoryData, ThreadsOfABubbleShareWhatIsAttachedToIt) {
  World world(symmetric(kNodes, 1, 2, 1), "memory");
  const Machine& m = world.machine();
  Simulation simulation(world, 100);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  sched::NestedBubble& team = simulation.team(&root, 3, 10);
  const Range all({kBytes});
  const Range mine({0, kBytes});
  sched::TreeEntity* const entity[] = {&root, &team, &simulation.threads()[0]};
  const auto admit = [](void* who, const std::atomic<std::uint64_t>* footprint) {
    static_cast<sched::TreeEntity*>(who)->figures.footprint = footprint;
    return 0;
  };
  ASSERT_EQ(areas().attach(all.begin(), 101, kBoth, 5, admit, entity[1]), 0);
  ASSERT_EQ(areas().attach(mine.begin(), 102, kBoth, 7, admit, entity[2]), 0);
  world.engine().wake(root, 0);
  ASSERT_TRUE(world.engine().next(0));
  threads::BubbleUsers users;
  locality::Users found;
  ASSERT_TRUE(users.list(root, m));
  EXPECT_TRUE(users.any());
  ASSERT_TRUE(users.ask(areas(), true, &found));
  policies::MemoryQuestion question{};
  found.put_into(&question);
  // One of its own, the two others together if they are on one node.
  std::uint32_t threads = 0;
  std::map<std::uintptr_t, float> shares;
  for (std::uint32_t u = 0; u < question.n_users; ++u) {
    threads += question.users[u].threads;
    for (std::uint32_t i = 0; i < question.users[u].n_uses; ++i) {
      const policies::MemoryUse& use = question.uses[question.users[u].first_use + i];
      shares[use.use.area.begin] += use.share;
      EXPECT_EQ(use.use.times, use.use.area.begin == all.begin() ? 5u : 7u);
    }
  }
  EXPECT_EQ(threads, 3u);
  EXPECT_FLOAT_EQ(shares[all.begin()], 1);
  EXPECT_FLOAT_EQ(shares[mine.begin()], 1);
  std::uint32_t placed = 0;
  for (NodeIndex node = 0; node < kNodes; ++node) placed += users.threads_on(node);
  EXPECT_EQ(placed, 3u);
  users.release();
  found.release();
  areas().detach_all(101);
  areas().detach_all(102);
  for (sched::TreeEntity* e : entity) e->figures.footprint = nullptr;
}

/// A team on node 1 that runs, and what is asked for it.
struct Asked {
  World world{symmetric(kNodes, 1, 2, 1), "memory"};
  Simulation simulation{world, 100};
  std::atomic<std::uint64_t> bytes[kNodes] = {};
  sched::NestedBubble& root = simulation.team(nullptr, 2, 1000);
  std::vector<sched::TreeEntity*> running;
  policies::MemoryRequests requests;

  static constexpr std::uint64_t kNumber = 7;

  explicit Asked(MemoryMoves moves) {
    world.engine().set_memory_moves(moves);
    requests.set_served(true);
    root.number = kNumber;
    world.engine().set_memory_requests(&requests);
    bytes[1] = kBytes;
    root.figures.footprint = bytes;
    world.engine().wake(root, 0);
    for (std::uint32_t pu = 0; pu < world.machine().n_pus; ++pu) {
      const sched::Found found = world.engine().next(pu);
      if (!found) continue;
      auto* thread = static_cast<sched::TreeEntity*>(found.entity);
      sched::note_running(*thread, pu, world.machine().pu(pu).id);
      running.push_back(thread);
    }
    EXPECT_EQ(running.size(), 2u);
  }
  std::uint32_t node_of(std::size_t i) const {
    const Machine& m = world.machine();
    return m.node_of_pu(m.domain_array[running[i]->figures.last_domain].first_pu);
  }
  void expect_nothing() {
    policies::MemoryRequest request{};
    EXPECT_FALSE(requests.take(&request));
    EXPECT_EQ(requests.take_all(), 0u);
  }
  /// Somebody is to look at the team, and at nothing else.
  void expect_only(MemoryTrigger trigger) {
    policies::MemoryRequest request{};
    ASSERT_TRUE(requests.take(&request));
    EXPECT_EQ(request.name, kNumber);
    EXPECT_EQ(request.trigger, trigger);
    expect_nothing();
  }
  void expect_all(MemoryTrigger trigger) {
    EXPECT_EQ(requests.take_all(), policies::trigger_bit(trigger));
    expect_nothing();
  }
};

TEST(MemoryTriggers, EachIsHandedToWhoeverLooksAtMemory) {
  Asked team(MemoryMoves::kAuto);
  policies::PolicyEngine& engine = team.world.engine();
  EXPECT_EQ(team.node_of(0), 1u);
  team.expect_only(MemoryTrigger::kPlaced);
  // Somebody attaches, frees or moves; at the next tick the bubble itself.
  team.bytes[3] = team.bytes[1].exchange(0);
  engine.memory_changed(MemoryTrigger::kAttached);
  team.expect_all(MemoryTrigger::kAttached);
  EXPECT_FALSE(engine.tick_thread(*team.running[0]));
  team.expect_only(MemoryTrigger::kAttached);
  // A PU has nothing to do.
  EXPECT_FALSE(engine.idle(0));
  team.expect_all(MemoryTrigger::kIdle);
  // The program says so.
  EXPECT_FALSE(engine.redecide(team.root, MemoryTrigger::kHint));
  team.expect_only(MemoryTrigger::kHint);
  EXPECT_EQ(team.root.state, sched::BubbleState::kBurst);
  // Whoever looks may find that threads should go.
  EXPECT_TRUE(engine.may_redecide(team.root, MemoryTrigger::kHint));
  EXPECT_TRUE(engine.redecide_threads(team.root, MemoryTrigger::kHint));
  EXPECT_NE(team.root.state, sched::BubbleState::kBurst);
  EXPECT_FALSE(engine.may_redecide(team.root, MemoryTrigger::kHint));
}

TEST(MemoryTriggers, NobodyIsAskedWhereOnlyThreadsMove) {
  Asked team(MemoryMoves::kThreads);
  EXPECT_EQ(team.node_of(0), 1u);
  team.bytes[3] = team.bytes[1].exchange(0);
  team.world.engine().memory_changed(MemoryTrigger::kAttached);
  EXPECT_TRUE(team.world.engine().redecide(team.root, MemoryTrigger::kHint));
  team.expect_nothing();
}

TEST(MemoryTriggers, ThreadsAreNotDrawnWhereMemoryIsToMove) {
  for (const MemoryMoves moves : {MemoryMoves::kData, MemoryMoves::kNextTouch}) {
    Asked team(moves);
    EXPECT_EQ(team.node_of(0), 0u);  // the PU that came upon it is there
    team.expect_only(MemoryTrigger::kPlaced);
    EXPECT_FALSE(team.world.engine().redecide_threads(team.root, MemoryTrigger::kHint));
    EXPECT_EQ(team.root.state, sched::BubbleState::kBurst);
  }
}

/// Where memory comes to threads, or is on its way to them, idle PUs of other nodes leave them where it is to come.
TEST(MemoryTriggers, IdlePusLeaveThreadsForWhichMemoryComes) {
  for (const MemoryMoves moves : {MemoryMoves::kData, MemoryMoves::kAuto}) {
    SCOPED_TRACE(static_cast<int>(moves));
    World world(symmetric(2, 1, 2, 1), "memory");
    world.engine().set_memory_moves(moves);
    std::atomic<std::uint64_t> bytes[2]{};  // coming: on no node
    if (moves == MemoryMoves::kData) bytes[1] = kBytes;
    Simulation simulation(world, 100);
    sched::NestedBubble& root = simulation.team(nullptr, 2, 1000);
    world.engine().wake(root, 0);
    ASSERT_TRUE(world.engine().next(0));
    root.figures.footprint = bytes;
    EXPECT_FALSE(world.engine().idle(3));
    EXPECT_FALSE(world.engine().next(3));
    // With nothing attached they may go.
    root.figures.footprint = nullptr;
    EXPECT_TRUE(world.engine().idle(3));
    EXPECT_TRUE(world.engine().next(3));
  }
}

TEST(MemoryLog, SumsUp) {
  const policies::MemoryDecisions before = policies::memory_decisions();
  policies::MemoryEvent event;
  event.action = MemoryAction::kOneArea;
  event.pages.moved = 7;
  event.pages.unsplit = 3;
  event.areas = 1;
  policies::note_memory_event(event);
  event = {};
  policies::note_memory_event(event);
  const policies::MemoryDecisions now = policies::memory_decisions();
  EXPECT_EQ(now.taken - before.taken, 2u);
  EXPECT_EQ(now.by_action[0] - before.by_action[0], 1u);
  EXPECT_EQ(now.by_action[4] - before.by_action[4], 1u);
  EXPECT_EQ(now.pages.moved - before.pages.moved, 7u);
  EXPECT_EQ(now.pages.unsplit - before.pages.unsplit, 3u);
  EXPECT_EQ(now.last.action, MemoryAction::kOneArea);  // those that do nothing are not kept
}

}  // namespace
