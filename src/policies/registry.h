// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which policies there are, and which ones shall act on which level.
#pragma once

#include <stdint.h>

#include <span>

#include "base/settings.h"
#include "policies/policy.h"

namespace bosk::policies {

/// The policies that are built in.
std::span<const PolicyOps* const> known_policies();
/// Null: there is none of that name (any case).
const PolicyOps* find_policy(const char* name);
/// What acts when nobody asks for anything.
const PolicyOps& default_policy();

/// One policy on one level.
struct PlannedPolicy {
  const PolicyOps* ops;
  const topology::Level* level;
  bool level_given;
  char argument[base::PolicyClause::kArgumentMax + 1];
};

/// The policies that act on a machine, outermost level first.
struct PolicyPlan {
  static constexpr uint32_t kMost = base::PolicyList::kMost;
  PlannedPolicy policy[kMost];
  uint32_t count = 0;
};

/// The default policy on the whole machine.
PolicyPlan default_plan(const topology::Machine& machine);

/// What the list asks for. An empty list: the default. Files are loaded as plug-ins. False: a name, a
/// level or an argument is not known on this machine, a file is no policy, or two policies are to act
/// on one level; `error` says which in one line and lists what there is, `plan` is the default.
bool make_plan(const base::PolicyList& list, const topology::Machine& machine, PolicyPlan* plan,
               topology::Error* error);

/// The same for the text of BOSK_POLICY, for example "spread@machine,burst@node".
bool make_plan(const char* text, const topology::Machine& machine, PolicyPlan* plan,
               topology::Error* error);

/// Tells why what BOSK_POLICY asks for cannot be had and what is used instead: once in the life of the
/// process, for teams and threads alike.
void say_refused(const topology::Error& error);

/// The plan of base::settings(). If it cannot be, that is said in one line and the default goes on.
/// Allocates at the first call of settings(); not with preemption off.
PolicyPlan plan_from_settings(const topology::Machine& machine);

}  // namespace bosk::policies
