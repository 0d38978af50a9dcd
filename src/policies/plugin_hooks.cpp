// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls the hooks of plug-ins, and looks at what they answer: a plug-in comes from elsewhere.
#include <limits.h>
#include <string.h>

#include <new>

#include "base/mapped_array.h"
#include "policies/engine.h"
#include "policies/plugin.h"

namespace bosk::policies {
namespace {

using topology::Domain;
using topology::Machine;

using Host = bosk_policy_host;

Host& host_of(void* state) { return *static_cast<Host*>(state); }

void say_nonsense(Plugin& plugin, const char* what, const char* instead) {
  if (plugin.nonsense.first())
    base::say("the policy %s answered nonsense (%s); %s", plugin.table.name, what, instead);
}

uint32_t number_of(const Machine& machine, const topology::Level* level) {
  return level != nullptr ? static_cast<uint32_t>(level - machine.level_array) : kNone;
}

bosk_policy_start start_for(const PolicyStart& start, Host* host) {
  bosk_policy_start given{};
  given.size = sizeof given;
  given.api = &kPluginApi;
  given.host = host;
  given.argument = start.argument;
  given.top_level = number_of(*start.machine, start.top);
  given.bottom_level = number_of(*start.machine, start.bottom);
  given.top_given = start.top_given ? 1 : 0;
  return given;
}

Plugin& plugin_of(const PolicyOps& ops) {
  // Every PolicyOps of a plug-in is a member of its Plugin.
  return *reinterpret_cast<Plugin*>(const_cast<char*>(reinterpret_cast<const char*>(&ops)) -
                                    offsetof(Plugin, ops));
}

/// What the plug-in wrote as its reason, as one line that cannot be longer than there is room.
bool refused(const Plugin& plugin, char (&why)[300], const char* unless, topology::Error* error) {
  why[sizeof why - 1] = '\0';
  for (char* c = why; *c != '\0'; ++c)
    if (static_cast<unsigned char>(*c) < ' ') *c = ' ';
  return error->set("the policy %s: %s", plugin.table.name, why[0] != '\0' ? why : unless);
}

bool start(const PolicyStart& start, void** state, topology::Error* error) {
  Plugin& plugin = plugin_of(*start.ops);
  void* memory = base::map_pages(sizeof(Host));
  if (memory == nullptr) return error->set("no memory for the policy %s", plugin.table.name);
  auto* host = new (memory) Host{&plugin, nullptr, start.machine, start.bottom, start.engine, {}};
  if (plugin.table.start != nullptr) {
    char why[300] = "";
    const bosk_policy_start given = start_for(start, host);
    if (plugin.table.start(&given, &host->state, why, sizeof why) == 0) {
      base::unmap_pages(memory, sizeof(Host));
      return refused(plugin, why, "it could not be started and does not say why", error);
    }
  }
  *state = host;
  return true;
}

void stop(void* state) {
  Host& host = host_of(state);
  if (host.plugin->table.stop != nullptr) host.plugin->table.stop(host.state);
  host.scratch.release();
  base::unmap_pages(&host, sizeof host);
}

bool submit(void* state, const Submission& submission, PlacementList* answer) {
  Host& host = host_of(state);
  bosk_policy_work work{&host, &submission, answer, nullptr};
  const bool answered = host.plugin->table.submit(host.state, &work, submission.domain) != 0;
  if (work.scratch != nullptr) host.scratch.give(work.scratch);
  return answered;
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  Host& host = host_of(state);
  const bosk_policy_team team{sizeof team,         shape.members,   shape.loads,
                              shape.opener_domain, shape.opener_pu, shape.depth};
  bosk_policy_homes homes{&shape, &host, answer, 0, false, 0, nullptr};
  // The answer if there is none, and after nonsense.
  answer->set_together(*host.machine, shape.opener_domain, shape.members);
  host.plugin->table.submit_team(host.state, &team, &homes);
  if (homes.wrong == nullptr && homes.listed && homes.named != shape.members)
    homes.wrong = "homes for some members of a team only";
  if (homes.wrong == nullptr) {
    answer->set_gang(homes.gang_ticks);
    return;
  }
  say_nonsense(*host.plugin, homes.wrong, "the team is at home with its opener");
  answer->release();
  answer->set_together(*host.machine, shape.opener_domain, shape.members);
}

bosk_policy_found found_for(const FoundBubble& bubble) {
  return {sizeof(bosk_policy_found),
          bubble.domain,
          bubble.pu,
          bubble.members,
          bubble.ghosts,
          bubble.priority,
          static_cast<bosk_policy_entity>(bubble.token),
          bubble.load == UINT32_MAX ? BOSK_POLICY_UNKNOWN : policies::load_of(bubble.load),
          static_cast<uint32_t>(bubble.relation),
          bubble.waited ? 1u : 0u,
          bubble.others_wait ? 1u : 0u,
          bubble.waiting_priority,
          static_cast<bosk_policy_entity>(bubble.parent),
          bubble.depth,
          bubble.released ? 1u : 0u};
}

/// For plug-ins that only say where things go: whatever can be distributed is.
Verdict found_by_default(void* state, const FoundBubble& bubble) {
  const Host& host = host_of(state);
  const Domain& d = host.machine->domain_array[bubble.domain];
  const bool at_bottom =
      d.is_pu() || (host.bottom != nullptr && at_or_below(*host.machine, *host.bottom, d));
  if (at_bottom || bubble.members == 0 || bubble.members + bubble.ghosts == 1) return {};
  return {Verdict::Action::kDistribute, kNone};
}

/// Null: the verdict can be carried out. The engine looks again; this is so that it is said.
const char* nonsense_in(const Host& host, const FoundBubble& bubble,
                        const bosk_policy_verdict& verdict) {
  switch (verdict.action) {
    case BOSK_POLICY_BURST:
    case BOSK_POLICY_WAIT:
      return nullptr;
    case BOSK_POLICY_DESCEND: {
      if (verdict.target >= host.machine->n_domains) return "down to a domain that does not exist";
      const Domain& to = host.machine->domain_array[verdict.target];
      const bool on_the_way =
          to.depth > host.machine->domain_array[bubble.domain].depth && to.contains_pu(bubble.pu);
      return on_the_way ? nullptr : "down to a domain that is not on the worker's way";
    }
    case BOSK_POLICY_TAKE_GHOST:
      return bubble.ghosts != 0 ? nullptr : "ghosts of a bubble that has none";
    case BOSK_POLICY_DISTRIBUTE:
      return host.plugin->table.submit != nullptr ? nullptr : "to distribute, without a submit";
    case BOSK_POLICY_KEEP:
      return host.engine->has_holder(verdict.target) ? nullptr : "a holder that does not exist";
    default:
      return "a verdict that does not exist";
  }
}

Verdict found(void* state, const FoundBubble& bubble) {
  const Host& host = host_of(state);
  const bosk_policy_found seen = found_for(bubble);
  const bosk_policy_verdict verdict = host.plugin->table.found(host.state, &seen);
  if (const char* wrong = nonsense_in(host, bubble, verdict)) {
    say_nonsense(*host.plugin, wrong, "its bubbles burst where they are");
    return {};
  }
  const auto action = static_cast<Verdict::Action>(verdict.action);
  return {action, action == Verdict::Action::kBurst ? kNone : verdict.target};
}
static_assert(BOSK_POLICY_BURST == static_cast<int>(Verdict::Action::kBurst));
static_assert(BOSK_POLICY_DESCEND == static_cast<int>(Verdict::Action::kDescend));
static_assert(BOSK_POLICY_TAKE_GHOST == static_cast<int>(Verdict::Action::kTakeGhost));
static_assert(BOSK_POLICY_DISTRIBUTE == static_cast<int>(Verdict::Action::kDistribute));
static_assert(BOSK_POLICY_WAIT == static_cast<int>(Verdict::Action::kWait));
static_assert(BOSK_POLICY_KEEP == static_cast<int>(Verdict::Action::kKeep));

bool idle(void* state, uint32_t pu) {
  const Host& host = host_of(state);
  return host.plugin->table.idle(host.state, pu) != 0;
}

TickAnswer tick(void* state, const FoundBubble& bubble) {
  const Host& host = host_of(state);
  const bosk_policy_found seen = found_for(bubble);
  return host.plugin->table.tick(host.state, &seen) != 0 ? TickAnswer::kRegenerate
                                                         : TickAnswer::kKeep;
}

void hint(void* state, EntityToken entity, uint64_t old_load, uint64_t new_load) {
  const Host& host = host_of(state);
  host.plugin->table.hint(host.state, static_cast<bosk_policy_entity>(entity), old_load, new_load);
}

void done(void* state, EntityToken entity, uint32_t domain, uint64_t load) {
  const Host& host = host_of(state);
  host.plugin->table.done(host.state, static_cast<bosk_policy_entity>(entity), domain, load);
}

bool steal(void* state, uint32_t pu, StealRule* rule) {
  const Host& host = host_of(state);
  bosk_policy_steal_rule given{sizeof given, rule->to_pu ? 1u : 0u, rule->enough};
  if (host.plugin->table.steal(host.state, pu, &given) == 0) return false;
  *rule = {given.enough, given.to_pu != 0};
  return true;
}

void forked(void* state) {
  Host& host = host_of(state);
  new (&host.scratch) ScratchPool<PluginScratch>;
  if (host.plugin->table.forked != nullptr) host.plugin->table.forked(host.state);
}

}  // namespace

void make_plugin_ops(Plugin* plugin) {
  const bosk_policy& table = plugin->table;
  PolicyOps& ops = plugin->ops;
  ops = {};
  ops.name = table.name;
  ops.summary = table.summary;
  ops.start = start;
  ops.stop = stop;
  if (table.submit != nullptr) ops.submit = submit;
  if (table.submit_team != nullptr) ops.submit_team = submit_team;
  if (table.found != nullptr)
    ops.found = found;
  else if (table.submit != nullptr)
    ops.found = found_by_default;
  if (table.idle != nullptr) ops.idle = idle;
  if (table.tick != nullptr) ops.tick = tick;
  if (table.hint != nullptr) ops.hint = hint;
  if (table.done != nullptr) ops.done = done;
  if (table.steal != nullptr) ops.steal = steal;
  ops.forked = forked;
}

bool check_plugin(const PolicyOps& ops, const PolicyStart& start, topology::Error* error) {
  Plugin& plugin = plugin_of(ops);
  if (plugin.table.check == nullptr) {
    return start.argument[0] == '\0' ||
           error->set("the policy %s takes no argument (\"%.40s\" was given)", plugin.table.name,
                      start.argument);
  }
  Host host{&plugin, nullptr, start.machine, start.bottom, nullptr, {}};
  char why[300] = "";
  const bosk_policy_start given = start_for(start, &host);
  if (plugin.table.check(&given, why, sizeof why) != 0) return true;
  return refused(plugin, why, "it refuses its argument and does not say why", error);
}

}  // namespace bosk::policies
