// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Helpers are light threads on the domain that the target node is attached to: whichever of its workers has nothing
// better to do takes one, and the kernel copies on that worker's CPU, beside the memory.
//
// Nothing waits for a worker to be free. Who asked for the migration works, too, and when it finds nothing left it
// closes the errand: helpers that come later find it closed and go. So it waits for those only that are at work, and these
// are in a system call, or at the end of one.
//
// Who owns what: the errand is the asker's until the helpers are made, then of all who hold it, and the last one unmaps
// it. `state` says how many helpers work, and whether it is closed. A helper comes in by a compare-exchange that fails
// once it is closed; it goes with a release, which the asker's acquire load of the closed state meets: what the
// helper did comes before the asker's return. `holders`: as any count of references.
#include "threads/migration_crew.h"

#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/pages.h"
#include "locality/service.h"
#include "sched/address_wait.h"
#include "threads/api.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

struct Errand {
  static constexpr uint32_t kClosed = 1u << 31;

  Errand(void (*its_work)(void*), void* its_context, uint32_t its_holders)
      : work(its_work), context(its_context), holders(its_holders) {}

  void help() {
    uint32_t seen = state.load(std::memory_order_relaxed);
    do {
      if ((seen & kClosed) != 0) return;
    } while (!state.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
    work(context);
    if (state.fetch_sub(1, std::memory_order_release) == (kClosed | 1))
      sched::wake(state, UINT32_MAX);
  }

  void close() {
    state.fetch_or(kClosed, std::memory_order_relaxed);
    for (uint32_t seen; (seen = state.load(std::memory_order_acquire)) != kClosed;)
      sched::wait_on(state, seen);
  }

  void let_go(uint32_t count) {
    if (holders.fetch_sub(count, std::memory_order_acq_rel) == count)
      base::unmap_pages(this, sizeof *this);
  }

  void (*const work)(void* context);
  void* const context;
  std::atomic<uint32_t> state{0};  // futex
  std::atomic<uint32_t> holders;
};

void* help(void* errand) {
  auto* mine = static_cast<Errand*>(errand);
  mine->help();
  mine->let_go(1);
  return nullptr;
}

/// Null: there are no workers to be had from here. A stranger makes none: of a program without threads of ours
/// they would stay for good.
Home* home_for(sched::Thread* me) {
  const bool is_mains = me->pool->initial->own->tid == getpid();
  int error = BOSK_OK;
  return home() != nullptr || is_mains ? settle(me, false, &error) : nullptr;
}

uint32_t helpers_for(const Home* h, const topology::Domain& domain, uint32_t most) {
  uint32_t there = std::min(domain.n_pus(), h->pool->worker_count.load(std::memory_order_acquire));
  if (worker_at(h) != nullptr && domain.contains_pu(pu_here(h))) --there;
  // The asker takes a part of its own.
  return std::min(there, most - 1);
}

void lend(void*, memory::NodeIndex node, uint32_t most, void (*work)(void*), void* context) {
  // In the midst of the scheduler nobody may make threads, or wait.
  if (most < 2 || locality::on_service() || context::thread_block()->preempt_off != 0)
    return work(context);
  sched::Thread* me = omp::current_thread();
  Home* h = home_for(me);
  if (h == nullptr || node >= h->machine->n_nodes) return work(context);
  const topology::Domain& domain = h->machine->domain_array[h->machine->node_array[node].domain];
  uint32_t helpers;
  {
    const Inside inside(me);
    helpers = helpers_for(h, domain, most);
  }
  void* memory = helpers != 0 ? base::map_pages(sizeof(Errand)) : nullptr;
  if (memory == nullptr) return work(context);
  auto* errand = new (memory) Errand(work, context, helpers + 1);
  uint32_t made = 0;
  while (made < helpers && create_helper("migration", domain.id, help, errand) == BOSK_OK) ++made;
  work(context);
  errand->close();
  errand->let_go(1 + helpers - made);
}

constexpr memory::Crew kCrew{lend, nullptr};

}  // namespace

const memory::Crew* migration_crew() { return &kCrew; }

}  // namespace bosk::threads
