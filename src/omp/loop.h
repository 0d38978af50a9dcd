// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Worksharing loops: start, next chunk, end. The hot path of dynamic loops is inline here.
#pragma once

#include "omp/icv.h"
#include "omp/loop_space.h"
#include "omp/team.h"
#include "omp/workshare.h"

namespace bosk::omp {

/// What the words of ImplicitTask::loop_state hold.
enum LoopStateWord : uint8_t {
  kMore,      ///< LoopMore: where the next chunk comes from
  kPosition,  ///< kCyclic: the member's next chunk; kParts: whose part it stole from last; serial
              ///< sections: sections given out
  kTicket,    ///< number of the chunk that the member has; serial sections: how many there are
  kHolding,   ///< LoopHolding: what must be done when that chunk is finished
};

enum LoopMore : uint64_t {
  kMoreNothing = 0,  ///< also the state before the first construct
  kMoreCounter,      ///< the shared counter, by fetch_add
  kMoreParts,        ///< the member's part, then others'
  kMoreShared,       ///< the shared state, whatever it is
  kMoreSerial,       ///< sections of a team of one
};

enum LoopHolding : uint64_t {
  kHoldingNothing = 0,
  kHoldingChunk,     ///< ordered: the turn is to be passed on, and must be waited for first
  kHoldingTurn,      ///< ordered: the turn has come, and is to be passed on
  kHoldingDoacross,  ///< doacross: the chunk is to be marked complete
  kHoldingKind = 3,
  kOneIteration = 4,  ///< flag: the chunk has one iteration, so the end of `ordered` is its end
};

/// schedule(kind, chunk) of a loop construct; chunk 0: the schedule's default.
struct LoopSchedule {
  uint32_t kind = kScheduleStatic;  ///< a Schedule without kScheduleMonotonic
  uint64_t chunk = 0;
  /// True where members could disagree (schedule(runtime) after omp_set_schedule by one of them):
  /// who arrives first decides for all.
  bool first_decides = false;
  /// nonmonotonic: a member may get chunks in any order.
  bool any_order = false;
};

inline LoopSchedule in_any_order(LoopSchedule schedule) {
  schedule.any_order = true;
  return schedule;
}

/// A schedule clause. Chunks that make no sense count as not given.
inline LoopSchedule clause_schedule(uint32_t kind, long chunk) {
  return {kind, chunk > 0 ? static_cast<uint64_t>(chunk) : 0, false, false};
}
inline LoopSchedule clause_schedule_ull(uint32_t kind, unsigned long long chunk) {
  return {kind, chunk, false, false};
}

/// schedule(runtime): the run-sched-var of the calling task. In any order if `may_reorder` and the variable
/// does not say monotonic.
LoopSchedule runtime_schedule(const Task* task, bool may_reorder = false);

/// The `sched` argument of GOMP_loop_start and its like: the schedule of the clause, or run-sched-var.
LoopSchedule encoded_schedule(const Task* task, long sched, uint64_t chunk);

/// The `reductions` and `mem` arguments of the *_start entry points that have them. Both may be null.
struct ConstructExtras {
  uintptr_t* reductions = nullptr;
  void** memory = nullptr;
  bool any() const { return reductions != nullptr || memory != nullptr; }
};

/// Begins a loop construct; true: `*chunk` is the member's first. With `ordered` the chunks' ordered
/// regions run in the order of the chunks.
bool loop_start(ImplicitTask* member, const LoopBounds& bounds, LoopSchedule schedule, bool ordered,
                Chunk* chunk);

/// The same with extras. `chunk` null: the compiler schedules the iterations itself and wants only
/// the extras.
bool loop_start_with_extras(ImplicitTask* member, const LoopBounds& bounds, LoopSchedule schedule,
                            bool ordered, ConstructExtras extras, Chunk* chunk);

/// Sets up the loop of a combined construct; the members call loop_next() without a start.
void loop_preset(Team* team, const LoopBounds& bounds, LoopSchedule schedule);

/// The member begins to take chunks of a loop with parts where it matters where it is.
void come_to_part(const ImplicitTask* member, WorkShare& share);
/// loop_next() of kMoreParts.
bool loop_next_part(ImplicitTask* member, Chunk* chunk);

/// Everything but the above.
bool loop_next_slow(ImplicitTask* member, Chunk* chunk);

/// The member's next chunk of the loop it is in, whatever its schedule; false: there is none.
inline bool loop_next(ImplicitTask* member, Chunk* chunk) {
  if (BOSK_LIKELY(member->loop_state[kMore] == kMoreCounter)) {
    WorkShare* share = member->workshare;
    // relaxed: the counter only gives out numbers. What the iterations read was ordered before the
    // construct (fork, barrier, or the link to it). A member that finds it exhausted adds no more,
    // so it passes `count` by at most size * chunk, which was checked to fit (overshoot_fits).
    const uint64_t first = share->claimed.fetch_add(share->chunk, std::memory_order_relaxed);
    const uint64_t count = share->count;
    if (BOSK_LIKELY(first < count)) {
      chunk->begin = share->start + first * share->step;
      chunk->end = count - first > share->chunk
                       ? share->start + (first + share->chunk) * share->step
                       : share->end;
      return true;
    }
    member->loop_state[kMore] = kMoreNothing;
    return false;
  }
  if (member->loop_state[kMore] == kMoreParts) return loop_next_part(member, chunk);
  return loop_next_slow(member, chunk);
}

/// Passes on what the member still holds of its last chunk.
void loop_finish_slow(ImplicitTask* member);

/// The member leaves the construct, without or before a barrier.
inline void loop_finish(ImplicitTask* member) {
  if (BOSK_UNLIKELY(member->loop_state[kHolding] != kHoldingNothing)) loop_finish_slow(member);
  member->loop_state[kMore] = kMoreNothing;
}

// ---- for the other worksharing constructs

/// Fills an object for `count` iterations that `schedule` gives out. `in_order`: chunks are numbered
/// in the order of the iterations (ordered, doacross).
void build_loop(WorkShare& share, const LoopBounds& bounds, LoopSchedule schedule, bool in_order);

/// Prepares the member to take chunks of `share`, and takes the first.
bool loop_first(ImplicitTask* member, WorkShare* share, Chunk* chunk);

/// Number of the chunk with iteration `iteration`, in a share built `in_order`.
uint64_t chunk_with(const WorkShare& share, uint64_t iteration);

}  // namespace bosk::omp
