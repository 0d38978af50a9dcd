// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Places nested teams; decides once per process whether that makes a difference.
#include "omp/team_home.h"

#include <stdio.h>

#include <new>

#include "base/mapped_array.h"
#include "base/message.h"
#include "base/publish_once.h"
#include "base/settings.h"
#include "omp/environment.h"
#include "omp/machine_aside.h"
#include "omp/places.h"
#include "omp/places_sysfs.h"
#include "omp/team.h"
#include "policies/engine.h"
#include "sched/configuration.h"
#include "sched/scheduler.h"
#include "topology/source.h"

namespace bosk::omp {
namespace {

using topology::Machine;

/// What places teams. The engine's queues are there because it wants them; OpenMP's threads are on
/// their workers' own.
struct Placing {
  const Machine* machine = nullptr;  ///< null: teams are not placed
  sched::DomainQueues queues;
  policies::PolicyEngine engine;
  bool keep_reach = false;  ///< together means: nobody else takes them
  const topology::Level* level = nullptr;
  char policy[policies::PolicyPlan::kMost * sizeof(base::PolicyClause)] = "";
};

constinit Placing not_placed;
constinit base::PublishOnce<Placing> known_placing;

/// Do some cores share what others do not? If not, all distances are equal but for siblings on a core.
bool has_several_domains(const Machine& machine) {
  const topology::Level& cores = *machine.level(topology::Kind::kCore);
  for (const topology::Domain& d : machine.domains())
    if (d.parent != nullptr && cores.of_pu[d.first_pu] != cores.of_pu[d.last_pu]) return true;
  return false;
}

/// The same of this machine without reading all of it: a dozen small files. May say yes where a closer
/// look says no.
bool may_have_several_domains() {
  const ProcessIcvs& process = process_icvs();
  if (process.available_cpus < 3) return false;
  const PlaceSource source = sysfs_place_source("/sys/devices/system");
  bool several = false;
  for (const PlaceKind kind : {PlaceKind::kLlCaches, PlaceKind::kNumaDomains}) {
    PlaceList places;
    several = several ||
              (source.list(source.self, kind, *process.cpus, 2, &places) && places.count() > 1);
    places.release();
  }
  return several;
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
  const policies::PolicyPlan plan = policies::plan_from_settings(*machine);
  if (machine->n_pus == 1 || (is_default(plan) && !has_several_domains(*machine))) return nullptr;
  void* memory = base::map_pages(sizeof(Placing));
  if (memory == nullptr) return nullptr;
  auto* made = new (memory) Placing;
  made->machine = machine;
  describe(plan, made);
  // Whoever waits for a ghost of a busy worker relies on its ticks.
  made->keep_reach = sched::configuration().preempt_period_us != 0;
  topology::Error error;
  if (!made->queues.build(*machine)) {
    base::unmap_pages(memory, sizeof(Placing));
    return nullptr;
  }
  if (!made->engine.start(made->queues, plan, {}, &error)) {
    base::say("teams are not placed: %s", error.text);
    made->queues.release();
    base::unmap_pages(memory, sizeof(Placing));
    return nullptr;
  }
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
  if (!known_placing.publish(made != nullptr ? made : &not_placed) && made != nullptr)
    release(made);
  return *known_placing.get();
}

const Placing& find_placing() {
  const base::Settings& settings = base::settings();
  const bool invented = settings.topology_xml != nullptr || settings.synthetic != nullptr;
  return publish(invented || may_have_several_domains() ? read_machine_aside() : nullptr);
}

/// The team whose member opened `team`, and which member that was; null: an initial thread. Teams of one
/// are at home where their opener is.
const Team* find_parent(const Team* team, uint32_t* index) {
  do {
    *index = team->opener_index;
    team = parent_team(team);
  } while (team != nullptr && team->size == 1);
  return team;
}

/// Members of the outermost team, if that is the parent, else 0. Level-1 members stay on the workers of
/// their number, which may lie outside of their homes: the policy then goes by where the opener is.
uint32_t size_if_outermost(const Team* parent) {
  if (parent == nullptr) return 1;
  return parent->native_count > 1 ? parent->size : 0;
}

/// Asks the policy, and keeps what its answer depends on.
void place(const Placing& placing, const Team* parent, uint32_t index, uint32_t pu, Team* team) {
  TeamHome& home = team->home_on_machine;
  home.outermost_size = size_if_outermost(parent);
  if (home.outermost_size != 0)
    placing.engine.place_team({home.outermost_size, nullptr, 0, 0}, &home.outer);
  else
    home.outer = parent->home_on_machine.placement;
  home.outer_index = index;
  home.opener_pu = pu;
  placing.engine.place_team({team->size, nullptr, home.outer.domain_of(index), pu},
                            &home.placement);
  team->next_home = home.placement.domain_of(1);
  uint64_t reach = sched::kReachAll;
  if (placing.keep_reach && home.placement.is_together()) {
    const topology::Domain& domain = placing.machine->domain_array[home.placement.scope()];
    reach = sched::reach_of(domain.first_pu, domain.last_pu);
  }
  // relaxed: thieves read it as a preference.
  team->reach.store(reach, std::memory_order_relaxed);
}

/// The team object was last used for a team that opened in the same way.
bool is_placed(const Team* team, const Team* parent, uint32_t index, uint32_t pu) {
  const TeamHome& home = team->home_on_machine;
  if (home.opener_pu != pu || home.outer_index != index || home.placement.members() != team->size)
    return false;
  const uint32_t outermost = size_if_outermost(parent);
  return home.outermost_size == outermost &&
         (outermost != 0 || home.outer.same_formula(parent->home_on_machine.placement));
}

}  // namespace

void prepare_placing() {
  if (base::settings().policy.count == 0 || known_placing.get() != nullptr) return;
  publish(topology::process_machine(process_icvs().cpus));
}

PlacedBy placed_by() {
  const Placing* placing = known_placing.get();
  if (placing == nullptr || placing->machine == nullptr) return {};
  return {placing->policy, placing->level};
}

sched::Worker* place_nested_team(sched::Thread* me, Team* team) {
  const Placing* placing = known_placing.get();
  if (BOSK_UNLIKELY(placing == nullptr)) {
    sched::leave(me);
    placing = &find_placing();
    team->home = sched::enter(me);
  }
  sched::Worker* w = me->worker;
  sched::Pool* pool = w->pool;
  if (placing->machine == nullptr || pool->worker_limit == 1) {
    pool->placing.store(0, std::memory_order_relaxed);
    return w;
  }
  const Machine& machine = *placing->machine;
  // release: who sees it sees a complete machine, also if another thread has just read it.
  if (BOSK_UNLIKELY(pool->machine.load(std::memory_order_relaxed) == nullptr))
    pool->machine.store(&machine, std::memory_order_release);
  const uint32_t pu = sched::pu_of_worker(machine, w->index);
  uint32_t index;
  const Team* parent = find_parent(team, &index);
  if (BOSK_UNLIKELY(!is_placed(team, parent, index, pu))) place(*placing, parent, index, pu, team);
  return w;
}

void place_outer_team(Team* team) {
  team->home_on_machine.opener_pu = topology::kNone;
  team->next_home = 0;
  team->reach.store(sched::kReachAll, std::memory_order_relaxed);
}

}  // namespace bosk::omp
