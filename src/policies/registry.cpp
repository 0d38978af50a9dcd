// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names, levels and arguments of policies.
#include "policies/registry.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/message.h"
#include "policies/burst/burst.h"
#include "policies/cache/cache.h"
#include "policies/explode/explode.h"
#include "policies/gang/gang.h"
#include "policies/memory/memory.h"
#include "policies/null/null.h"
#include "policies/plugin.h"
#include "policies/spread/spread.h"
#include "policies/steal/steal.h"

namespace bosk::policies {
namespace {

constexpr const PolicyOps* kKnown[] = {&kBurstPolicy,  &kCachePolicy,  &kExplodePolicy,
                                       &kGangPolicy,   &kMemoryPolicy, &kNullPolicy,
                                       &kSpreadPolicy, &kStealPolicy};

bool unknown_name(const char* name, topology::Error* error) {
  char have[300] = {};
  size_t at = 0;
  for (const PolicyOps* ops : kKnown) {
    const int n = snprintf(have + at, sizeof have - at, "%s%s", at == 0 ? "" : ", ", ops->name);
    if (n < 0 || static_cast<size_t>(n) >= sizeof have - at) break;
    at += static_cast<size_t>(n);
  }
  return error->set("\"%.40s\" is not a policy (there are: %s)", name, have);
}

bool plan_one(const base::PolicyClause& clause, const topology::Machine& machine,
              PlannedPolicy* planned, topology::Error* error) {
  planned->ops =
      clause.plugin != nullptr ? load_plugin(clause.plugin, error) : find_policy(clause.name);
  if (planned->ops == nullptr)
    return clause.plugin != nullptr ? false : unknown_name(clause.name, error);
  planned->level_given = clause.level[0] != '\0';
  planned->level = machine.find_level(planned->level_given ? clause.level : "machine", error);
  if (planned->level == nullptr) return false;
  memcpy(planned->argument, clause.argument, sizeof planned->argument);
  if (clause.plugin != nullptr)
    return check_plugin(*planned->ops,
                        {&machine, planned->level, nullptr, planned->level_given, planned->argument,
                         planned->ops, nullptr},
                        error);
  if (clause.argument[0] == '\0') return true;
  if (planned->ops->check == nullptr)
    return error->set("the policy %s takes no argument (\"%.40s\" was given)", planned->ops->name,
                      clause.argument);
  return planned->ops->check(clause.argument, machine, error);
}

/// Into its place from the outermost level to the innermost.
bool add_to_plan(const PlannedPolicy& planned, PolicyPlan* plan, topology::Error* error) {
  uint32_t at = plan->count;
  while (at > 0 && plan->policy[at - 1].level >= planned.level) {
    if (plan->policy[at - 1].level == planned.level)
      return error->set("%s and %s cannot both act on level %s; name another level with @LEVEL",
                        plan->policy[at - 1].ops->name, planned.ops->name,
                        topology::kind_name(planned.level->kind));
    --at;
  }
  memmove(plan->policy + at + 1, plan->policy + at, (plan->count - at) * sizeof plan->policy[0]);
  plan->policy[at] = planned;
  ++plan->count;
  return true;
}

}  // namespace

std::span<const PolicyOps* const> known_policies() { return kKnown; }

const PolicyOps* find_policy(const char* name) {
  for (const PolicyOps* ops : kKnown)
    if (strcasecmp(name, ops->name) == 0) return ops;
  return nullptr;
}

const PolicyOps& default_policy() { return kSpreadPolicy; }

PolicyPlan default_plan(const topology::Machine& machine) {
  PolicyPlan plan;
  plan.policy[0] = {&default_policy(), machine.level(topology::Kind::kMachine), false, ""};
  plan.count = 1;
  return plan;
}

bool make_plan(const base::PolicyList& list, const topology::Machine& machine, PolicyPlan* plan,
               topology::Error* error) {
  PolicyPlan made;
  for (uint32_t i = 0; i < list.count; ++i) {
    PlannedPolicy planned{};
    if (!plan_one(list.clause[i], machine, &planned, error) ||
        !add_to_plan(planned, &made, error)) {
      *plan = default_plan(machine);
      return false;
    }
  }
  *plan = made.count != 0 ? made : default_plan(machine);
  return true;
}

bool make_plan(const char* text, const topology::Machine& machine, PolicyPlan* plan,
               topology::Error* error) {
  base::PolicyList list{};
  if (base::parse_policy_list(text, &list)) {
    const bool made = make_plan(list, machine, plan, error);
    base::release_policy_list(&list);
    return made;
  }
  *plan = default_plan(machine);
  return error->set(
      "\"%.200s\" is not a list of policies, NAME[:ARGUMENT][@LEVEL] with commas between; NAME is a "
      "policy or a file (./mine.so)",
      text);
}

PolicyPlan plan_from_settings(const topology::Machine& machine) {
  PolicyPlan plan;
  topology::Error error;
  if (!make_plan(base::settings().policy, machine, &plan, &error)) say_refused(error);
  return plan;
}

void say_refused(const topology::Error& error) {
  static base::SayOnce once;
  if (once.first()) base::say("BOSK_POLICY: %s; using %s", error.text, default_policy().name);
}

}  // namespace bosk::policies
