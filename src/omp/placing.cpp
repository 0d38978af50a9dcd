// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decides once per process whether placing teams makes a difference, and starts what places them.
#include "omp/placing.h"

#include <stdio.h>

#include <new>

#include "base/mapped_array.h"
#include "base/message.h"
#include "base/publish_once.h"
#include "base/settings.h"
#include "omp/environment.h"
#include "omp/machine_aside.h"
#include "omp/several_domains.h"
#include "policies/plugin.h"
#include "sched/configuration.h"
#include "topology/source.h"

namespace bosk::omp {
namespace {

using topology::Machine;

constinit Placing not_placed;
constinit base::PublishOnce<Placing> the_placing;
constinit std::atomic<uint64_t> answers{0};

/// Does any of the policies care who is near?
bool any_by_distance(const policies::PolicyPlan& plan) {
  for (uint32_t i = 0; i < plan.count; ++i)
    if (plan.policy[i].ops->nearest_first) return true;
  return false;
}

bool is_default(const policies::PolicyPlan& plan) {
  return plan.count == 1 && plan.policy[0].ops == &policies::default_policy() &&
         !plan.policy[0].level_given && plan.policy[0].argument[0] == '\0';
}

/// How the report calls the plan, and the level that it shows.
void describe(const policies::PolicyPlan& plan, Placing* placing) {
  size_t at = 0;
  for (uint32_t i = 0; i < plan.count && at < sizeof placing->policy; ++i) {
    const policies::PlannedPolicy& p = plan.policy[i];
    const bool argument = p.argument[0] != '\0';
    at += static_cast<size_t>(snprintf(placing->policy + at, sizeof placing->policy - at,
                                       "%s%s%s%s%s%s", i == 0 ? "" : ",", p.ops->name,
                                       argument ? ":" : "", p.argument, p.level_given ? "@" : "",
                                       p.level_given ? kind_name(p.level->kind) : ""));
    const topology::Level* named = placing->machine->find_level(p.argument, nullptr);
    for (const topology::Level* level : {p.level_given ? p.level : nullptr, named})
      if (level != nullptr && (placing->level == nullptr || placing->level < level))
        placing->level = level;
  }
}

/// Null: teams are not placed.
Placing* make_placing(const Machine* machine) {
  if (machine == nullptr) return nullptr;
  policies::PolicyPlan plan = policies::plan_from_settings(*machine);
  if (machine->n_pus == 1 || (is_default(plan) && !has_several_domains(*machine))) return nullptr;
  void* memory = base::map_pages(sizeof(Placing));
  if (memory == nullptr) return nullptr;
  auto* made = new (memory) Placing;
  made->machine = machine;
  // Whoever waits for a ghost of a busy worker relies on its ticks.
  made->keep_reach = sched::configuration().preempt_period_us != 0;
  topology::Error error;
  if (!made->queues.build(*machine)) {
    base::unmap_pages(memory, sizeof(Placing));
    return nullptr;
  }
  bool started = made->engine.start(made->queues, plan, {}, &error);
  if (!started && !is_default(plan)) {
    plan = policies::default_plan(*machine);
    policies::say_refused(error);
    started = made->engine.start(made->queues, plan, {}, &error);
  }
  if (!started) {
    base::say("teams are not placed: %s", error.text);
    made->queues.release();
    base::unmap_pages(memory, sizeof(Placing));
    return nullptr;
  }
  made->nearest_first = any_by_distance(plan);
  describe(plan, made);
  return made;
}

void release(Placing* placing) {
  placing->engine.stop();
  placing->queues.release();
  base::unmap_pages(placing, sizeof(Placing));
}

/// Several may come here at once: all look, one answer stays.
const Placing& publish(const Machine* machine) {
  Placing* made = make_placing(machine);
  if (!the_placing.publish(made != nullptr ? made : &not_placed) && made != nullptr) release(made);
  return *the_placing.get();
}

}  // namespace

const Placing* known_placing() { return the_placing.get(); }

const Placing& find_placing() {
  if (const Placing* known = the_placing.get()) return *known;
  const base::Settings& settings = base::settings();
  const bool invented = settings.topology_xml != nullptr || settings.synthetic != nullptr;
  return publish(invented || may_have_several_domains() ? read_machine_aside() : nullptr);
}

uint64_t count_placed() { return answers.fetch_add(1, std::memory_order_relaxed) + 1; }

void prepare_placing() {
  if (base::settings().policy.count == 0 || the_placing.get() != nullptr) return;
  publish(topology::process_machine(process_icvs().cpus));
}

ByDistance known_distances() {
  const Placing* placing = the_placing.get();
  if (placing == nullptr) return {};
  return {true, placing->nearest_first ? placing->machine : nullptr};
}

const topology::Machine* find_distances() {
  find_placing();
  return known_distances().machine;
}

void placing_forget_after_fork() {
  policies::plugins_forget_after_fork();
  const Placing* placing = the_placing.get();
  // What is published is constant but for the engine's own state, and nobody else is left.
  if (placing != nullptr && placing->machine != nullptr)
    const_cast<Placing*>(placing)->engine.forget_after_fork();
}

PlacedBy placed_by() {
  const Placing* placing = the_placing.get();
  if (placing == nullptr || placing->machine == nullptr) return {};
  return {placing->policy, placing->level, answers.load(std::memory_order_relaxed)};
}

bool placed_by_memory() {
  const Placing* placing = the_placing.get();
  return placing != nullptr && placing->machine != nullptr && placing->engine.minds_memory();
}

}  // namespace bosk::omp
