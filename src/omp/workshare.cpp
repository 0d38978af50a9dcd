// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pool of worksharing objects of a team, and the waiting for one that is being built.
#include "omp/workshare.h"

#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "omp/workshare_chain.h"
#include "sched/address_wait.h"

namespace bosk::omp {
namespace {

/// What a pool may keep from region to region. More are needed only by programs with hundreds of
/// `nowait` constructs that one member has not met yet.
constexpr uint32_t kKeepObjects = 64;
constexpr size_t kKeepBytes = size_t{1} << 20;

void release(WorkShare::Buffer& buffer) {
  free(buffer.at);
  buffer = {};
}

void trim(WorkShare::Buffer& buffer) {
  if (buffer.bytes > kKeepBytes) release(buffer);
}

void trim(WorkShare* share) {
  trim(share->shared);
  trim(share->turns);
  trim(share->table);
  trim(share->parts);
  trim(share->doacross_memory);
}

void destroy(WorkShare* share) {
  release(share->shared);
  release(share->turns);
  release(share->table);
  release(share->parts);
  release(share->doacross_memory);
  free(share);
}

WorkShare* make_workshare(Team* team) {
  void* memory = aligned_alloc(alignof(WorkShare), sizeof(WorkShare));
  if (memory == nullptr) {
    base::die(1, "out of memory: cannot allocate %zu bytes for a worksharing construct",
              sizeof(WorkShare));
  }
  WorkShare* share = new (memory) WorkShare;
  share->next_of_team = team->workshares.all;
  team->workshares.all = share;
  return share;
}

}  // namespace

void* reserve(WorkShare::Buffer& buffer, size_t bytes, size_t alignment) {
  if (alignment < base::kCacheLine) alignment = base::kCacheLine;
  if (buffer.bytes >= bytes && reinterpret_cast<uintptr_t>(buffer.at) % alignment == 0 &&
      buffer.at != nullptr) {
    return buffer.at;
  }
  release(buffer);
  if (bytes < base::kCacheLine) bytes = base::kCacheLine;
  void* at = nullptr;
  if (posix_memalign(&at, alignment, bytes) != 0) {
    base::die(1, "out of memory: cannot allocate %zu bytes for a worksharing construct", bytes);
  }
  buffer = {at, bytes};
  return at;
}

WorkShare* take_workshare(Team* team) {
  WorkShareState& state = team->workshares;
  mark_used(team);
  if (state.pool == nullptr &&
      // relaxed: only a hint; the exchange decides.
      state.returned.load(std::memory_order_relaxed) != nullptr) {
    // Taking the whole stack at once leaves no room for the ABA problem. acquire pairs with the
    // release in give_back_workshare(): all members have left the objects.
    state.pool = state.returned.exchange(nullptr, std::memory_order_acquire);
  }
  WorkShare* share = state.pool;
  if (share != nullptr) {
    state.pool = share->next_free;
  } else {
    share = make_workshare(team);
  }
  // Nobody else can reach the object before the link to it is published: relaxed.
  share->link.state.store(WorkShareLink::kAbsent, std::memory_order_relaxed);
  share->claimed.store(0, std::memory_order_relaxed);
  share->moved_on.store(0, std::memory_order_relaxed);
  share->size = team->size;
  share->handout = Handout::kNone;
  share->ordered = false;
  share->doacross = false;
  return share;
}

void give_back_workshare(Team* team, WorkShare* share) {
  trim(share);
  std::atomic<WorkShare*>& top = team->workshares.returned;
  WorkShare* seen = top.load(std::memory_order_relaxed);
  do share->next_free = seen;
  while (!top.compare_exchange_weak(seen, share, std::memory_order_release,
                                    std::memory_order_relaxed));
}

void publish_workshare(WorkShareLink& link, WorkShare* share) {
  link.next = share;
  // release: the object and `next`. Sequentially consistent because wake_after_rmw() asks for it.
  if (link.state.exchange(WorkShareLink::kReady, std::memory_order_seq_cst) ==
      WorkShareLink::kBuildingWaited) {
    sched::wake_after_rmw(link.state, UINT32_MAX);
  }
}

void wait_for_workshare(WorkShareLink& link) {
  const auto ready = [&link] {
    // acquire pairs with publish_workshare().
    return link.state.load(std::memory_order_acquire) == WorkShareLink::kReady;
  };
  while (!ready()) {
    uint32_t seen = WorkShareLink::kBuilding;
    // Marks that somebody waits; fails if it is marked already, or ready. relaxed: no data goes
    // along, and the builder's exchange on the same word cannot miss the mark.
    if (link.state.compare_exchange_strong(seen, WorkShareLink::kBuildingWaited,
                                           std::memory_order_relaxed) ||
        seen == WorkShareLink::kBuildingWaited) {
      sched::wait_on(link.state, WorkShareLink::kBuildingWaited);
    }
  }
}

void workshare_reset(Team* team) {
  WorkShareState& state = team->workshares;
  // All members have ended and the opener has joined them: plain work of one thread.
  WorkShare* kept = nullptr;
  uint32_t count = 0;
  WorkShare* share = state.all;
  while (share != nullptr) {
    WorkShare* next = share->next_of_team;
    if (count < kKeepObjects) {
      trim(share);
      share->next_free = kept;
      share->next_of_team = kept;
      kept = share;
      ++count;
    } else {
      destroy(share);
    }
    share = next;
  }
  state.pool = kept;
  state.all = kept;
  state.returned.store(nullptr, std::memory_order_relaxed);
  state.head.state.store(WorkShareLink::kAbsent, std::memory_order_relaxed);
  state.head.next = nullptr;
  state.preset = false;
  state.cancelled_phase.store(0, std::memory_order_relaxed);
  state.used.store(false, std::memory_order_relaxed);
  team->single_taken.store(0, std::memory_order_relaxed);
}

void workshare_destroy(Team* team) {
  WorkShareState& state = team->workshares;
  WorkShare* share = state.all;
  state.all = nullptr;
  while (share != nullptr) {
    WorkShare* next = share->next_of_team;
    destroy(share);
    share = next;
  }
  state.pool = nullptr;
  state.returned.store(nullptr, std::memory_order_relaxed);
}

}  // namespace bosk::omp
