// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The engine between the search and the policies: hooks, composition, and answers that cannot be.
#include "policies/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "policy_harness.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using policies::FoundBubble;
using policies::Placement;
using policies::PlacementList;
using policies::PolicyOps;
using policies::PolicyPlan;
using policies::Submission;
using policies::TeamPlacement;
using policies::TickAnswer;
using policies::Verdict;
using testing::HasSubstr;
using Action = Verdict::Action;

/// A policy whose hooks the test fills in.
struct Script {
  std::function<Verdict(const FoundBubble&)> found = [](const FoundBubble&) { return Verdict{}; };
  std::function<bool(const Submission&, PlacementList*)> submit;
  TickAnswer tick = TickAnswer::kKeep;
  int idle_calls = 0;
  int hints = 0;
  int dones = 0;
  std::uint64_t hinted = 0;
};
Script* script = nullptr;

const PolicyOps kScripted = {
    .name = "scripted",
    .summary = "what the test says",
    .check = nullptr,
    .start = nullptr,
    .stop = nullptr,
    .submit = [](void*, const Submission& s,
                 PlacementList* answer) { return script->submit && script->submit(s, answer); },
    .submit_team = nullptr,
    .found = [](void*, const FoundBubble& bubble) { return script->found(bubble); },
    .idle = [](void*, std::uint32_t) { return ++script->idle_calls == 1; },
    .tick = [](void*, const FoundBubble&) { return script->tick; },
    .hint =
        [](void*, policies::EntityToken, std::uint64_t, std::uint64_t load) {
          ++script->hints;
          script->hinted = load;
        },
    .done = [](void*, policies::EntityToken, std::uint32_t, std::uint64_t) { ++script->dones; },
};

class Engine : public testing::Test {
 protected:
  Engine() : world_(symmetric(2, 1, 2, 2), plan_of(kScripted)) { script = &script_; }
  ~Engine() override { script = nullptr; }

  static PolicyPlan plan_of(const PolicyOps& ops) {
    PolicyPlan plan;
    static const MachinePtr machine = symmetric(2, 1, 2, 2);
    plan.policy[0] = {&ops, machine->level(Kind::kMachine), false, ""};
    plan.count = 1;
    return plan;
  }
  const Domain& node(std::uint32_t i) const { return world_.machine().root().first_child[i]; }
  void wake_all() { world_.engine().wake(tree_.bubbles[0], 0); }
  /// Everything can still be run, once.
  void expect_conserved() { expect_all_once(world_, tree_, run_all(world_, tree_, 1)); }

  /// The same, when the test itself has taken one thread already.
  void expect_conserved_but_one() {
    EXPECT_EQ(run_all(world_, tree_, 1).size(), tree_.threads.size() - 1);
  }

  Script script_;
  World world_;
  Tree tree_ = Tree::groups(2, 3);
};

TEST_F(Engine, TellsThePolicyWhatWasFoundAndWhere) {
  std::vector<FoundBubble> seen;
  script_.found = [&](const FoundBubble& bubble) {
    seen.push_back(bubble);
    return Verdict{};
  };
  tree_.bubbles[0].priority = 3;
  wake_all();
  EXPECT_EQ(world_.announced(0), 1u);
  EXPECT_TRUE(world_.engine().next(5));
  ASSERT_EQ(seen.size(), 3u);  // the outermost one, and those in it, which came out before threads
  EXPECT_EQ(seen[0].domain, 0u);
  EXPECT_EQ(seen[0].pu, 5u);
  EXPECT_EQ(seen[0].members, 2u);
  EXPECT_EQ(seen[0].priority, 3);
  EXPECT_EQ(seen[1].members, 3u);
  expect_conserved_but_one();
}

TEST_F(Engine, GoesDownOnlyOnTheFindersWay) {
  // Up, to itself, to the other node, out of the machine: all of it means burst.
  for (const std::uint32_t domain : {0u, node(1).id, world_.machine().n_domains, policies::kNone}) {
    Tree tree = Tree::groups(1, 2);
    script_.found = [&](const FoundBubble&) { return Verdict{Action::kDescend, domain}; };
    world_.engine().wake(tree.bubbles[0], 0);
    const std::vector<Finding> findings = run_all(world_, tree, domain);
    expect_all_once(world_, tree, findings);
  }
  script_.found = [&](const FoundBubble& bubble) {
    return bubble.domain == 0 ? Verdict{Action::kDescend, node(1).id} : Verdict{};
  };
  wake_all();
  const sched::Found found = world_.engine().next(6);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.queue->domain, node(1).id);
}

TEST_F(Engine, AGhostlessBubbleCannotServeGhosts) {
  script_.found = [](const FoundBubble&) { return Verdict{Action::kTakeGhost, policies::kNone}; };
  wake_all();
  expect_conserved();
}

TEST_F(Engine, TakesGhostsFromAClosedBubbleUntilNoneIsLeft) {
  sched::Bubble team;
  team.ghosts.open(2, 0);
  tree_.bubbles[0].team = &team;
  script_.found = [](const FoundBubble& bubble) {
    return Verdict{bubble.ghosts != 0 ? Action::kTakeGhost : Action::kBurst, policies::kNone};
  };
  wake_all();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(world_.engine().next(3).ghosts, &team);
    EXPECT_EQ(tree_.bubbles[0].state, sched::BubbleState::kClosed);
    EXPECT_TRUE(team.ghosts.claim(1));
  }
  expect_conserved();
}

TEST_F(Engine, PutsEntitiesWhereTheAnswerSays) {
  script_.found = [](const FoundBubble& bubble) {
    return Verdict{bubble.domain == 0 ? Action::kDistribute : Action::kBurst, policies::kNone};
  };
  script_.submit = [&](const Submission& s, PlacementList* answer) {
    EXPECT_EQ(s.work.count, 9u);  // 1 + 2 bubbles, 6 threads
    EXPECT_EQ(s.work.n_roots, 1u);
    EXPECT_EQ(s.work.entities[0].pieces, 6u);
    EXPECT_EQ(s.work.entities[0].load, 6 * policies::kLoadUnit);
    // The first bubble whole to node 0, the second one's threads to node 1.
    answer->add({1, 0, 0, node(0).id});
    for (std::uint32_t i = 0; i < 3; ++i)
      answer->add({s.work.entities[2].first_child + i, 0, 0, node(1).id});
    return true;
  };
  wake_all();
  EXPECT_TRUE(world_.engine().next(0));
  EXPECT_EQ(world_.engine().booked(node(0).id), 3 * policies::kLoadUnit);
  EXPECT_EQ(world_.engine().booked(node(1).id), 3 * policies::kLoadUnit);
  EXPECT_EQ(world_.engine().booked(0), 6 * policies::kLoadUnit);
  EXPECT_EQ(world_.queue(node(1).id).length, 3u);
  EXPECT_EQ(tree_.bubbles[2].state, sched::BubbleState::kBurst);
  // What is inserted into the exploded bubble from now on comes out around its threads.
  EXPECT_EQ(tree_.bubbles[2].burst_on, &world_.queue(node(1).id));
  sched::TreeEntity late;
  sched::insert(tree_.bubbles[2], late);
  EXPECT_EQ(late.holder, &world_.queue(node(1).id));
  EXPECT_TRUE(sched::remove(late));
  expect_conserved_but_one();
  EXPECT_EQ(script_.dones, 3);  // threads that were placed; the whole bubble's end is its owner's
}

TEST_F(Engine, RefusesNonsenseWithOneLineAndBurstsInstead) {
  const std::vector<std::function<void(const Submission&, PlacementList*)>> nonsense = {
      [](const Submission&, PlacementList*) {},  // threads without a place
      [](const Submission&, PlacementList* a) { a->add({99, 0, 0, 0}); },
      [](const Submission&, PlacementList* a) { a->add({0, 0, 0, 99999}); },
      [](const Submission&, PlacementList* a) { a->add({0, 0, 5, 0}); },  // ghosts it has not
      [](const Submission&, PlacementList* a) {                           // twice
        a->add({0, 0, 0, 1});
        a->add({0, 0, 0, 2});
      },
      [](const Submission& s, PlacementList* a) {  // in a bubble that is placed
        a->add({0, 0, 0, 1});
        a->add({s.work.count - 1, 0, 0, 2});
      },
  };
  script_.found = [](const FoundBubble& bubble) {
    return Verdict{bubble.members == 2 ? Action::kDistribute : Action::kBurst, policies::kNone};
  };
  std::string said;
  for (const auto& answer : nonsense) {
    Tree tree = Tree::groups(2, 3);
    script_.submit = [&](const Submission& s, PlacementList* list) {
      answer(s, list);
      return true;
    };
    world_.engine().wake(tree.bubbles[0], 0);
    testing::internal::CaptureStderr();
    const std::vector<Finding> findings = run_all(world_, tree, 1);
    said += testing::internal::GetCapturedStderr();
    expect_all_once(world_, tree, findings);
  }
  EXPECT_THAT(said, HasSubstr("bosk: the policy scripted answered nonsense"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST_F(Engine, WhatIsPlacedOutOfReachIsRefused) {
  script_.found = [&](const FoundBubble& bubble) {
    if (bubble.domain == 0) return Verdict{Action::kDescend, node(0).id};
    return Verdict{bubble.members == 2 ? Action::kDistribute : Action::kBurst, policies::kNone};
  };
  script_.submit = [&](const Submission&, PlacementList* answer) {
    answer->add({0, 0, 0, node(1).id});  // the bubble was found in node 0
    return true;
  };
  wake_all();
  testing::internal::CaptureStderr();
  const sched::Found found = world_.engine().next(1);
  testing::internal::GetCapturedStderr();
  ASSERT_TRUE(found);
  EXPECT_EQ(found.queue->domain, node(0).id);
}

TEST_F(Engine, ABubbleThatIsSentToWhereItIsBursts) {
  script_.found = [](const FoundBubble&) { return Verdict{Action::kDistribute, policies::kNone}; };
  script_.submit = [](const Submission& s, PlacementList* answer) {
    return answer->add({0, 0, 0, s.domain});
  };
  wake_all();
  expect_conserved();
}

TEST_F(Engine, APolicyWithoutAnAnswerMeansBurst) {
  script_.found = [](const FoundBubble&) { return Verdict{Action::kDistribute, policies::kNone}; };
  wake_all();
  expect_conserved();
}

TEST_F(Engine, RegeneratesWhenTheTimeSliceIsOver) {
  wake_all();
  EXPECT_FALSE(world_.engine().tick(tree_.bubbles[0]));  // closed
  const sched::Found running = world_.engine().next(0);
  EXPECT_FALSE(world_.engine().tick(tree_.bubbles[1]));  // the policy keeps it
  script_.tick = TickAnswer::kRegenerate;
  EXPECT_TRUE(world_.engine().tick(tree_.bubbles[1]));
  EXPECT_EQ(tree_.bubbles[1].state, sched::BubbleState::kClosing);
  // The other bubble is next; the regenerated one comes behind it when its running thread is back.
  sched::requeue(*static_cast<sched::TreeEntity*>(running.entity), world_.queue(0));
  EXPECT_EQ(tree_.bubbles[1].state, sched::BubbleState::kClosed);
  EXPECT_EQ(world_.engine().next(0).entity, &tree_.threads[3]);
  EXPECT_EQ(tree_.bubbles[1].state, sched::BubbleState::kClosed);
}

TEST_F(Engine, PassesHintsAndIdlenessOn) {
  world_.engine().set_load(tree_.threads[0], 7);
  EXPECT_EQ(script_.hints, 1);
  EXPECT_EQ(script_.hinted, 7 * policies::kLoadUnit);
  EXPECT_EQ(tree_.threads[0].figures.load, 7u);
  EXPECT_TRUE(world_.engine().idle(0));
  EXPECT_FALSE(world_.engine().idle(0));
  EXPECT_EQ(script_.idle_calls, 2);
}

TEST_F(Engine, ATeamOfAPolicyWithoutTeamsIsAtHomeWithItsOpener) {
  TeamPlacement placement;
  world_.engine().place_team({.members = 5, .opener_domain = node(1).id, .opener_pu = 4},
                             &placement);
  EXPECT_EQ(placement.domain_of(4), node(1).id);
}

TEST(Composition, EachPolicyIsInChargeFromItsLevelDown) {
  // The inner one bursts at cores; above the nodes, spread deals.
  World world(symmetric(2, 1, 2, 2), "spread@machine,burst:core@node");
  Tree tree = Tree::groups(4, 2);
  world.engine().wake(tree.bubbles[0], 0);
  const Machine& m = world.machine();
  std::map<std::uint32_t, int> per_node;
  for (const Finding& f : run_all(world, tree, 3)) {
    EXPECT_EQ(f.domain, m.domain_of_pu(f.pu, Kind::kCore)->id);
    ++per_node[m.domain_of_pu(f.pu, Kind::kNode)->id];
  }
  EXPECT_EQ(per_node.size(), 2u);
  for (const auto& [id, n] : per_node) EXPECT_EQ(n, 4);
}

TEST(Composition, TheOutermostPolicyBringsBubblesToItsLevel) {
  World world(symmetric(2, 1, 2, 2), "burst@core");
  Tree tree = Tree::groups(1, 2);
  world.engine().wake(tree.bubbles[0], 0);
  EXPECT_EQ(world.engine().next(3).queue->domain, world.machine().domain_of_pu(3, Kind::kCore)->id);
}

TEST(Composition, TeamsAskThePolicyInChargeOfTheOpenersHome) {
  World world(symmetric(2, 1, 2, 2), "spread@machine,burst@node");
  const Machine& m = world.machine();
  TeamPlacement outer;
  world.engine().place_team({.members = 8, .opener_domain = 0, .opener_pu = 0}, &outer);
  for (std::uint32_t i = 0; i < 8; ++i)
    EXPECT_EQ(outer.domain_of(i), m.domain_of_pu(i, Kind::kNode)->id);
  TeamPlacement inner;
  world.engine().place_team({.members = 2, .opener_domain = outer.domain_of(5), .opener_pu = 5},
                            &inner);
  EXPECT_EQ(inner.domain_of(0), outer.domain_of(5));
  EXPECT_EQ(inner.domain_of(1), outer.domain_of(5));
}

}  // namespace
