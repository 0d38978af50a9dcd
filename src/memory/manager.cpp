// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The process's table of areas, and what a fork does to it.
#include "memory/manager.h"

#include <pthread.h>

#include <new>

#include "base/fork_order.h"
#include "base/observer_messages.h"
#include "base/pages.h"
#include "base/sleeping_lock.h"
#include "memory/heaps.h"
#include "memory/nodes.h"

namespace bosk::memory {
namespace {

constinit std::atomic<AreaTable*> the_areas{nullptr};
/// Taken by who makes the table, and by forks: so it is there for all of a fork, or for nothing of it.
constinit base::SleepingLock making;

// The child has one thread, and books that nobody was writing to.
void before_fork() {
  making.lock();
  if (AreaTable* table = areas()) {
    table->lock_for_fork();
    lock_heaps_for_fork();
  }
}
void after_fork() {
  if (AreaTable* table = areas()) {
    unlock_heaps_after_fork();
    table->unlock_after_fork();
  }
  making.unlock();
}
[[gnu::constructor(base::kForksOfMemory)]] void hold_forks() {
  pthread_atfork(before_fork, after_fork, after_fork);
}

/// Null: no memory.
AreaTable* make(const topology::Machine& machine) {
  void* memory = base::map_pages(sizeof(AreaTable));
  if (memory == nullptr) return nullptr;
  auto* made = new (memory) AreaTable;
  // What migrates pages translates by it.
  if (use_machine(machine) && made->prepare(machine)) return made;
  base::unmap_pages(memory, sizeof(AreaTable));
  return nullptr;
}

}  // namespace

AreaTable* areas() {
  // acquire: it is prepared when it is seen.
  return the_areas.load(std::memory_order_acquire);
}

AreaTable* start(const topology::Machine& machine) {
  if (AreaTable* table = areas()) return table;
  making.lock();
  AreaTable* table = the_areas.load(std::memory_order_relaxed);
  if (table == nullptr) {
    // Two that move the same memory would fight.
    base::release_memory_from_observer();
    table = make(machine);
    the_areas.store(table, std::memory_order_release);
  }
  making.unlock();
  return table;
}

}  // namespace bosk::memory
