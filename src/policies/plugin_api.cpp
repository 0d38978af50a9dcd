// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What plug-ins may call. Whatever number they give, it is looked at first: they come from elsewhere.
#include <string.h>

#include "context/thread_block.h"
#include "policies/engine.h"
#include "policies/plugin.h"

namespace bosk::policies {
namespace {

using topology::Domain;
using topology::Kind;
using topology::Level;
using Host = bosk_policy_host;
using Work = bosk_policy_work;
using Homes = bosk_policy_homes;

/// In hooks preemption is off already; a thread of the plug-in that also opens parallel regions could
/// otherwise be switched out with a queue's lock in its hands.
class Unpreempted {
 public:
  Unpreempted() { context::preempt_disable(); }
  ~Unpreempted() { context::preempt_enable(); }
  Unpreempted(const Unpreempted&) = delete;
  Unpreempted& operator=(const Unpreempted&) = delete;
};

/// Null: there is no such domain.
const Domain* domain_at(const Host* host, uint32_t id) {
  return id < host->machine->n_domains ? &host->machine->domain_array[id] : nullptr;
}
const Level* level_at(const Host* host, uint32_t number) {
  return number < host->machine->n_levels ? &host->machine->level_array[number] : nullptr;
}
const EntityView* view_at(const Work* work, uint32_t entity) {
  const WorkView& view = work->submission->work;
  return entity < view.count ? &view.entities[entity] : nullptr;
}

// ---- machine

uint32_t n_domains(Host* host) { return host->machine->n_domains; }
uint32_t n_pus(Host* host) { return host->machine->n_pus; }
uint32_t n_nodes(Host* host) { return host->machine->n_nodes; }

uint32_t kind(Host* host, uint32_t domain) {
  const Domain* d = domain_at(host, domain);
  return d != nullptr ? static_cast<uint32_t>(d->kind) : kNone;
}
static_assert(BOSK_POLICY_MACHINE == static_cast<int>(Kind::kMachine));
static_assert(BOSK_POLICY_PACKAGE == static_cast<int>(Kind::kPackage));
static_assert(BOSK_POLICY_NODE == static_cast<int>(Kind::kNode));
static_assert(BOSK_POLICY_DIE == static_cast<int>(Kind::kDie));
static_assert(BOSK_POLICY_L3 == static_cast<int>(Kind::kL3));
static_assert(BOSK_POLICY_L2 == static_cast<int>(Kind::kL2));
static_assert(BOSK_POLICY_CORE == static_cast<int>(Kind::kCore));
static_assert(BOSK_POLICY_PU == static_cast<int>(Kind::kPu));
static_assert(BOSK_POLICY_GROUP == static_cast<int>(Kind::kGroup));

uint32_t depth(Host* host, uint32_t domain) {
  const Domain* d = domain_at(host, domain);
  return d != nullptr ? d->depth : kNone;
}
uint32_t parent(Host* host, uint32_t domain) {
  const Domain* d = domain_at(host, domain);
  return d != nullptr && d->parent != nullptr ? d->parent->id : kNone;
}
uint32_t n_children(Host* host, uint32_t domain) {
  const Domain* d = domain_at(host, domain);
  return d != nullptr ? d->n_children : 0;
}
uint32_t child(Host* host, uint32_t domain, uint32_t index) {
  const Domain* d = domain_at(host, domain);
  return d != nullptr && index < d->n_children ? d->first_child[index].id : kNone;
}
uint32_t first_pu(Host* host, uint32_t domain) {
  const Domain* d = domain_at(host, domain);
  return d != nullptr ? d->first_pu : kNone;
}
uint32_t pus_below(Host* host, uint32_t domain) {
  const Domain* d = domain_at(host, domain);
  return d != nullptr ? d->n_pus() : 0;
}
uint32_t domain_of_pu(Host* host, uint32_t pu) {
  return pu < host->machine->n_pus ? host->machine->pu(pu).id : kNone;
}
uint32_t node_of_pu(Host* host, uint32_t pu) {
  return pu < host->machine->n_pus ? host->machine->node_of_pu(pu) : kNone;
}
uint32_t node_distance(Host* host, uint32_t from, uint32_t to) {
  const uint32_t nodes = host->machine->n_nodes;
  return from < nodes && to < nodes ? host->machine->node_distance(from, to) : kNone;
}
uint32_t common(Host* host, uint32_t domain, uint32_t other) {
  const Domain* a = domain_at(host, domain);
  const Domain* b = domain_at(host, other);
  return a != nullptr && b != nullptr ? host->machine->common_ancestor(*a, *b).id : kNone;
}
uint32_t find_level(Host* host, const char* word) {
  const Level* level = word != nullptr ? host->machine->find_level(word, nullptr) : nullptr;
  return level != nullptr ? static_cast<uint32_t>(level - host->machine->level_array) : kNone;
}
uint32_t level_size(Host* host, uint32_t level) {
  const Level* l = level_at(host, level);
  return l != nullptr ? l->n_domains : 0;
}
uint32_t level_domain(Host* host, uint32_t level, uint32_t index) {
  const Level* l = level_at(host, level);
  return l != nullptr && index < l->n_domains ? l->domains[index] : kNone;
}
uint32_t level_domain_of_pu(Host* host, uint32_t level, uint32_t pu) {
  const Level* l = level_at(host, level);
  return l != nullptr && pu < host->machine->n_pus ? l->of_pu[pu] : kNone;
}
uint64_t booked(Host* host, uint32_t domain) {
  if (host->engine == nullptr || domain_at(host, domain) == nullptr) return 0;
  return host->engine->booked(domain);
}

// ---- work

uint32_t count(const Work* work) { return work->submission->work.count; }
uint32_t roots(const Work* work) { return work->submission->work.n_roots; }
uint32_t entity_kind(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? static_cast<uint32_t>(e->kind) : kNone;
}
static_assert(BOSK_POLICY_THREAD == static_cast<int>(sched::EntityKind::kThread));
static_assert(BOSK_POLICY_BUBBLE == static_cast<int>(sched::EntityKind::kBubble));

uint32_t parent_of(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? e->parent : kNone;
}
uint32_t children_of(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? e->n_children : 0;
}
uint32_t child_of(const Work* work, uint32_t entity, uint32_t index) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr && index < e->n_children ? e->first_child + index : kNone;
}
uint32_t ghosts_of(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? e->ghosts : 0;
}
uint32_t pieces_of(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? e->pieces : 0;
}
int32_t priority_of(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? e->priority : 0;
}
uint64_t load_of_entity(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? e->load : 0;
}
uint64_t content_of(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? e->content : 0;
}
uint32_t last_domain_of(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? e->last_domain : kNone;
}
uint64_t footprint_of(const Work* work, uint32_t entity, uint32_t node) {
  const EntityView* e = view_at(work, entity);
  if (e == nullptr || e->footprint == nullptr || node >= work->host->machine->n_nodes)
    return BOSK_POLICY_UNKNOWN;
  return e->footprint[node].load(std::memory_order_relaxed);
}
bosk_policy_entity token_of(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? static_cast<bosk_policy_entity>(e->token) : nullptr;
}

uint32_t relation_of(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? static_cast<uint32_t>(e->relation) : kNone;
}
using sched::Relation;
static_assert(BOSK_POLICY_RELATION_NONE == static_cast<int>(Relation::kNone));
static_assert(BOSK_POLICY_RELATION_DATA_SHARING == static_cast<int>(Relation::kDataSharing));
static_assert(BOSK_POLICY_RELATION_COLLECTIVE == static_cast<int>(Relation::kCollective));
static_assert(BOSK_POLICY_RELATION_SMT_SYMBIOSIS == static_cast<int>(Relation::kSmtSymbiosis));
static_assert(BOSK_POLICY_RELATION_GANG == static_cast<int>(Relation::kGang));
static_assert(BOSK_POLICY_RELATION_SEQUENCE == static_cast<int>(Relation::kSequence));
static_assert(BOSK_POLICY_RELATION_MEMORY_BESIDE_COMPUTE ==
              static_cast<int>(Relation::kMemoryBesideCompute));
uint32_t width_of(const Work* work, uint32_t entity) {
  const EntityView* e = view_at(work, entity);
  return e != nullptr ? e->width : 0;
}

// What is placed is looked at as a whole when submit() has returned.
int place(Work* work, uint32_t entity, uint32_t domain) {
  // Not a number that happens to mean a holder.
  const uint32_t to = domain < work->host->machine->n_domains ? domain : kNone;
  return work->answer->add({entity, 0, 0, to}) ? 1 : 0;
}
int place_in_holder(Work* work, uint32_t entity, uint32_t holder) {
  return work->answer->add({entity, 0, 0, is_holder(holder) ? holder : kNone}) ? 1 : 0;
}

void* memory(Work* work, size_t bytes) {
  if (work->scratch == nullptr) {
    work->scratch = work->host->scratch.take();
    if (work->scratch == nullptr) return nullptr;
    work->scratch->words.clear();
  }
  base::MappedArray<uint64_t>& words = work->scratch->words;
  const size_t needed = bytes / sizeof(uint64_t) + 1;
  if (needed > UINT32_MAX ||
      (needed > words.size() && !words.resize(static_cast<uint32_t>(needed))))
    return nullptr;
  return words.data();
}

// ---- homes

/// False: there is no such domain, which submit_team() then says.
bool is_home(Homes* homes, uint32_t domain) {
  if (domain_at(homes->host, domain) != nullptr) return true;
  homes->wrong = "a home on a domain that does not exist";
  return false;
}

void home_together(Homes* homes, uint32_t domain) {
  if (!is_home(homes, domain)) return;
  homes->listed = false;
  homes->answer->set_together(*homes->host->machine, domain, homes->shape->members);
}
void home_even(Homes* homes, uint32_t domain) {
  if (!is_home(homes, domain)) return;
  homes->listed = false;
  homes->answer->set_even(*homes->host->machine, domain, homes->host->bottom,
                          homes->shape->opener_pu, homes->shape->members);
}
void home_next(Homes* homes, uint32_t count, uint32_t domain) {
  if (!is_home(homes, domain) || count == 0) return;
  if (!homes->listed) {
    homes->answer->set_ranges(*homes->host->machine, homes->shape->members);
    homes->named = 0;
  }
  homes->listed = true;
  if (count > homes->shape->members - homes->named) {
    homes->wrong = "homes for more members than a team has";
    return;
  }
  homes->named += count;
  if (!homes->answer->append(count, domain)) homes->wrong = "more homes than there is memory for";
}

void home_as_gang(Homes* homes, uint32_t ticks) { homes->gang_ticks = ticks; }

// ---- holders

uint32_t make_holder(Host* host) {
  if (host->engine == nullptr) return kNone;
  const Unpreempted here;
  return host->engine->make_holder();
}
uint32_t held(Host* host, uint32_t holder) {
  if (host->engine == nullptr) return 0;
  const Unpreempted here;
  return host->engine->held(holder);
}
uint32_t release(Host* host, uint32_t holder, uint32_t most, uint32_t domain) {
  if (host->engine == nullptr) return 0;
  const Unpreempted here;
  return host->engine->release_held(holder, most, domain);
}
uint32_t release_entity(Host* host, uint32_t holder, bosk_policy_entity entity, uint32_t domain) {
  if (host->engine == nullptr || entity == nullptr) return 0;
  const Unpreempted here;
  return host->engine->release_held(holder, 1, domain, entity);
}

uint32_t redistribute(Host* host, uint32_t domain) {
  if (host->engine == nullptr || domain_at(host, domain) == nullptr) return 0;
  const Unpreempted here;
  return host->engine->redistribute(domain);
}

}  // namespace

constinit const bosk_policy_api kPluginApi = {
    .size = sizeof(bosk_policy_api),
    .n_domains = n_domains,
    .n_pus = n_pus,
    .n_nodes = n_nodes,
    .kind = kind,
    .depth = depth,
    .parent = parent,
    .n_children = n_children,
    .child = child,
    .first_pu = first_pu,
    .pus_below = pus_below,
    .domain_of_pu = domain_of_pu,
    .node_of_pu = node_of_pu,
    .node_distance = node_distance,
    .common = common,
    .find_level = find_level,
    .level_size = level_size,
    .level_domain = level_domain,
    .level_domain_of_pu = level_domain_of_pu,
    .booked = booked,
    .count = count,
    .roots = roots,
    .entity_kind = entity_kind,
    .parent_of = parent_of,
    .children_of = children_of,
    .child_of = child_of,
    .ghosts_of = ghosts_of,
    .pieces_of = pieces_of,
    .priority_of = priority_of,
    .load_of = load_of_entity,
    .content_of = content_of,
    .last_domain_of = last_domain_of,
    .footprint_of = footprint_of,
    .token_of = token_of,
    .relation_of = relation_of,
    .width_of = width_of,
    .place = place,
    .place_in_holder = place_in_holder,
    .memory = memory,
    .home_together = home_together,
    .home_even = home_even,
    .home_next = home_next,
    .make_holder = make_holder,
    .held = held,
    .release = release,
    .release_entity = release_entity,
    .redistribute = redistribute,
    .home_as_gang = home_as_gang,
};

}  // namespace bosk::policies
