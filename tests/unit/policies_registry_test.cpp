// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which policies BOSK_POLICY means on a machine, and what is said when it means none.
#include "policies/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "invented_machine.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using policies::PolicyPlan;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Planned {
  bool good;
  PolicyPlan plan;
  topology::Error error;
};

Planned plan(const Machine& machine, const char* text) {
  Planned planned{};
  planned.good = policies::make_plan(text, machine, &planned.plan, &planned.error);
  return planned;
}

void expect_default(const Machine& machine, const PolicyPlan& plan) {
  ASSERT_EQ(plan.count, 1u);
  EXPECT_EQ(plan.policy[0].ops, &policies::default_policy());
  EXPECT_EQ(plan.policy[0].level, machine.level(Kind::kMachine));
}

TEST(Registry, FindsPoliciesByNameInAnyCase) {
  ASSERT_NE(policies::find_policy("burst"), nullptr);
  EXPECT_EQ(policies::find_policy("BURST"), policies::find_policy("burst"));
  EXPECT_STREQ(policies::find_policy("spread")->name, "spread");
  EXPECT_EQ(policies::find_policy("bursting"), nullptr);
  for (const policies::PolicyOps* ops : policies::known_policies()) {
    EXPECT_EQ(policies::find_policy(ops->name), ops);
    EXPECT_STRNE(ops->summary, "");
  }
}

TEST(Registry, OrdersPoliciesFromTheOutermostLevelIn) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  for (const char* text : {"spread@machine,burst:core@node", "burst:core@node,spread@machine",
                           "burst:core@numa , spread"}) {
    const Planned p = plan(*machine, text);
    ASSERT_TRUE(p.good) << p.error.text;
    ASSERT_EQ(p.plan.count, 2u);
    EXPECT_STREQ(p.plan.policy[0].ops->name, "spread");
    EXPECT_EQ(p.plan.policy[0].level, machine->level(Kind::kMachine));
    EXPECT_STREQ(p.plan.policy[1].ops->name, "burst");
    EXPECT_STREQ(p.plan.policy[1].argument, "core");
    EXPECT_EQ(p.plan.policy[1].level, machine->level(Kind::kNode));
  }
}

TEST(Registry, AnUnknownNameListsTheKnownOnesAndTheDefaultGoesOn) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  const Planned p = plan(*machine, "burst,sprad@node");
  EXPECT_FALSE(p.good);
  EXPECT_THAT(p.error.text,
              AllOf(HasSubstr("sprad"),
                    HasSubstr("burst, cache, explode, gang, memory, null, spread, steal"),
                    Not(HasSubstr("\n"))));
  expect_default(*machine, p.plan);
}

TEST(Registry, ALevelThatTheMachineLacksListsThoseItHas) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  for (const char* text : {"spread@die", "burst:die"}) {
    const Planned p = plan(*machine, text);
    EXPECT_FALSE(p.good);
    EXPECT_THAT(p.error.text, AllOf(HasSubstr("die"), HasSubstr("node"), HasSubstr("l3"),
                                    HasSubstr("core"), Not(HasSubstr("\n"))));
    expect_default(*machine, p.plan);
  }
  EXPECT_THAT(plan(*machine, "spread@shelf").error.text,
              AllOf(HasSubstr("shelf"), HasSubstr("node")));
}

TEST(Registry, RefusesWhatCannotBeMeant) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  EXPECT_THAT(plan(*machine, "spread:much").error.text, HasSubstr("much"));
  EXPECT_THAT(plan(*machine, "spread:0").error.text, HasSubstr("\"0\""));
  EXPECT_THAT(plan(*machine, "spread@node,burst@node").error.text,
              AllOf(HasSubstr("spread"), HasSubstr("burst"), HasSubstr("node")));
  EXPECT_THAT(plan(*machine, "spread@").error.text, HasSubstr("spread@"));
  EXPECT_FALSE(plan(*machine, ",").good);
}

TEST(Registry, AnEmptyListIsTheDefault) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  base::PolicyList none{};
  PolicyPlan planned;
  topology::Error error;
  EXPECT_TRUE(policies::make_plan(none, *machine, &planned, &error));
  expect_default(*machine, planned);
}

// The environment is read once per process, so the test is a child of its own.
TEST(RegistryDeathTest, SaysOneLineWhenTheEnvironmentAsksForWhatThereIsNot) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("BOSK_POLICY", "wurst", 1);
  EXPECT_EXIT(
      {
        const MachinePtr machine = symmetric(2, 2, 2, 2);
        const PolicyPlan planned = policies::plan_from_settings(*machine);
        exit(planned.count == 1 && planned.policy[0].ops == &policies::default_policy() ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "^bosk: BOSK_POLICY: \"wurst\" is not a policy \\(there are: burst, cache, explode, gang, "
      "memory, null, spread, steal\\); using spread\n$");
  unsetenv("BOSK_POLICY");
}

}  // namespace
