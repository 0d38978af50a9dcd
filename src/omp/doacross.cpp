// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Doacross loops.
#include "omp/doacross.h"

#include <string.h>

#include <algorithm>
#include <bit>
#include <new>

#include "omp/brief_spin.h"
#include "omp/ordered_wait.h"
#include "omp/reduction.h"
#include "omp/workshare_chain.h"

namespace bosk::omp {
namespace {

/// How far ahead of the slowest chunk others may run, in chunks per member.
constexpr uint64_t kRunAhead = 4;

/// Looks before a member counts itself as waiting.
constexpr int kPolls = 16;

/// Whether all iterations of the nest can be numbered in 64 bits.
bool numbers_fit(uint32_t dimensions, const uint64_t* counts) {
  uint64_t total = counts[0];
  for (uint32_t i = 1; i < dimensions; ++i) {
    if (__builtin_mul_overflow(total, counts[i], &total)) return false;
  }
  return total != UINT64_MAX;
}

void build_slots(WorkShare& share, uint32_t dimensions, const uint64_t* counts) {
  const uint64_t chunks = share.handout == Handout::kBlock ? share.size : share.chunks;
  const uint64_t ring = std::bit_ceil(
      std::max<uint64_t>(share.size, std::min<uint64_t>(chunks, kRunAhead * share.size)));
  const bool fine = numbers_fit(dimensions, counts);
  const size_t slot_bytes = ring * sizeof(DoacrossSlot);
  auto* memory = static_cast<char*>(
      reserve(share.doacross_memory, slot_bytes + dimensions * sizeof(uint64_t)));
  share.slots = reinterpret_cast<DoacrossSlot*>(memory);
  for (uint64_t i = 0; i < ring; ++i) new (share.slots + i) DoacrossSlot{{i}, {0}, {0}, {0}};
  share.counts = fine ? reinterpret_cast<uint64_t*>(memory + slot_bytes) : nullptr;
  if (fine) memcpy(memory + slot_bytes, counts, dimensions * sizeof(uint64_t));
  share.slots_mask = static_cast<uint32_t>(ring - 1);
  share.dimensions = dimensions;
  share.doacross = true;
}

DoacrossSlot& slot_of(const WorkShare& share, uint64_t k) {
  return share.slots[k & share.slots_mask];
}

uint64_t number_of(const WorkShare& share, const uint64_t* vector) {
  uint64_t number = vector[0];
  for (uint32_t i = 1; i < share.dimensions; ++i) number = number * share.counts[i] + vector[i];
  return number;
}

/// What `progress` must reach before `vector` is known to be posted, and what a post of it sets. A
/// nest too large to be numbered counts whole iterations of the outermost dimension: a post then
/// tells only that the ones before are complete.
uint64_t progress_needed(const WorkShare& share, const uint64_t* vector) {
  return share.counts != nullptr ? number_of(share, vector) + 1 : vector[0] + 1;
}
uint64_t progress_posted(const WorkShare& share, const uint64_t* vector) {
  return share.counts != nullptr ? number_of(share, vector) + 1 : vector[0];
}

/// After a change of the slot by a sequentially consistent read-modify-write. Either this load sees a
/// waiting member, or that member, which counted itself first, sees the change: both are seq_cst.
void tell_waiters(Team* team, DoacrossSlot& slot) {
  if (BOSK_LIKELY(slot.waiters.load(std::memory_order_seq_cst) == 0)) return;
  slot.epoch.fetch_add(1, std::memory_order_seq_cst);
  signal_change(team, slot.epoch, UINT32_MAX);
}

template <typename Done>
void wait_at(Team* team, DoacrossSlot& slot, Done done) {
  // A wave front moves on quickly, and a poster that finds nobody counted saves the wake-up. Short,
  // because others may be ready on this worker.
  const int polls = spinning_can_help() ? kPolls : 1;
  for (int i = 0; i < polls; ++i) {
    if (done()) return;
    base::cpu_pause();
  }
  slot.waiters.fetch_add(1, std::memory_order_seq_cst);
  await_change(team, slot.epoch, done);
  // relaxed: only a count; a poster that sees it too high does some work in vain.
  slot.waiters.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

bool doacross_start(ImplicitTask* member, uint32_t dimensions, const uint64_t* counts,
                    LoopSchedule schedule, ConstructExtras extras, Chunk* chunk) {
  const LoopBounds bounds{0, counts[0], 1, true, counts[0] == 0};
  if (member->team->size == 1) {
    return loop_start_with_extras(member, bounds, schedule, false, extras, chunk);
  }
  WorkShare* share = enter_workshare(member, [&](WorkShare& fresh) {
    build_loop(fresh, bounds, schedule, true);
    if (chunk != nullptr) build_slots(fresh, dimensions, counts);
    if (extras.any()) make_extras(fresh, extras);
  });
  if (extras.any()) use_extras(*share, extras);
  if (chunk != nullptr) return loop_first(member, share, chunk);
  member->loop_state[kMore] = kMoreNothing;
  member->loop_state[kHolding] = kHoldingNothing;
  return true;
}

void doacross_begin_chunk(ImplicitTask* member, WorkShare& share, uint64_t k) {
  DoacrossSlot& slot = slot_of(share, k);
  wait_at(member->team, slot, [&slot, k] {
    // acquire pairs with doacross_end_chunk(): the slot's last user is done with it. seq_cst for
    // tell_waiters().
    return slot.serving.load(std::memory_order_seq_cst) == k;
  });
}

void doacross_end_chunk(ImplicitTask* member, WorkShare& share, uint64_t k) {
  DoacrossSlot& slot = slot_of(share, k);
  // In a cancelled region a chunk may have begun before its turn at the slot; leave that alone.
  if (slot.serving.load(std::memory_order_relaxed) != k) return;
  // Before `serving`: who sees that the slot serves the next chunk must not see this one's progress.
  slot.progress.store(0, std::memory_order_relaxed);
  slot.serving.exchange(k + share.slots_mask + 1, std::memory_order_seq_cst);
  tell_waiters(member->team, slot);
}

void doacross_post(ImplicitTask* member, const uint64_t* vector) {
  WorkShare* share = member->workshare;
  if (share == nullptr || member->loop_state[kHolding] != kHoldingDoacross) return;
  DoacrossSlot& slot = slot_of(*share, member->loop_state[kTicket]);
  // release: what the iteration wrote; seq_cst for tell_waiters().
  slot.progress.exchange(progress_posted(*share, vector), std::memory_order_seq_cst);
  tell_waiters(member->team, slot);
}

void doacross_wait(ImplicitTask* member, const uint64_t* vector) {
  WorkShare* share = member->workshare;
  if (member->loop_state[kHolding] != kHoldingDoacross || vector[0] >= share->count) return;
  const uint64_t k = chunk_with(*share, vector[0]);
  // Iterations of the member's own chunk run one after the other.
  if (k >= member->loop_state[kTicket]) return;
  DoacrossSlot& slot = slot_of(*share, k);
  const uint64_t needed = progress_needed(*share, vector);
  wait_at(member->team, slot, [&slot, k, needed] {
    // acquire pairs with doacross_post() and doacross_end_chunk(). If the slot moves on between the
    // two loads, the progress seen is that of a later chunk, and chunk k is complete: still true. It
    // cannot be that of an earlier one, which was set to 0 before `serving` became k.
    const uint64_t serving = slot.serving.load(std::memory_order_seq_cst);
    if (serving != k) return serving > k;
    return slot.progress.load(std::memory_order_seq_cst) >= needed;
  });
}

}  // namespace bosk::omp
