// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The process's table of areas, and what a fork does to it.
#include "memory/manager.h"

#include <pthread.h>

#include <new>

#include "base/pages.h"
#include "memory/heaps.h"
#include "memory/nodes.h"

namespace bosk::memory {
namespace {

constinit std::atomic<AreaTable*> the_areas{nullptr};

void before_fork() {
  areas()->lock_for_fork();
  lock_heaps_for_fork();
}
void after_fork() {
  unlock_heaps_after_fork();
  areas()->unlock_after_fork();
}

}  // namespace

AreaTable* areas() {
  // acquire: it is prepared when it is seen.
  return the_areas.load(std::memory_order_acquire);
}

AreaTable* start(const topology::Machine& machine) {
  if (AreaTable* table = areas()) return table;
  void* memory = base::map_pages(sizeof(AreaTable));
  if (memory == nullptr) return nullptr;
  auto* made = new (memory) AreaTable;
  // What migrates pages translates by it.
  if (!use_machine(machine) || !made->prepare(machine)) {
    base::unmap_pages(memory, sizeof(AreaTable));
    return nullptr;
  }
  AreaTable* none = nullptr;
  if (!the_areas.compare_exchange_strong(none, made, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
    base::unmap_pages(memory, sizeof(AreaTable));
    return none;
  }
  // The child has one thread, and books that nobody was writing to.
  pthread_atfork(before_fork, after_fork, after_fork);
  return made;
}

}  // namespace bosk::memory
