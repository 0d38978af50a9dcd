// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A set of addresses: a hash table of chains that doubles. Nothing is allocated under its lock.
#include "omp/allocated_blocks.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "omp/task_queue_guard.h"

namespace bosk::omp {
namespace {

struct Entry {
  void* block;
  Entry* next;
};

struct Set {
  base::SpinLock lock;
  Entry** chains = nullptr;
  size_t chain_count = 0;  ///< a power of two
  size_t size = 0;
};
constinit Set set;

[[noreturn]] void no_memory(size_t bytes) {
  base::gomp_fatal("Out of memory allocating %zu bytes", bytes);
}

Entry** chain_of(Entry** chains, size_t count, const void* block) {
  // Blocks are 16 bytes apart; the multiplication brings every other bit to the top.
  const uint64_t mixed = (reinterpret_cast<uintptr_t>(block) >> 4) * 0x9e3779b97f4a7c15u;
  return &chains[(mixed >> 32) & (count - 1)];
}

/// Under the lock.
void move_to(Entry** chains, size_t count) {
  for (size_t i = 0; i < set.chain_count; ++i) {
    for (Entry* entry = set.chains[i]; entry != nullptr;) {
      Entry* next = entry->next;
      Entry** chain = chain_of(chains, count, entry->block);
      entry->next = *chain;
      *chain = entry;
      entry = next;
    }
  }
  set.chains = chains;
  set.chain_count = count;
}

}  // namespace

void remember_block(void* block) {
  if (block == nullptr) return;
  auto* entry = static_cast<Entry*>(malloc(sizeof(Entry)));
  if (entry == nullptr) no_memory(sizeof(Entry));
  entry->block = block;
  constexpr size_t kFirst = 64;
  Entry** spare = nullptr;
  size_t spare_count = 0;
  for (;;) {
    Entry** outgrown = nullptr;
    bool done = false;
    size_t wanted;
    {
      QuietGuard guard(set.lock);
      if (spare != nullptr && spare_count > set.chain_count) {
        outgrown = set.chains;
        move_to(spare, spare_count);
        spare = nullptr;
      }
      wanted = set.chain_count == 0 ? kFirst : 2 * set.chain_count;
      if (set.size < set.chain_count) {
        Entry** chain = chain_of(set.chains, set.chain_count, block);
        entry->next = *chain;
        *chain = entry;
        ++set.size;
        done = true;
      }
    }
    free(outgrown);
    free(spare);
    if (done) return;
    spare_count = wanted;
    spare = static_cast<Entry**>(calloc(spare_count, sizeof(Entry*)));
    if (spare == nullptr) no_memory(spare_count * sizeof(Entry*));
  }
}

bool forget_block(void* block) {
  Entry* found = nullptr;
  {
    QuietGuard guard(set.lock);
    if (set.chain_count == 0) return false;
    Entry** at = chain_of(set.chains, set.chain_count, block);
    while (*at != nullptr && (*at)->block != block) at = &(*at)->next;
    found = *at;
    if (found != nullptr) {
      *at = found->next;
      --set.size;
    }
  }
  free(found);
  return found != nullptr;
}

void allocated_blocks_forget_after_fork() { new (&set.lock) base::SpinLock; }

}  // namespace bosk::omp
