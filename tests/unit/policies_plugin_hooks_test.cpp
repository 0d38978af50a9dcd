// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What becomes of each question when a plug-in leaves out the hook that it is asked by: what bosk/policy.h says.
#include "policies/plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../plugins/probe.h"
#include "in_child.h"
#include "policy_harness.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using policies::PolicyPlan;
using policies::TeamPlacement;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string file(const std::string& name) { return BOSK_TEST_PLUGINS "/" + name + ".so"; }

/// The plug-in that has every hook but this one ("": every hook), acting on a machine of two nodes of four PUs.
class Lacking {
 public:
  explicit Lacking(const std::string& hook)
      : probe_(probe_of(name_of(hook))),
        world_(symmetric(2, 1, 2, 2), file(name_of(hook)).c_str()) {
    the_probe = &probe_;
  }

  probe& asked() { return probe_; }
  World& world() { return world_; }
  Tree& tree() { return tree_; }
  policies::PolicyEngine& engine() { return world_.engine(); }
  const Domain& node(std::uint32_t i) const { return world_.machine().root().first_child[i]; }
  void wake_all() { engine().wake(tree_.bubbles[0], 0); }
  /// Everything that was woken runs, once.
  void expect_conserved() { expect_all_once(world_, tree_, run_all(world_, tree_, 1)); }
  std::uint64_t booked() { return policies::kPluginApi.booked(probe_.host, 0); }

  static std::string name_of(const std::string& hook) {
    return hook.empty() ? "probe" : "without_" + hook;
  }
  static probe* the_probe;

 private:
  static probe& probe_of(const std::string& name) {
    void* handle = dlopen(file(name).c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    auto* found = static_cast<probe*>(dlsym(handle, "probe"));
    *found = {};
    found->regenerated_domain = BOSK_POLICY_NONE;
    return *found;
  }

  probe& probe_;
  World world_;
  Tree tree_ = Tree::groups(2, 3);
};
probe* Lacking::the_probe = nullptr;

bosk_policy_verdict verdict(std::uint32_t action) { return {action, 0}; }

/// The whole of what was found goes to node 1.
int place_on_node_1(bosk_policy_work* work, std::uint32_t) {
  const bosk_policy_api& api = *Lacking::the_probe->api;
  return api.place(work, 0, api.child(Lacking::the_probe->host, 0, 1));
}

/// All threads of what was found go to the PUs of node 0, in turn: a policy that keeps threads at a depth.
int place_on_pus_of_node_0(bosk_policy_work* work, std::uint32_t) {
  const bosk_policy_api& api = *Lacking::the_probe->api;
  std::uint32_t pu = 0;
  for (std::uint32_t i = 0; i < api.count(work); ++i)
    if (api.entity_kind(work, i) == BOSK_POLICY_THREAD &&
        !api.place(work, i, api.domain_of_pu(Lacking::the_probe->host, pu++ % 4)))
      return 0;
  return 1;
}

TEST(PluginWithoutCheck, TakesNoArgument) {
  const MachinePtr machine = symmetric(2, 1, 2, 2);
  PolicyPlan plan;
  topology::Error error;
  EXPECT_FALSE(
      policies::make_plan((file("without_check") + ":some").c_str(), *machine, &plan, &error));
  EXPECT_THAT(error.text, AllOf(HasSubstr("takes no argument"), HasSubstr("some")));
  Lacking plugin("check");
  plugin.wake_all();
  plugin.expect_conserved();
}

TEST(PluginWithoutStart, HasTheNullState) {
  probe* asked;
  {
    Lacking plugin("start");
    asked = &plugin.asked();
    asked->stopped = asked;
    plugin.wake_all();
    plugin.expect_conserved();
  }
  EXPECT_EQ(asked->stopped, nullptr);
}

TEST(PluginWithoutStop, IsLeftAloneWhenItStops) {
  Lacking plugin("stop");
  plugin.wake_all();
  plugin.expect_conserved();
}

TEST(PluginWithoutSubmit, HasBubblesBurstThatItWantsDistributed) {
  const bosk::testing::ChildResult result = bosk::testing::in_child({}, [] {
    Lacking plugin("submit");
    plugin.asked().on_found = [](const bosk_policy_found*) {
      return verdict(BOSK_POLICY_DISTRIBUTE);
    };
    plugin.wake_all();
    EXPECT_TRUE(plugin.engine().next(0));
    EXPECT_EQ(plugin.tree().bubbles[0].state, sched::BubbleState::kBurst);
    EXPECT_EQ(plugin.world().queue(0).length, 5u);  // all but the one that was found
    return std::string(::testing::Test::HasFailure() ? "failed" : "well");
  });
  EXPECT_EQ(result.output, "well") << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("without a submit"));
}

TEST(PluginWithoutSubmitTeam, HasTeamsAtHomeWithTheirOpener) {
  Lacking plugin("submit_team");
  TeamPlacement homes;
  const std::uint32_t home = plugin.node(1).id;
  plugin.engine().place_team({.members = 5, .opener_domain = home, .opener_pu = 4}, &homes);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(homes.domain_of(i), home);
  homes.release();
}

TEST(PluginWithoutFound, DistributesWhatCanBe) {
  Lacking plugin("found");
  plugin.asked().on_submit = place_on_node_1;
  plugin.wake_all();
  EXPECT_FALSE(plugin.engine().next(0));
  EXPECT_EQ(plugin.asked().submit, 1);
  EXPECT_EQ(plugin.world().queue(plugin.node(1).id).length, 1u);
  // A bubble of one thread is not asked about, nor one on a PU.
  sched::NestedBubble single;
  sched::TreeEntity thread;
  sched::insert(single, thread);
  plugin.engine().wake(single, plugin.node(0).id);
  EXPECT_EQ(plugin.engine().next(0).entity, &thread);
  EXPECT_EQ(plugin.asked().submit, 1);
}

TEST(PluginWithoutIdle, ChangesNothingWhenAProcessorIdles) {
  Lacking plugin("idle");
  EXPECT_FALSE(plugin.engine().idle(3));
  EXPECT_EQ(plugin.asked().steal, 1);  // which is asked next
  // What has been told to wait is asked for again all the same.
  plugin.asked().on_found = [](const bosk_policy_found* b) {
    return verdict(b->waited != 0 ? BOSK_POLICY_BURST : BOSK_POLICY_WAIT);
  };
  plugin.wake_all();
  EXPECT_FALSE(plugin.engine().next(0));
  EXPECT_TRUE(plugin.engine().idle(0));
  EXPECT_EQ(plugin.tree().bubbles[0].state, sched::BubbleState::kBurst);
}

TEST(PluginWithoutTick, RegeneratesNothingAtTheEndOfASlice) {
  Lacking plugin("tick");
  plugin.wake_all();
  EXPECT_TRUE(plugin.engine().next(0));
  EXPECT_FALSE(plugin.engine().tick(plugin.tree().bubbles[0]));
  EXPECT_EQ(plugin.tree().bubbles[0].state, sched::BubbleState::kBurst);
}

TEST(PluginWithoutHint, SeesTheLoadAtTheNextSubmit) {
  Lacking plugin("hint");
  static std::uint64_t seen;
  seen = 0;
  plugin.asked().on_found = [](const bosk_policy_found* b) {
    return verdict(b->domain == 0 ? BOSK_POLICY_DISTRIBUTE : BOSK_POLICY_BURST);
  };
  plugin.asked().on_submit = [](bosk_policy_work* work, std::uint32_t domain) {
    seen = Lacking::the_probe->api->load_of(work, 0);
    return place_on_node_1(work, domain);
  };
  plugin.engine().set_load(plugin.tree().threads[0], 7);
  plugin.wake_all();
  EXPECT_FALSE(plugin.engine().next(0));
  EXPECT_EQ(seen, 12u * BOSK_POLICY_LOAD_UNIT);
}

TEST(PluginWithoutDone, HasLoadsThatHaveEndedTakenOffTheBooksAllTheSame) {
  Lacking plugin("done");
  plugin.asked().on_found = [](const bosk_policy_found* b) {
    return verdict(b->domain == 0 ? BOSK_POLICY_DISTRIBUTE : BOSK_POLICY_BURST);
  };
  plugin.asked().on_submit = place_on_pus_of_node_0;
  plugin.wake_all();
  EXPECT_EQ(plugin.engine().next(7).entity, nullptr);
  EXPECT_EQ(plugin.booked(), 6u * BOSK_POLICY_LOAD_UNIT);
  plugin.expect_conserved();
  EXPECT_EQ(plugin.booked(), 0u);
}

TEST(PluginWithoutForked, IsNotToldOfAFork) {
  Lacking plugin("forked");
  plugin.wake_all();
  plugin.engine().forget_after_fork();
  EXPECT_EQ(plugin.asked().forked, 0);
}

/// What it has placed on node 0, when PUs of node 1 idle. How many of its threads are on node 0 after that.
std::uint32_t left_on_node_0(Lacking& plugin) {
  plugin.asked().on_found = [](const bosk_policy_found* b) {
    return verdict(b->domain == 0 ? BOSK_POLICY_DISTRIBUTE : BOSK_POLICY_BURST);
  };
  plugin.asked().on_submit = place_on_pus_of_node_0;
  plugin.wake_all();
  EXPECT_EQ(plugin.engine().next(7).entity, nullptr);
  for (std::uint32_t pu = 4; pu < 8; ++pu) plugin.engine().idle(pu);
  std::uint32_t left = 0;
  for (std::uint32_t pu = 0; pu < 4; ++pu)
    left += plugin.world().queue(plugin.world().machine().pu(pu).id).length;
  plugin.asked().on_submit = nullptr;
  plugin.expect_conserved();
  return left;
}

TEST(PluginWithoutSteal, HasIdleProcessorsPullAsBoskDoes) {
  Lacking plugin("steal");
  EXPECT_LT(left_on_node_0(plugin), 6u);
  EXPECT_GT(plugin.asked().idle, 0);
}

TEST(PluginWhoseStealAnswersZero, KeepsWhatItHasPlacedWhereItIs) {
  Lacking plugin("");
  EXPECT_EQ(left_on_node_0(plugin), 6u);
  EXPECT_GT(plugin.asked().steal, 0);
}

}  // namespace
