// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queries of the machine.
#include "threads/machine_queries.h"

#include <bosk/error.h>
#include <sched.h>
#include <strings.h>

#include <atomic>

#include "base/cpu.h"
#include "context/thread_block.h"
#include "omp/machine_aside.h"
#include "sched/scheduler.h"

namespace bosk::threads {
namespace {

using topology::Domain;
using topology::kNone;
using topology::Level;
using topology::Machine;

bool is_pu(const Machine& machine, int pu) {
  return pu >= 0 && static_cast<uint32_t>(pu) < machine.n_pus;
}
bool is_node(const Machine& machine, int node) {
  return node >= 0 && static_cast<uint32_t>(node) < machine.n_nodes;
}

const Level* level_at(const Machine& machine, int level) {
  return level >= 0 && static_cast<uint32_t>(level) < machine.n_levels ? machine.level_array + level
                                                                       : nullptr;
}

/// Null: there is none.
const Domain* domain_at(const Machine& machine, int level, int domain) {
  const Level* l = level_at(machine, level);
  if (l == nullptr || domain < 0 || static_cast<uint32_t>(domain) >= l->n_domains) return nullptr;
  return machine.domain_array + l->domains[domain];
}

int optional(uint32_t number) {
  return number == kNone ? static_cast<int>(BOSK_ENOENT) : static_cast<int>(number);
}

constinit std::atomic<const Machine*> the_machine{nullptr};

}  // namespace

const Machine* machine_of_process() {
  // acquire: it is complete when it is seen.
  const Machine* machine = the_machine.load(std::memory_order_acquire);
  if (BOSK_LIKELY(machine != nullptr)) return machine;
  machine = omp::read_machine_aside();
  // Two that come first get the same one.
  if (machine != nullptr) the_machine.store(machine, std::memory_order_release);
  return machine;
}

int level_by_name(const Machine& machine, const char* name) {
  if (name == nullptr) return BOSK_EINVAL;
  const bool last_cache = strcasecmp(name, "llc") == 0;
  const Level* level = last_cache ? &machine.cache_level() : machine.find_level(name, nullptr);
  return level == nullptr ? static_cast<int>(BOSK_ENOENT)
                          : static_cast<int>(level - machine.level_array);
}

const char* name_of_level(const Machine& machine, int level) {
  const Level* l = level_at(machine, level);
  return l == nullptr ? nullptr : topology::kind_name(l->kind);
}

int domains_of_level(const Machine& machine, int level) {
  const Level* l = level_at(machine, level);
  return l == nullptr ? static_cast<int>(BOSK_EINVAL) : static_cast<int>(l->n_domains);
}

int domain_of_pu(const Machine& machine, int level, int pu) {
  const Level* l = level_at(machine, level);
  if (l == nullptr || !is_pu(machine, pu)) return BOSK_EINVAL;
  // A level is a partition in PU order: the last domain that does not begin behind the PU.
  uint32_t low = 0;
  uint32_t high = l->n_domains;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (machine.domain_array[l->domains[middle]].first_pu <= static_cast<uint32_t>(pu))
      low = middle;
    else
      high = middle;
  }
  return static_cast<int>(low);
}

int pus_in_domain(const Machine& machine, int level, int domain) {
  const Domain* d = domain_at(machine, level, domain);
  return d == nullptr ? static_cast<int>(BOSK_EINVAL) : static_cast<int>(d->n_pus());
}

int first_pu_of_domain(const Machine& machine, int level, int domain) {
  const Domain* d = domain_at(machine, level, domain);
  return d == nullptr ? static_cast<int>(BOSK_EINVAL) : static_cast<int>(d->first_pu);
}

int os_number(const Machine& machine, int level, int domain) {
  const Domain* d = domain_at(machine, level, domain);
  if (d == nullptr) return BOSK_EINVAL;
  const topology::Kind kind = machine.level_array[level].kind;
  // A domain keeps the number of the kind that it is named by. A node's is known wherever it is attached.
  if (kind == topology::Kind::kNode)
    return optional(machine.nodes()[machine.node_of_pu(d->first_pu)].os_index);
  return d->kind == kind ? optional(d->os_index) : static_cast<int>(BOSK_ENOENT);
}

int pu_of_cpu(const Machine& machine, int cpu) {
  return cpu < 0 ? static_cast<int>(BOSK_EINVAL)
                 : optional(machine.pu_of_os(static_cast<uint32_t>(cpu)));
}

int pu_distance(const Machine& machine, int pu, int other) {
  if (!is_pu(machine, pu) || !is_pu(machine, other)) return BOSK_EINVAL;
  return static_cast<int>(
      machine.distance(static_cast<uint32_t>(pu), static_cast<uint32_t>(other)));
}

int shared_level(const Machine& machine, int pu, int other) {
  if (!is_pu(machine, pu) || !is_pu(machine, other)) return BOSK_EINVAL;
  // The outermost level is the machine, so there is one.
  uint32_t level = machine.n_levels - 1;
  while (machine.level_array[level].of_pu[pu] != machine.level_array[level].of_pu[other]) --level;
  return static_cast<int>(level);
}

int neighbours(const Machine& machine, int pu, int* pus, int count) {
  if (!is_pu(machine, pu) || pus == nullptr || count < 0) return BOSK_EINVAL;
  int found = 0;
  const auto add = [&](uint32_t first, uint32_t end) {
    for (uint32_t at = first; at < end && found < count; ++at) pus[found++] = static_cast<int>(at);
  };
  const Domain* inner = &machine.pu(static_cast<uint32_t>(pu));
  add(inner->first_pu, inner->first_pu + 1);
  for (const Domain* outer = inner->parent; outer != nullptr;
       inner = outer, outer = outer->parent) {
    add(outer->first_pu, inner->first_pu);
    add(inner->last_pu + 1, outer->last_pu + 1);
  }
  return found;
}

int node_of(const Machine& machine, int pu) {
  return is_pu(machine, pu) ? static_cast<int>(machine.node_of_pu(static_cast<uint32_t>(pu)))
                            : static_cast<int>(BOSK_EINVAL);
}

int node_os_number(const Machine& machine, int node) {
  return is_node(machine, node) ? optional(machine.node_array[node].os_index)
                                : static_cast<int>(BOSK_EINVAL);
}

int node_distance(const Machine& machine, int from, int to) {
  if (!is_node(machine, from) || !is_node(machine, to)) return BOSK_EINVAL;
  return static_cast<int>(
      machine.node_distance(static_cast<uint32_t>(from), static_cast<uint32_t>(to)));
}

int64_t node_bytes(const Machine& machine, int node) {
  if (!is_node(machine, node)) return BOSK_EINVAL;
  const uint64_t bytes = machine.node_array[node].bytes;
  return bytes == topology::kUnknownBytes ? static_cast<int64_t>(BOSK_ENOENT)
                                          : static_cast<int64_t>(bytes);
}

int pu_of_caller(const Machine& machine) {
  const sched::Thread* me = context::self();
  // A pthread that the scheduler has met, but whose pool has no other worker, is where it is.
  if (me != nullptr && me->pool->worker_count.load(std::memory_order_relaxed) > 1) {
    context::preempt_disable();
    const sched::Worker* w = me->worker;
    const uint32_t index = w != nullptr ? w->index : me->last_worker->index;
    context::preempt_enable();
    return static_cast<int>(sched::pu_of(me->pool, machine, index));
  }
  const int cpu = machine.this_system ? sched_getcpu() : -1;
  return cpu < 0 ? static_cast<int>(BOSK_ENOENT) : pu_of_cpu(machine, cpu);
}

}  // namespace bosk::threads
