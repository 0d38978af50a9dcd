// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Worksharing loops: building them, and every way of handing out chunks but the inlined one.
#include "omp/loop.h"

#include <algorithm>

#include "base/atomics_policy.h"
#include "omp/doacross.h"
#include "omp/loop_parts.h"
#include "omp/ordered.h"
#include "omp/reduction.h"
#include "omp/workshare_chain.h"

namespace bosk::omp {
namespace {

/// First iterations of all guided chunks, and the loop's end: they follow from the numbers alone.
/// About size * (1 + ln(count / (size * chunk))) entries.
void build_guided_table(WorkShare& share) {
  uint64_t chunks = 0;
  for (uint64_t left = share.count; left > 0; ++chunks) {
    left -= guided_share(left, share.size, share.chunk);
  }
  share.chunks = chunks;
  auto* firsts = static_cast<uint64_t*>(reserve(share.table, (chunks + 1) * sizeof(uint64_t)));
  uint64_t first = 0;
  for (uint64_t k = 0; k < chunks; ++k) {
    firsts[k] = first;
    first += guided_share(share.count - first, share.size, share.chunk);
  }
  firsts[chunks] = share.count;
}

/// The next number below `limit`, or false. relaxed, as in loop_next(): numbers only.
bool claim_one(std::atomic<uint64_t>& claimed, uint64_t limit, uint64_t* mine) {
  uint64_t next = claimed.load(std::memory_order_relaxed);
  do {
    if (next >= limit) return false;
  } while (!claimed.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
  *mine = next;
  return true;
}

IterationRange table_chunk(const WorkShare& share, uint64_t k) {
  const auto* firsts = static_cast<const uint64_t*>(share.table.at);
  return {firsts[k], firsts[k + 1]};
}

bool next_cyclic(ImplicitTask* member, const WorkShare& share, IterationRange* range,
                 uint64_t* ticket) {
  const uint64_t k = member->loop_state[kPosition];
  if (k >= share.chunks) return false;
  // Not simply k + size: the number of chunks may be near 2^64.
  member->loop_state[kPosition] = share.chunks - k > share.size ? k + share.size : share.chunks;
  *range = fixed_chunk(share.count, share.chunk, k);
  *ticket = k;
  return true;
}

bool next_by_compare(WorkShare& share, IterationRange* range) {
  uint64_t first = share.claimed.load(std::memory_order_relaxed);
  uint64_t last;
  do {
    if (first >= share.count) return false;
    last = first + std::min(share.count - first, share.chunk);
  } while (!share.claimed.compare_exchange_weak(first, last, std::memory_order_relaxed));
  *range = {first, last};
  return true;
}

/// Chunk `k`, whose number nobody else has: its bounds follow from those of the member's last one. In all
/// a member walks over every chunk once, which is cheaper than to lose the counter's line between reading
/// it and writing what follows from that.
bool guided_chunk(ImplicitTask* member, const WorkShare& share, uint64_t k, IterationRange* range) {
  uint64_t first = member->loop_state[kTicket];
  for (uint64_t at = member->loop_state[kPosition]; at < k && first < share.count; ++at)
    first += guided_share(share.count - first, share.size, share.chunk);
  const bool found = first < share.count;
  if (found) {
    const uint64_t last = first + guided_share(share.count - first, share.size, share.chunk);
    *range = {first, last};
    first = last;
  }
  member->loop_state[kPosition] = k + 1;
  member->loop_state[kTicket] = first;
  return found;
}

bool next_guided(ImplicitTask* member, WorkShare& share, IterationRange* range) {
  if (member->loop_state[kTicket] >= share.count) return false;
  // relaxed: numbers only. Each member adds one in vain at most.
  const uint64_t k = share.claimed.fetch_add(1, std::memory_order_relaxed);
  return guided_chunk(member, share, k, range);
}

/// The member's next range of iterations, by the share's handout. `ticket` is set where chunks are
/// numbered.
bool take_range(ImplicitTask* member, WorkShare& share, IterationRange* range, uint64_t* ticket) {
  switch (share.handout) {
    case Handout::kCyclic:
      return next_cyclic(member, share, range, ticket);
    case Handout::kCompare:
      return next_by_compare(share, range);
    case Handout::kGuided:
      return next_guided(member, share, range);
    case Handout::kIndexed:
      if (!claim_one(share.claimed, share.chunks, ticket)) return false;
      *range = fixed_chunk(share.count, share.chunk, *ticket);
      return true;
    case Handout::kTable:
      if (!claim_one(share.claimed, share.chunks, ticket)) return false;
      *range = table_chunk(share, *ticket);
      return true;
    default:  // kCounter is inlined, parts have functions of their own, kBlock has no second range
      return false;
  }
}

void hold(ImplicitTask* member, WorkShare& share, IterationRange range, uint64_t ticket) {
  if (share.ordered) {
    member->loop_state[kTicket] = ticket;
    member->loop_state[kHolding] =
        kHoldingChunk | (range.last - range.first == 1 ? uint64_t{kOneIteration} : 0);
  } else if (share.doacross) {
    member->loop_state[kTicket] = ticket;
    member->loop_state[kHolding] = kHoldingDoacross;
    doacross_begin_chunk(member, share, ticket);
  }
}

Chunk values_of(const WorkShare& share, IterationRange range) {
  return chunk_of(share.start, share.end, share.step, share.count, range);
}

bool is_private_block(LoopSchedule schedule, bool ordered) {
  return schedule.kind == kScheduleStatic && schedule.chunk == 0 && !schedule.first_decides &&
         !ordered;
}

void build_ordered_loop(WorkShare& share, const LoopBounds& bounds, LoopSchedule schedule,
                        bool ordered) {
  build_loop(share, bounds, schedule, ordered);
  if (ordered && share.size > 1) ordered_prepare(share);
}

}  // namespace

LoopSchedule runtime_schedule(const Task* task, bool may_reorder) {
  const DataIcvs& icvs = *task->icvs;
  LoopSchedule schedule =
      clause_schedule(icvs.run_sched & ~uint32_t{kScheduleMonotonic}, icvs.run_sched_chunk);
  if (schedule.kind == kScheduleAuto) schedule = {kScheduleStatic, 0, false, false};
  schedule.first_decides = true;
  schedule.any_order = may_reorder && (icvs.run_sched & kScheduleMonotonic) == 0;
  return schedule;
}

LoopSchedule encoded_schedule(const Task* task, long sched, uint64_t chunk) {
  // 4 is how GCC writes nonmonotonic:runtime here, not schedule(auto).
  const bool any_order = (static_cast<unsigned long>(sched) & kScheduleMonotonic) == 0;
  switch (static_cast<unsigned long>(sched) & ~uint64_t{kScheduleMonotonic}) {
    case 0:
    case 4:
      return runtime_schedule(task, any_order);
    case kScheduleDynamic:
      return {kScheduleDynamic, chunk, false, any_order};
    case kScheduleGuided:
      return {kScheduleGuided, chunk, false, any_order};
    default:
      return {kScheduleStatic, chunk, false, false};
  }
}

void build_loop(WorkShare& share, const LoopBounds& bounds, LoopSchedule schedule, bool in_order) {
  share.start = bounds.start;
  share.end = bounds.end;
  share.step = bounds.step;
  share.count = trip_count(bounds);
  share.chunk = schedule.chunk;
  if (schedule.kind == kScheduleStatic) {
    share.handout = share.chunk == 0 ? Handout::kBlock : Handout::kCyclic;
    if (share.chunk != 0) share.chunks = divide_up(share.count, share.chunk);
    return;
  }
  if (share.chunk == 0) share.chunk = 1;
  if (schedule.kind == kScheduleGuided) {
    if (in_order) {
      share.handout = Handout::kTable;
      build_guided_table(share);
    } else if (share.chunks = divide_up(share.count, share.chunk);
               !schedule.any_order || !build_parts(share, true)) {
      share.handout = Handout::kGuided;
    }
  } else if (in_order) {
    share.handout = Handout::kIndexed;
    share.chunks = divide_up(share.count, share.chunk);
  } else if (share.chunks = divide_up(share.count, share.chunk);
             !schedule.any_order || !build_parts(share, false)) {
    share.handout = overshoot_fits(share.count, share.chunk, share.size) ? Handout::kCounter
                                                                         : Handout::kCompare;
  }
}

uint64_t chunk_with(const WorkShare& share, uint64_t iteration) {
  switch (share.handout) {
    case Handout::kBlock:
      return block_owner(share.count, share.size, iteration);
    case Handout::kTable: {
      const auto* firsts = static_cast<const uint64_t*>(share.table.at);
      return static_cast<uint64_t>(std::upper_bound(firsts, firsts + share.chunks, iteration) -
                                   firsts) -
             1;
    }
    default:
      return iteration / share.chunk;
  }
}

/// For loops that are given out in several chunks.
static void prepare_member(ImplicitTask* member, const WorkShare& share) {
  member->loop_state[kHolding] = kHoldingNothing;
  member->loop_state[kPosition] = share.handout == Handout::kGuided ? 0 : member->index;
  member->loop_state[kTicket] = 0;
  member->loop_state[kMore] = share.handout == Handout::kCounter ? kMoreCounter
                              : has_parts(share)                 ? kMoreParts
                                                                 : kMoreShared;
}

bool loop_first(ImplicitTask* member, WorkShare* share, Chunk* chunk) {
  member->loop_state[kHolding] = kHoldingNothing;
  if (share->size == 1 || share->handout == Handout::kBlock) {
    // The whole range is one block of a team of one; ordered and doacross have nobody to wait for.
    member->loop_state[kMore] = kMoreNothing;
    const IterationRange range = block_of(share->count, share->size, member->index);
    if (range.empty()) return false;
    *chunk = values_of(*share, range);
    if (share->size > 1) hold(member, *share, range, member->index);
    return true;
  }
  prepare_member(member, *share);
  if (BOSK_UNLIKELY(share->near_first) && has_parts(*share)) come_to_part(member, *share);
  return loop_next(member, chunk);
}

/// Who builds a loop takes its first chunk at once, while nobody else wants the counter's line.
static bool take_first_chunk(WorkShare& share) {
  if (share.size == 1 || share.count == 0) return false;
  if (share.handout == Handout::kGuided)
    share.claimed.store(1, std::memory_order_relaxed);
  else if (share.handout == Handout::kCounter)
    share.claimed.store(share.chunk, std::memory_order_relaxed);
  else
    return false;
  return true;
}

static bool first_chunk_of_builder(ImplicitTask* member, const WorkShare& share, Chunk* chunk) {
  IterationRange range{0, std::min(share.chunk, share.count)};
  prepare_member(member, share);
  if (share.handout == Handout::kGuided) guided_chunk(member, share, 0, &range);
  *chunk = values_of(share, range);
  return true;
}

bool loop_start(ImplicitTask* member, const LoopBounds& bounds, LoopSchedule schedule, bool ordered,
                Chunk* chunk) {
  const Team* team = member->team;
  if (team->size == 1 || is_private_block(schedule, ordered)) {
    // Nothing is shared, so no object is needed: every member takes this way, or none does.
    member->loop_state[kMore] = kMoreNothing;
    member->loop_state[kHolding] = kHoldingNothing;
    const uint64_t count = trip_count(bounds);
    const IterationRange range = block_of(count, team->size, member->index);
    if (range.empty()) return false;
    *chunk = chunk_of(bounds.start, bounds.end, bounds.step, count, range);
    return true;
  }
  bool built = false;
  WorkShare* share = enter_workshare(member, [&](WorkShare& fresh) {
    build_ordered_loop(fresh, bounds, schedule, ordered);
    built = take_first_chunk(fresh);
  });
  return BOSK_LIKELY(built) ? first_chunk_of_builder(member, *share, chunk)
                            : loop_first(member, share, chunk);
}

bool loop_start_with_extras(ImplicitTask* member, const LoopBounds& bounds, LoopSchedule schedule,
                            bool ordered, ConstructExtras extras, Chunk* chunk) {
  if (chunk != nullptr && !extras.any()) {
    return loop_start(member, bounds, schedule, ordered, chunk);
  }
  member->loop_state[kMore] = kMoreNothing;
  member->loop_state[kHolding] = kHoldingNothing;
  if (!extras.any()) return true;
  WorkShare* share = enter_workshare(member, [&](WorkShare& fresh) {
    if (chunk != nullptr) build_ordered_loop(fresh, bounds, schedule, ordered);
    make_extras(fresh, extras);
  });
  use_extras(*share, extras);
  return chunk == nullptr || loop_first(member, share, chunk);
}

void loop_preset(Team* team, const LoopBounds& bounds, LoopSchedule schedule) {
  preset_workshare(team,
                   [&](WorkShare& fresh) { build_ordered_loop(fresh, bounds, schedule, false); });
}

bool loop_next_slow(ImplicitTask* member, Chunk* chunk) {
  if (member->loop_state[kHolding] != kHoldingNothing) loop_finish_slow(member);
  if (member->loop_state[kMore] == kMoreNothing) {
    // A member's first call in a combined construct has no start before it.
    if (member->workshare != nullptr || !member->team->workshares.preset) return false;
    WorkShare* share = enter_workshare(member, [](WorkShare&) {});
    return loop_first(member, share, chunk);
  }
  WorkShare& share = *member->workshare;
  IterationRange range;
  uint64_t ticket = 0;
  if (!take_range(member, share, &range, &ticket)) {
    member->loop_state[kMore] = kMoreNothing;
    return false;
  }
  hold(member, share, range, ticket);
  *chunk = values_of(share, range);
  return true;
}

void loop_finish_slow(ImplicitTask* member) {
  WorkShare& share = *member->workshare;
  if (member->loop_state[kHolding] == kHoldingDoacross) {
    doacross_end_chunk(member, share, member->loop_state[kTicket]);
    member->loop_state[kHolding] = kHoldingNothing;
  } else {
    ordered_pass(member, share);
  }
}

}  // namespace bosk::omp
