// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What threads note where regions begin and end, while watching(): what they do, for the sampler, and how often (region_counts.h).
// Inline and without a branch that is taken, for a region may take no longer than thirty nanoseconds.
#pragma once

#include "base/cpu.h"
#include "omp/region_counts.h"
#include "omp/team.h"
#include "sched/doing.h"
#include "sched/time_samples.h"
#include "sched/worker.h"

namespace bosk::omp {

/// Of one region, by whoever plays one worker, with preemption off; read by anybody: relaxed stores, no read-modify-write.
struct RegionCounts {
  std::atomic<uint64_t> calls{0};
  uint64_t next_timed = 0;  ///< the owner's: the call after so many is timed
  std::atomic<uint32_t> last_size{0};
  std::atomic<uint32_t> smallest{UINT32_MAX};
  std::atomic<uint32_t> largest{0};
  std::atomic<uint8_t> modes{0};
  std::atomic<uint64_t> timed{0};
  std::atomic<uint64_t> cycles{0};   ///< of the timed ones
  std::atomic<uint64_t> longest{0};  ///< cycles
};

/// A worker's. Books outlive their workers, for what is in them is a part of the sum; the next worker goes on with one that is free.
struct RegionBook {
  RegionCounts at[sched::kSampledRegions];
  RegionBook* next = nullptr;       ///< of all
  RegionBook* next_free = nullptr;  ///< of region_counts.cpp
};

/// 0: the table is full.
uint32_t number_of_region(RegionFunction region);
/// Null: out of memory, and nothing is counted. Preemption is off.
[[gnu::cold]] RegionBook* make_region_book(sched::Worker* w);
/// The team's function has another number than the one before.
[[gnu::cold]] void look_up_region(Team* team);
[[gnu::cold]] void note_other_size(RegionCounts* counts, const Team* team);
/// It is timed; says when the next one is.
[[gnu::cold]] void begin_timed_call(RegionCounts* counts, Team* team, uint64_t calls);
[[gnu::cold]] void end_timed_call(sched::Worker* w, Team* team);

/// The calling thread has opened it. Preemption is off. Of the team nothing is written, mostly: the lines that its members read are in
/// their caches.
inline void note_region_opened(sched::Thread* me, Team* team) {
  if (BOSK_UNLIKELY(team->numbered != team->function)) look_up_region(team);
  sched::now_does(me, {sched::Does::kOpening, region_of(team)});
  sched::Worker* w = me->worker;
  RegionBook* book = w->region_book;
  if (BOSK_UNLIKELY(book == nullptr) && (book = make_region_book(w)) == nullptr) return;
  RegionCounts* counts = &book->at[region_of(team)];
  const uint64_t calls = counts->calls.load(std::memory_order_relaxed);
  counts->calls.store(calls + 1, std::memory_order_relaxed);
  if (BOSK_UNLIKELY(counts->last_size.load(std::memory_order_relaxed) != team->size))
    note_other_size(counts, team);
  if (BOSK_UNLIKELY(calls >= counts->next_timed)) begin_timed_call(counts, team, calls);
}

/// How its members are run. Its part of the worker's book is the same whoever adds to it: any state of preemption.
inline void note_mode(const sched::Thread* me, const Team* team, RegionMode mode) {
  const sched::Worker* w = me->worker;
  if (w == nullptr || w->region_book == nullptr) return;
  std::atomic<uint8_t>& modes = w->region_book->at[region_of(team)].modes;
  const uint8_t seen = modes.load(std::memory_order_relaxed);
  const auto bit = static_cast<uint8_t>(mode);
  if (BOSK_UNLIKELY((seen & bit) == 0))
    modes.store(static_cast<uint8_t>(seen | bit), std::memory_order_relaxed);
}

/// A member's own part begins, the opener's when the others are on their way. Any state of preemption.
inline void note_part_begun(sched::Thread* me, uint32_t region) {
  sched::now_does(me, {sched::Does::kComputing, region});
}
inline void note_part_ended(sched::Thread* me) {
  sched::now_does(me, {sched::Does::kEnded, sched::what_does(me).region});
}

/// It closes it, and is in the team above again. Preemption is off.
inline void note_region_closed(sched::Thread* me, Team* team) {
  const Team* outer = parent_team(team);
  sched::now_does(me, outer->level == 0 ? sched::Doing{}
                                        : sched::Doing{sched::Does::kComputing, region_of(outer)});
  if (BOSK_UNLIKELY(team->region_opened_at != 0)) end_timed_call(me->worker, team);
}

}  // namespace bosk::omp
