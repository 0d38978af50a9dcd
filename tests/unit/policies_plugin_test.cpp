// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Policies in shared objects: which are refused and how, that each hook is called with what is so, and
// that nonsense does no harm.
#include "policies/plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

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
using ::testing::Not;

std::string file(const char* name) { return std::string(BOSK_TEST_PLUGINS "/") + name + ".so"; }

/// The plug-in's side of the probe, afresh.
probe& probe_of(const char* name = "probe") {
  void* handle = dlopen(file(name).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  auto* found = static_cast<probe*>(dlsym(handle, "probe"));
  EXPECT_NE(found, nullptr);
  *found = {};
  found->regenerated_domain = BOSK_POLICY_NONE;
  return *found;
}

/// What is said of a plan, one line; "" if it is good. After a refusal the plan is the default.
std::string refusal(const std::string& text) {
  const MachinePtr machine = symmetric(2, 1, 2, 2);
  PolicyPlan plan;
  topology::Error error;
  const bool good = policies::make_plan(text.c_str(), *machine, &plan, &error);
  EXPECT_EQ(good, error.text[0] == '\0');
  if (!good) {
    EXPECT_EQ(plan.count, 1u);
    EXPECT_EQ(plan.policy[0].ops, &policies::default_policy());
  }
  EXPECT_THAT(error.text, Not(HasSubstr("\n")));
  return error.text;
}

TEST(Plugin, RefusesWhatIsNoPolicyInOneLineThatNamesIt) {
  EXPECT_THAT(refusal("/no/such/file.so"),
              AllOf(HasSubstr("/no/such/file.so"), HasSubstr("No such file")));
  EXPECT_THAT(refusal("nosuch.so"), HasSubstr("./nosuch.so"));
  EXPECT_THAT(refusal("/tmp"), AllOf(HasSubstr("/tmp cannot be loaded")));
  const std::string text = ::testing::TempDir() + "words.so";
  std::ofstream(text)
      << "just words, and enough of them that they could be a header of something\n";
  EXPECT_THAT(refusal(text), AllOf(HasSubstr(text + " cannot be loaded"), HasSubstr("ELF")));
  std::remove(text.c_str());
  EXPECT_THAT(refusal(file("no_symbol")),
              AllOf(HasSubstr("no_symbol.so"), HasSubstr("bosk_policy_plugin")));
  EXPECT_THAT(refusal(file("unresolved")), HasSubstr("no_library_has_this"));
  EXPECT_THAT(
      refusal(file("wrong_version")),
      AllOf(HasSubstr("wrong_version.so"), HasSubstr("version 99"), HasSubstr("version 1")));
  EXPECT_THAT(refusal(file("wrong_size")), HasSubstr("BOSK_POLICY_HEADER"));
  EXPECT_THAT(refusal(file("no_name")), HasSubstr("the name"));
  EXPECT_THAT(refusal(file("bad_name")), HasSubstr("the name"));
  EXPECT_THAT(refusal(file("newer_hooks")), HasSubstr("newer bosk"));
}

TEST(Plugin, RefusesArgumentsAndLevelsThatCannotBe) {
  EXPECT_EQ(refusal(file("probe") + ":bad"), "the policy probe: it wants a good argument");
  EXPECT_THAT(refusal(file("probe") + ":silent"), HasSubstr("does not say why"));
  EXPECT_THAT(refusal(file("newer_empty") + ":some"),
              AllOf(HasSubstr("takes no argument"), HasSubstr("some")));
  EXPECT_THAT(refusal(file("probe") + "@shelf"), HasSubstr("shelf"));
  EXPECT_THAT(refusal(file("probe") + "," + file("probe_inner")), HasSubstr("both act on level"));
}

TEST(Plugin, TakesTablesOfOlderAndNewerHeaders) {
  EXPECT_EQ(refusal(file("newer_empty")), "");
  EXPECT_EQ(refusal(file("old_table")), "");
  topology::Error error;
  const policies::PolicyOps* old = policies::load_plugin(file("old_table").c_str(), &error);
  ASSERT_NE(old, nullptr) << error.text;
  EXPECT_STREQ(old->name, "old");
  EXPECT_EQ(old->found, nullptr);
  // Without hooks bubbles burst, and the hook behind the end of the table is not called.
  World world(symmetric(2, 1, 2, 2), file("old_table").c_str());
  Tree tree = Tree::groups(2, 3);
  world.engine().wake(tree.bubbles[0], 0);
  expect_all_once(world, tree, run_all(world, tree, 1));
}

TEST(Plugin, TheSameFileIsTheSamePolicy) {
  topology::Error error;
  const policies::PolicyOps* ops = policies::load_plugin(file("probe").c_str(), &error);
  ASSERT_NE(ops, nullptr) << error.text;
  const std::string other = std::string(BOSK_TEST_PLUGINS) + "/../plugins/probe.so";
  EXPECT_EQ(policies::load_plugin(other.c_str(), &error), ops);
  EXPECT_NE(policies::load_plugin(file("probe_inner").c_str(), &error), ops);
}

TEST(Plugin, ThatCannotStartSaysSoAndLeavesNothing) {
  probe& p = probe_of();
  const MachinePtr machine = symmetric(2, 1, 2, 2);
  PolicyPlan plan;
  topology::Error error;
  ASSERT_TRUE(policies::make_plan((file("probe") + ":fail").c_str(), *machine, &plan, &error));
  EXPECT_EQ(p.check, 1);
  sched::DomainQueues queues;
  ASSERT_TRUE(queues.build(*machine));
  policies::PolicyEngine engine;
  EXPECT_FALSE(engine.start(queues, plan, {}, &error));
  EXPECT_STREQ(error.text, "the policy probe: no luck today");
  EXPECT_EQ(p.start, 1);
  EXPECT_EQ(p.stop, 0);
  queues.release();
}

std::uint32_t api_node(bosk_policy_host* host, std::uint32_t i) {
  return policies::kPluginApi.child(host, 0, i);
}

class Probed : public ::testing::Test {
 protected:
  Probed() : world_(symmetric(2, 1, 2, 2), (file("probe") + ":what ever@node").c_str()) {
    the_probe = &probe_;
  }

  const Domain& node(std::uint32_t i) const { return world_.machine().root().first_child[i]; }
  void wake_all() { world_.engine().wake(tree_.bubbles[0], 0); }
  void expect_conserved() { expect_all_once(world_, tree_, run_all(world_, tree_, 1)); }
  static bosk_policy_verdict verdict(std::uint32_t action, std::uint32_t target) {
    return {action, target};
  }

  static probe* the_probe;
  probe& probe_ = probe_of();
  World world_;
  Tree tree_ = Tree::groups(2, 3);
};
probe* Probed::the_probe = nullptr;

TEST_F(Probed, IsStartedWithItsLevelAndArgument) {
  EXPECT_EQ(probe_.start, 1);
  EXPECT_STREQ(probe_.argument, "what ever");
  EXPECT_EQ(probe_.top_given, 1);
  EXPECT_EQ(probe_.bottom_level, BOSK_POLICY_NONE);
  EXPECT_EQ(probe_.api->size, sizeof *probe_.api);
  EXPECT_EQ(probe_.api->find_level(probe_.host, "node"), probe_.top_level);
  EXPECT_NE(probe_.holder, BOSK_POLICY_NONE);
}

TEST_F(Probed, SeesTheMachineAsItIs) {
  const bosk_policy_api& api = *probe_.api;
  bosk_policy_host* host = probe_.host;
  const Machine& m = world_.machine();
  ASSERT_EQ(api.n_domains(host), m.n_domains);
  EXPECT_EQ(api.n_pus(host), m.n_pus);
  EXPECT_EQ(api.n_nodes(host), 2u);
  for (const Domain& d : m.domains()) {
    EXPECT_EQ(api.kind(host, d.id), static_cast<std::uint32_t>(d.kind));
    EXPECT_EQ(api.depth(host, d.id), d.depth);
    EXPECT_EQ(api.parent(host, d.id), d.parent != nullptr ? d.parent->id : BOSK_POLICY_NONE);
    EXPECT_EQ(api.first_pu(host, d.id), d.first_pu);
    EXPECT_EQ(api.pus_below(host, d.id), d.n_pus());
    ASSERT_EQ(api.n_children(host, d.id), d.n_children);
    for (std::uint32_t i = 0; i < d.n_children; ++i)
      EXPECT_EQ(api.child(host, d.id, i), d.first_child[i].id);
    EXPECT_EQ(api.child(host, d.id, d.n_children), BOSK_POLICY_NONE);
  }
  for (std::uint32_t pu = 0; pu < m.n_pus; ++pu) {
    EXPECT_EQ(api.domain_of_pu(host, pu), m.pu(pu).id);
    EXPECT_EQ(api.node_of_pu(host, pu), m.node_of_pu(pu));
    EXPECT_EQ(api.level_domain_of_pu(host, probe_.top_level, pu),
              m.domain_of_pu(pu, Kind::kNode)->id);
  }
  EXPECT_EQ(api.level_size(host, probe_.top_level), 2u);
  EXPECT_EQ(api.level_domain(host, probe_.top_level, 1), node(1).id);
  EXPECT_EQ(api.common(host, api.domain_of_pu(host, 0), api.domain_of_pu(host, 7)), 0u);
  EXPECT_EQ(api.node_distance(host, 0, 0), 10u);
  // What is not there is none of anything.
  for (const std::uint32_t far : {m.n_domains, 1u << 31, BOSK_POLICY_NONE}) {
    EXPECT_EQ(api.kind(host, far), BOSK_POLICY_NONE);
    EXPECT_EQ(api.depth(host, far), BOSK_POLICY_NONE);
    EXPECT_EQ(api.parent(host, far), BOSK_POLICY_NONE);
    EXPECT_EQ(api.first_pu(host, far), BOSK_POLICY_NONE);
    EXPECT_EQ(api.pus_below(host, far), 0u);
    EXPECT_EQ(api.n_children(host, far), 0u);
    EXPECT_EQ(api.child(host, far, 0), BOSK_POLICY_NONE);
    EXPECT_EQ(api.common(host, 0, far), BOSK_POLICY_NONE);
    EXPECT_EQ(api.domain_of_pu(host, far), BOSK_POLICY_NONE);
    EXPECT_EQ(api.node_of_pu(host, far), BOSK_POLICY_NONE);
    EXPECT_EQ(api.node_distance(host, far, 0), BOSK_POLICY_NONE);
    EXPECT_EQ(api.level_size(host, far), 0u);
    EXPECT_EQ(api.level_domain(host, far, 0), BOSK_POLICY_NONE);
    EXPECT_EQ(api.level_domain_of_pu(host, far, 0), BOSK_POLICY_NONE);
    EXPECT_EQ(api.booked(host, far), 0u);
    EXPECT_EQ(api.held(host, far), 0u);
    EXPECT_EQ(api.release(host, far, 1, 0), 0u);
    EXPECT_EQ(api.release(host, probe_.holder, 1, far), 0u);
  }
  EXPECT_EQ(api.find_level(host, "shelf"), BOSK_POLICY_NONE);
  EXPECT_EQ(api.find_level(host, nullptr), BOSK_POLICY_NONE);
  EXPECT_EQ(api.release_entity(host, probe_.holder, nullptr, 0), 0u);
}

TEST_F(Probed, SeesTheWorkAsItIsAndPlacesIt) {
  const std::atomic<std::uint64_t> bytes[2] = {{4096}, {0}};
  tree_.threads[0].figures.load = 5;
  tree_.threads[1].priority = 7;
  tree_.bubbles[1].relation = sched::Relation::kGang;
  tree_.threads[2].figures.last_domain = node(1).id;
  tree_.threads[3].figures.footprint = bytes;
  probe_.on_found = [](const bosk_policy_found* b) {
    EXPECT_EQ(b->size, sizeof *b);
    return b->domain == 0 ? verdict(BOSK_POLICY_DISTRIBUTE, 0) : verdict(BOSK_POLICY_BURST, 0);
  };
  probe_.on_submit = [](bosk_policy_work* work, std::uint32_t domain) {
    const bosk_policy_api& api = *the_probe->api;
    EXPECT_EQ(domain, 0u);
    EXPECT_EQ(api.count(work), 9u);
    EXPECT_EQ(api.roots(work), 1u);
    EXPECT_EQ(api.entity_kind(work, 0), BOSK_POLICY_BUBBLE);
    EXPECT_EQ(api.children_of(work, 0), 2u);
    EXPECT_EQ(api.pieces_of(work, 0), 6u);
    EXPECT_EQ(api.load_of(work, 0), 10u * BOSK_POLICY_LOAD_UNIT);
    EXPECT_EQ(api.content_of(work, 0), 10u * BOSK_POLICY_LOAD_UNIT);
    EXPECT_EQ(api.parent_of(work, 0), BOSK_POLICY_NONE);
    const std::uint32_t first = api.child_of(work, 0, 0);
    const std::uint32_t second = api.child_of(work, 0, 1);
    const std::uint32_t thread = api.child_of(work, first, 0);
    EXPECT_EQ(api.parent_of(work, thread), first);
    EXPECT_EQ(api.entity_kind(work, thread), BOSK_POLICY_THREAD);
    EXPECT_EQ(api.load_of(work, thread), 5u * BOSK_POLICY_LOAD_UNIT);
    EXPECT_EQ(api.priority_of(work, api.child_of(work, first, 1)), 7);
    EXPECT_EQ(api.last_domain_of(work, api.child_of(work, first, 2)), api_node(the_probe->host, 1));
    EXPECT_EQ(api.last_domain_of(work, thread), BOSK_POLICY_NONE);
    EXPECT_EQ(api.footprint_of(work, api.child_of(work, second, 0), 0), 4096u);
    EXPECT_EQ(api.footprint_of(work, api.child_of(work, second, 0), 1), 0u);
    EXPECT_EQ(api.footprint_of(work, api.child_of(work, second, 0), 2), BOSK_POLICY_UNKNOWN);
    EXPECT_EQ(api.footprint_of(work, thread, 0), BOSK_POLICY_UNKNOWN);
    EXPECT_EQ(api.ghosts_of(work, 0), 0u);
    EXPECT_EQ(api.relation_of(work, 0), BOSK_POLICY_RELATION_NONE);
    EXPECT_EQ(api.relation_of(work, first), BOSK_POLICY_RELATION_GANG);
    EXPECT_EQ(api.width_of(work, 0), 6u);
    EXPECT_EQ(api.width_of(work, second), 3u);
    EXPECT_NE(api.token_of(work, 1), api.token_of(work, 2));
    // Nobody there.
    EXPECT_EQ(api.entity_kind(work, 9), BOSK_POLICY_NONE);
    EXPECT_EQ(api.child_of(work, 0, 2), BOSK_POLICY_NONE);
    EXPECT_EQ(api.child_of(work, 9, 0), BOSK_POLICY_NONE);
    EXPECT_EQ(api.parent_of(work, 9), BOSK_POLICY_NONE);
    EXPECT_EQ(api.token_of(work, 9), nullptr);
    EXPECT_EQ(api.relation_of(work, 9), BOSK_POLICY_NONE);
    EXPECT_EQ(api.width_of(work, 9), 0u);
    EXPECT_EQ(api.pieces_of(work, 9) + api.ghosts_of(work, 9) + api.children_of(work, 9), 0u);
    EXPECT_EQ(api.load_of(work, 9) + api.content_of(work, 9), 0u);
    EXPECT_EQ(api.last_domain_of(work, 9), BOSK_POLICY_NONE);
    EXPECT_EQ(api.footprint_of(work, 9, 0), BOSK_POLICY_UNKNOWN);
    EXPECT_EQ(api.priority_of(work, 9), 0);
    auto* memory = static_cast<unsigned char*>(api.memory(work, 100'000));
    EXPECT_NE(memory, nullptr);
    for (std::size_t i = 0; memory != nullptr && i < 100'000; ++i)
      if (memory[i] != 0) ADD_FAILURE() << "memory that is not zeroed";
    memset(memory, 1, 100'000);
    // The first bubble whole to node 1, the threads of the second one by one to PUs of node 0.
    EXPECT_EQ(api.place(work, first, api_node(the_probe->host, 1)), 1);
    for (std::uint32_t i = 0; i < 3; ++i)
      EXPECT_EQ(
          api.place(work, api.child_of(work, second, i), api.domain_of_pu(the_probe->host, i)), 1);
    return 1;
  };
  wake_all();
  EXPECT_TRUE(world_.engine().next(1).entity == &tree_.threads[4]);
  EXPECT_EQ(probe_.submit, 1);
  EXPECT_EQ(world_.queue(node(1).id).length, 1u);
  EXPECT_EQ(probe_.api->booked(probe_.host, node(1).id), 7u * BOSK_POLICY_LOAD_UNIT);
  world_.engine().done(tree_.threads[4]);
  sched::leave(tree_.threads[4]);
  EXPECT_EQ(run_all(world_, tree_, 1).size(), 5u);
  EXPECT_EQ(probe_.done, 3);  // those that were placed one by one
  EXPECT_EQ(probe_.done_load, 3u * BOSK_POLICY_LOAD_UNIT);
}

TEST_F(Probed, EveryOtherHookIsCalled) {
  EXPECT_FALSE(world_.engine().idle(3));
  probe_.idle_answer = 5;
  EXPECT_TRUE(world_.engine().idle(3));
  EXPECT_EQ(probe_.idle, 2);
  world_.engine().set_load(tree_.threads[0], 3);
  EXPECT_EQ(probe_.hint, 1);
  EXPECT_EQ(probe_.old_load, 1u * BOSK_POLICY_LOAD_UNIT);
  EXPECT_EQ(probe_.new_load, 3u * BOSK_POLICY_LOAD_UNIT);
  wake_all();
  EXPECT_TRUE(world_.engine().next(0));
  EXPECT_EQ(probe_.found, 3);  // the outer bubble and both inner ones
  EXPECT_FALSE(world_.engine().tick(tree_.bubbles[0]));
  probe_.regenerated_domain = 0;
  EXPECT_TRUE(world_.engine().tick(tree_.bubbles[0]));
  EXPECT_EQ(probe_.tick, 2);
  world_.engine().forget_after_fork();
  EXPECT_EQ(probe_.forked, 1);
}

TEST_F(Probed, LetsABubbleWaitUntilAProcessorIdles) {
  probe_.on_found = [](const bosk_policy_found* b) {
    EXPECT_EQ(b->relation, BOSK_POLICY_RELATION_NONE);
    EXPECT_EQ(b->others_wait, 0u);
    return verdict(b->waited != 0 ? BOSK_POLICY_BURST : BOSK_POLICY_WAIT, 0);
  };
  wake_all();
  EXPECT_FALSE(world_.engine().next(0));
  EXPECT_EQ(probe_.found, 1);
  EXPECT_TRUE(world_.engine().idle(0));
  EXPECT_EQ(probe_.found, 2);
  EXPECT_EQ(tree_.bubbles[0].state, sched::BubbleState::kBurst);
}

TEST_F(Probed, TakesFromOthersByItsRule) {
  sched::TreeEntity thread;
  const std::uint32_t other = world_.machine().pu(3).id;
  world_.engine().wake(thread, other);
  EXPECT_FALSE(world_.engine().idle(0));
  EXPECT_EQ(probe_.steal, 1);
  EXPECT_EQ(thread.holder, &world_.queue(other));
  probe_.steal_answer = 1;
  EXPECT_TRUE(world_.engine().idle(0));
  EXPECT_EQ(probe_.steal, 2);
  EXPECT_EQ(world_.engine().next(0).entity, &thread);
}

TEST_F(Probed, HasWhatIsOpenSubmittedAnew) {
  probe_.on_found = [](const bosk_policy_found* b) {
    return verdict(b->domain == 0 ? BOSK_POLICY_DISTRIBUTE : BOSK_POLICY_BURST, 0);
  };
  probe_.on_submit = [](bosk_policy_work* work, std::uint32_t) {
    for (std::uint32_t i = 0; i < the_probe->api->children_of(work, 0); ++i)
      the_probe->api->place(work, the_probe->api->child_of(work, 0, i),
                            api_node(the_probe->host, i));
    return 1;
  };
  wake_all();
  const sched::Found found = world_.engine().next(0);
  ASSERT_TRUE(found);
  sched::requeue(*static_cast<sched::TreeEntity*>(found.entity), *found.queue);
  EXPECT_EQ(probe_.submit, 1);
  EXPECT_EQ(probe_.api->redistribute(probe_.host, world_.machine().n_domains), 0u);
  EXPECT_GT(probe_.api->redistribute(probe_.host, 0), 0u);
  EXPECT_EQ(tree_.bubbles[0].state, sched::BubbleState::kClosed);
  expect_conserved();
  EXPECT_GT(probe_.submit, 1);
}

TEST(ProbedOnce, StopIsCalledWithTheStateOfStart) {
  probe& p = probe_of();
  {
    World world(symmetric(2, 1, 2, 2), file("probe").c_str());
  }
  EXPECT_EQ(p.stop, 1);
}

TEST_F(Probed, SaysWhereTeamsAreAtHome) {
  TeamPlacement homes;
  const policies::TeamShape shape{
      .members = 5, .opener_domain = node(1).id, .opener_pu = 4, .depth = 2};
  world_.engine().place_team(shape, &homes);  // no answer: with the opener
  EXPECT_EQ(probe_.submit_team, 1);
  EXPECT_EQ(homes.domain_of(4), node(1).id);
  probe_.on_submit_team = [](const bosk_policy_team* team, bosk_policy_homes* to) {
    EXPECT_EQ(team->size, sizeof *team);
    EXPECT_EQ(team->members, 5u);
    EXPECT_EQ(team->opener_pu, 4u);
    EXPECT_EQ(team->depth, 2u);
    the_probe->api->home_together(to, api_node(the_probe->host, 0));
  };
  world_.engine().place_team(shape, &homes);
  EXPECT_TRUE(homes.is_together());
  EXPECT_EQ(homes.scope(), node(0).id);
  probe_.on_submit_team = [](const bosk_policy_team*, bosk_policy_homes* to) {
    the_probe->api->home_even(to, 0);
  };
  world_.engine().place_team(shape, &homes);
  EXPECT_FALSE(homes.is_together());
  EXPECT_EQ(homes.members_below(node(0).id).count + homes.members_below(node(1).id).count, 5u);
  probe_.on_submit_team = [](const bosk_policy_team*, bosk_policy_homes* to) {
    the_probe->api->home_next(to, 2, api_node(the_probe->host, 1));
    the_probe->api->home_next(to, 3, api_node(the_probe->host, 0));
  };
  world_.engine().place_team(shape, &homes);
  EXPECT_EQ(homes.domain_of(1), node(1).id);
  EXPECT_EQ(homes.domain_of(2), node(0).id);
  EXPECT_EQ(homes.gang_ticks(), 0u);
  // In any order, and not for the next one.
  probe_.on_submit_team = [](const bosk_policy_team*, bosk_policy_homes* to) {
    EXPECT_GE(the_probe->api->size, offsetof(bosk_policy_api, home_as_gang) + sizeof(void*));
    the_probe->api->home_as_gang(to, 3);
    the_probe->api->home_together(to, api_node(the_probe->host, 0));
  };
  world_.engine().place_team(shape, &homes);
  EXPECT_EQ(homes.gang_ticks(), 3u);
  EXPECT_TRUE(homes.is_together());
  probe_.on_submit_team = nullptr;
  world_.engine().place_team(shape, &homes);
  EXPECT_EQ(homes.gang_ticks(), 0u);
  homes.release();
}

TEST_F(Probed, KeepsBubblesOutsideOfTheSearchUntilItReleasesThem) {
  probe_.on_found = [](const bosk_policy_found* b) {
    EXPECT_EQ(b->load, BOSK_POLICY_UNKNOWN);
    return b->domain == 0 && b->members == 2 ? verdict(BOSK_POLICY_KEEP, the_probe->holder)
                                             : verdict(BOSK_POLICY_BURST, 0);
  };
  wake_all();
  for (std::uint32_t pu = 0; pu < 8; ++pu) EXPECT_FALSE(world_.engine().next(pu));
  EXPECT_EQ(probe_.found, 1);
  EXPECT_EQ(probe_.api->held(probe_.host, probe_.holder), 1u);
  EXPECT_EQ(probe_.api->booked(probe_.host, 0), 0u);
  EXPECT_EQ(probe_.api->release(probe_.host, probe_.holder, 9, node(1).id), 1u);
  EXPECT_EQ(world_.announced(node(1).id), 1u);
  EXPECT_EQ(probe_.api->booked(probe_.host, node(1).id), 6u * BOSK_POLICY_LOAD_UNIT);
  EXPECT_EQ(probe_.api->held(probe_.host, probe_.holder), 0u);
  EXPECT_FALSE(world_.engine().next(0));  // of the other node
  const std::vector<Finding> findings = run_all(world_, tree_, 1);
  expect_all_once(world_, tree_, findings);
  for (const Finding& f : findings) EXPECT_GE(f.pu, 4u);
}

/// A policy that keeps inner bubbles back, each once, and needs no books of its own for that.
TEST_F(Probed, SaysWhereABubbleIsNestedAndWhetherItWasReleased) {
  static bosk_policy_entity outermost;
  outermost = nullptr;
  probe_.on_found = [](const bosk_policy_found* b) {
    if (b->depth == 0) {
      EXPECT_EQ(b->parent, nullptr);
      EXPECT_EQ(b->released, 0u);
      outermost = b->bubble;
      return verdict(BOSK_POLICY_BURST, 0);
    }
    EXPECT_EQ(b->depth, 1u);
    EXPECT_EQ(b->parent, outermost);
    return b->released == 0 ? verdict(BOSK_POLICY_KEEP, the_probe->holder)
                            : verdict(BOSK_POLICY_BURST, 0);
  };
  wake_all();
  EXPECT_FALSE(world_.engine().next(0));
  EXPECT_EQ(probe_.found, 3);
  EXPECT_EQ(probe_.api->held(probe_.host, probe_.holder), 2u);
  EXPECT_EQ(probe_.api->release(probe_.host, probe_.holder, 1, 0), 1u);
  std::vector<Finding> findings = run_all(world_, tree_, 1);
  EXPECT_EQ(findings.size(), 3u);
  EXPECT_EQ(probe_.found, 4);
  EXPECT_EQ(probe_.api->release(probe_.host, probe_.holder, 1, node(1).id), 1u);
  for (const Finding& f : run_all(world_, tree_, 2)) findings.push_back(f);
  expect_all_once(world_, tree_, findings);
  // They have burst: the next time nobody has released them.
  for (const sched::NestedBubble& bubble : tree_.bubbles) EXPECT_FALSE(bubble.released);
}

TEST_F(Probed, HoldsSingleThreadsAndReleasesThemByName) {
  static bosk_policy_entity tokens[6];
  probe_.on_found = [](const bosk_policy_found*) { return verdict(BOSK_POLICY_DISTRIBUTE, 0); };
  probe_.on_submit = [](bosk_policy_work* work, std::uint32_t) {
    const bosk_policy_api& api = *the_probe->api;
    int n = 0;
    for (std::uint32_t i = 0; i < api.count(work); ++i) {
      if (api.entity_kind(work, i) != BOSK_POLICY_THREAD) continue;
      tokens[n++] = api.token_of(work, i);
      EXPECT_EQ(api.place_in_holder(work, i, the_probe->holder), 1);
    }
    return 1;
  };
  tree_.threads[5].priority = 1;
  wake_all();
  EXPECT_FALSE(world_.engine().next(0));
  EXPECT_EQ(probe_.api->held(probe_.host, probe_.holder), 6u);
  EXPECT_EQ(probe_.api->release_entity(probe_.host, probe_.holder, tokens[2], node(0).id), 1u);
  EXPECT_EQ(probe_.api->release_entity(probe_.host, probe_.holder, tokens[2], node(0).id), 0u);
  EXPECT_EQ(world_.engine().next(0).entity, &tree_.threads[2]);
  EXPECT_FALSE(world_.engine().next(0));
  // The best comes first.
  EXPECT_EQ(probe_.api->release(probe_.host, probe_.holder, 1, node(0).id), 1u);
  EXPECT_EQ(world_.engine().next(1).entity, &tree_.threads[5]);
  // What is held can be taken out of its bubble, and goes back when the bubble closes.
  EXPECT_TRUE(sched::remove(tree_.threads[0]));
  EXPECT_EQ(probe_.api->held(probe_.host, probe_.holder), 3u);
  EXPECT_TRUE(sched::close(tree_.bubbles[1]) || tree_.bubbles[1].awaited == 1);
  EXPECT_EQ(probe_.api->held(probe_.host, probe_.holder), 2u);
  EXPECT_EQ(tree_.threads[1].holder, &tree_.bubbles[1]);
  EXPECT_EQ(probe_.api->release(probe_.host, probe_.holder, 9, node(0).id), 2u);
}

TEST_F(Probed, GivesBackWhatItHoldsWhenItStops) {
  policies::PolicyEngine engine;
  sched::DomainQueues queues;
  ASSERT_TRUE(queues.build(world_.machine()));
  PolicyPlan plan;
  topology::Error error;
  ASSERT_TRUE(policies::make_plan(file("probe").c_str(), world_.machine(), &plan, &error));
  ASSERT_TRUE(engine.start(queues, plan, {}, &error)) << error.text;
  probe_.on_found = [](const bosk_policy_found*) {
    return verdict(BOSK_POLICY_KEEP, the_probe->holder);
  };
  engine.wake(tree_.bubbles[0], node(0).id);
  EXPECT_FALSE(engine.next(0));
  engine.stop();
  EXPECT_EQ(queues.of(0).first, &tree_.bubbles[0]);
  queues.of(0).remove_locked(&tree_.bubbles[0]);
  queues.release();
}

TEST_F(Probed, ThereAreHoldersEnoughAndNotMore) {
  std::uint32_t made = 1;
  std::uint32_t last = BOSK_POLICY_NONE;
  for (std::uint32_t holder; made < 1000; ++made, last = holder)
    if ((holder = probe_.api->make_holder(probe_.host)) == BOSK_POLICY_NONE) break;
  EXPECT_EQ(made, 64u);
  EXPECT_EQ(probe_.api->held(probe_.host, last), 0u);
  EXPECT_EQ(probe_.api->held(probe_.host, last + 1), 0u);
}

/// Runs a world in a child process whose probe gives this answer: what it says, and that everything
/// runs nevertheless. In a child, because nonsense is told once.
template <class Prepare>
std::string said_of(Prepare&& prepare) {
  const bosk::testing::ChildResult result = bosk::testing::in_child({}, [&] {
    probe& p = probe_of();
    World world(symmetric(2, 1, 2, 2), file("probe").c_str());
    prepare(p);
    for (std::uint32_t seed = 0; seed < 3; ++seed) {
      Tree tree = Tree::groups(2, 3);
      world.engine().wake(tree.bubbles[0], 0);
      expect_all_once(world, tree, run_all(world, tree, seed));
      TeamPlacement homes;
      world.engine().place_team({.members = 4, .opener_domain = 1, .opener_pu = 0}, &homes);
      EXPECT_EQ(homes.domain_of(3), 1u);
      homes.release();
    }
    return std::string(::testing::Test::HasFailure() ? "failed" : "well");
  });
  EXPECT_EQ(result.output, "well") << result.errors;
  EXPECT_LE(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  return result.errors;
}

template <std::uint32_t kAction, std::uint32_t kTarget>
void always(probe& p) {
  p.on_found = [](const bosk_policy_found*) { return bosk_policy_verdict{kAction, kTarget}; };
}

TEST(Nonsense, OfAVerdictIsToldOnceAndTheBubbleBursts) {
  EXPECT_THAT(said_of(always<99, 0>), AllOf(HasSubstr("bosk: the policy probe answered nonsense"),
                                            HasSubstr("a verdict that does not exist")));
  EXPECT_THAT(said_of(always<BOSK_POLICY_DESCEND, 4711>), HasSubstr("does not exist"));
  EXPECT_THAT(said_of(always<BOSK_POLICY_DESCEND, 0>), HasSubstr("on the worker's way"));
  EXPECT_THAT(said_of(always<BOSK_POLICY_TAKE_GHOST, 0>), HasSubstr("ghosts"));
  EXPECT_THAT(said_of(always<BOSK_POLICY_KEEP, 0>), HasSubstr("holder"));
  EXPECT_THAT(said_of(always<BOSK_POLICY_KEEP, (1u << 31) + 5>), HasSubstr("holder"));
  EXPECT_THAT(said_of(always<BOSK_POLICY_BURST, 77>), IsEmpty());
}

/// submit() answers with the placements of `Place`.
template <class Place>
std::string said_of_placing(Place) {
  return said_of([](probe& p) {
    always<BOSK_POLICY_DISTRIBUTE, 0>(p);
    p.on_submit = [](bosk_policy_work* work, std::uint32_t domain) {
      static void* handle = dlopen(file("probe").c_str(), RTLD_NOW);
      const auto* mine = static_cast<probe*>(dlsym(handle, "probe"));
      return Place()(*mine->api, *mine, work, domain);
    };
  });
}

TEST(Nonsense, OfPlacementsIsToldOnceAndTheBubbleBursts) {
  EXPECT_THAT(said_of_placing([](auto&, auto&, auto*, auto) { return 1; }),
              AllOf(HasSubstr("the policy probe answered nonsense"), HasSubstr("no place")));
  EXPECT_THAT(said_of_placing([](auto& api, auto&, auto* w, auto) { return api.place(w, 99, 0); }),
              HasSubstr("does not exist"));
  EXPECT_THAT(
      said_of_placing([](auto& api, auto&, auto* w, auto) { return api.place(w, 0, 1u << 31); }),
      HasSubstr("does not exist"));
  EXPECT_THAT(
      said_of_placing([](auto& api, auto&, auto* w, auto) { return api.place_in_holder(w, 0, 7); }),
      HasSubstr("does not exist"));
  EXPECT_THAT(said_of_placing([](auto& api, auto&, auto* w, auto) {
                return api.place(w, 0, 1) + api.place(w, 0, 2);
              }),
              HasSubstr("two places"));
  EXPECT_THAT(said_of_placing([](auto&, auto&, auto*, auto) { return 0; }), IsEmpty());
  EXPECT_THAT(said_of_placing([](auto& api, auto& mine, auto* w, auto domain) {
                // Found at the root it goes to node 0, and from there to the other one.
                const std::uint32_t to = api.child(mine.host, 0, domain == 0 ? 0 : 1);
                return api.place(w, 0, to);
              }),
              HasSubstr("out of reach"));
}

TEST(Nonsense, OfHomesIsToldOnceAndTheTeamStaysWithItsOpener) {
  const auto said = [](auto hook) { return said_of([&](probe& p) { p.on_submit_team = hook; }); };
  static const bosk_policy_api& api = policies::kPluginApi;
  using Team = const bosk_policy_team*;
  EXPECT_THAT(said([](Team, bosk_policy_homes* to) { api.home_together(to, 4711); }),
              AllOf(HasSubstr("the policy probe answered nonsense"), HasSubstr("does not exist")));
  EXPECT_THAT(said([](Team, bosk_policy_homes* to) { api.home_even(to, 4711); }),
              HasSubstr("does not exist"));
  EXPECT_THAT(said([](Team, bosk_policy_homes* to) { api.home_next(to, 3, 2); }),
              HasSubstr("some members"));
  EXPECT_THAT(said([](Team, bosk_policy_homes* to) {
                api.home_next(to, 3, 2);
                api.home_next(to, UINT32_MAX, 2);
              }),
              HasSubstr("more members"));
  EXPECT_THAT(said([](Team, bosk_policy_homes*) {}), IsEmpty());
}

/// The example, whose decisions for OpenMP teams tests/install/check_policy.sh looks at.
TEST(WeightedRoundRobin, DealsWhatIsInABubbleByItsWeights) {
  for (const auto& [argument, first] :
       {std::pair{":3-1", 9u}, {":0-1", 0u}, {":5", 10u}, {"", 8u}}) {
    World world(symmetric(2, 1, 2, 2), (file("wrr") + argument).c_str());
    Tree tree = Tree::groups(12, 3);
    world.engine().wake(tree.bubbles[0], 0);
    const std::vector<Finding> findings = run_all(world, tree, 7);
    expect_all_once(world, tree, findings);
    std::map<std::uint32_t, std::set<const sched::NestedBubble*>> nodes;
    for (const Finding& f : findings)
      nodes[world.machine().domain_of_pu(f.pu, Kind::kNode)->index].insert(
          &tree.bubbles[1 + f.thread / 3]);
    EXPECT_EQ(nodes[0].size(), first) << argument;
    EXPECT_EQ(nodes[1].size(), 12 - first) << argument;  // no bubble is on both
  }
  EXPECT_THAT(refusal(file("wrr") + ":3-x"), HasSubstr("the policy wrr: \"3-x\" are no weights"));
  for (const char* bad : {"-", "3-", "0-0", "+1", "1001"})
    EXPECT_THAT(refusal(file("wrr") + ":" + bad), HasSubstr("no weights")) << bad;
}

TEST(ByDepth, DealsTeamsOverTheLevelOfTheirDepth) {
  World world(symmetric(2, 2, 2, 1), (file("by_depth") + ":node-l3-together").c_str());
  using Homes = std::vector<std::uint32_t>;
  const auto around = [&](std::uint32_t pu, Kind kind) {
    return world.machine().domain_of_pu(pu, kind)->id;
  };
  const auto place = [&](const policies::TeamShape& shape) {
    policies::TeamPlacement homes;
    world.engine().place_team(shape, &homes);
    Homes found;
    for (std::uint32_t i = 0; i < shape.members; ++i) found.push_back(homes.domain_of(i));
    homes.release();
    return found;
  };
  const std::uint32_t node[] = {around(0, Kind::kNode), around(4, Kind::kNode)};
  const std::uint32_t cache[] = {around(4, Kind::kL3), around(6, Kind::kL3)};
  EXPECT_EQ(place({.members = 3}), (Homes{node[0], node[1], node[1]}));
  EXPECT_EQ(place({.members = 2, .opener_domain = node[1], .opener_pu = 4, .depth = 1}),
            (Homes{cache[0], cache[1]}));
  EXPECT_EQ(place({.members = 2, .opener_domain = cache[1], .opener_pu = 7, .depth = 2}),
            (Homes{cache[1], cache[1]}));
  // No node lies inside of a cache.
  EXPECT_EQ(place({.members = 1, .opener_domain = cache[1], .opener_pu = 7}), (Homes{cache[1]}));
  for (const char* bad : {"-", "node--core", "node-averyveryverylongword"})
    EXPECT_THAT(refusal(file("by_depth") + ":" + bad), HasSubstr("are no levels")) << bad;
  EXPECT_THAT(refusal(file("by_depth") + ":node-shelf"), HasSubstr("\"shelf\" is not a level"));
}

TEST(PluginComposition, ActsOnItsLevelBesideABuiltInOneAndAnotherPlugin) {
  probe& outer = probe_of();
  probe& inner = probe_of("probe_inner");
  const std::string plan =
      file("probe") + "@machine,burst:core@l3," + file("probe_inner") + "@core";
  World world(symmetric(2, 2, 2, 2), plan.c_str());
  Tree tree = Tree::groups(2, 2);
  // Down, so that burst finds it; that sends it to cores, which are the other plug-in's.
  outer.on_found = [](const bosk_policy_found* b) {
    return bosk_policy_verdict{BOSK_POLICY_DESCEND, 3 + b->pu / 4};
  };
  world.engine().wake(tree.bubbles[0], 0);
  expect_all_once(world, tree, run_all(world, tree, 5));
  EXPECT_GT(outer.found, 0);
  EXPECT_GT(inner.found, 0);
  EXPECT_EQ(inner.bottom_level, BOSK_POLICY_NONE);
  EXPECT_EQ(outer.bottom_level, outer.api->find_level(outer.host, "l3"));
}

}  // namespace
