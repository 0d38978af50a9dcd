// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_loop_*: worksharing loops over `long`.
#include "omp/loop.h"

#include "abi/gomp/export.h"
#include "omp/doacross.h"

using namespace bosk::omp;

namespace {

bool give(bool any, const Chunk& chunk, long* istart, long* iend) {
  if (!any) return false;
  *istart = static_cast<long>(chunk.begin);
  *iend = static_cast<long>(chunk.end);
  return true;
}

bool start_loop(const LoopBounds& bounds, LoopSchedule schedule, bool ordered, long* istart,
                long* iend) {
  Chunk chunk;
  return give(loop_start(current_member(), bounds, schedule, ordered, &chunk), chunk, istart, iend);
}

bool start_doacross(unsigned ncounts, long* counts, LoopSchedule schedule, ConstructExtras extras,
                    long* istart, long* iend) {
  Chunk chunk;
  const bool any = doacross_start(current_member(), ncounts, reinterpret_cast<uint64_t*>(counts),
                                  schedule, extras, istart != nullptr ? &chunk : nullptr);
  return istart != nullptr ? give(any, chunk, istart, iend) : any;
}

bool start_with_extras(const LoopBounds& bounds, LoopSchedule schedule, bool ordered,
                       ConstructExtras extras, long* istart, long* iend) {
  Chunk chunk;
  const bool any = loop_start_with_extras(current_member(), bounds, schedule, ordered, extras,
                                          istart != nullptr ? &chunk : nullptr);
  return istart != nullptr ? give(any, chunk, istart, iend) : any;
}

}  // namespace

// ---- starts

BOSK_EXPORT bool GOMP_loop_static_start(long start, long end, long incr, long chunk, long* istart,
                                        long* iend) {
  return start_loop(bounds_of(start, end, incr), clause_schedule(kScheduleStatic, chunk), false,
                    istart, iend);
}

BOSK_EXPORT bool GOMP_loop_dynamic_start(long start, long end, long incr, long chunk, long* istart,
                                         long* iend) {
  return start_loop(bounds_of(start, end, incr), clause_schedule(kScheduleDynamic, chunk), false,
                    istart, iend);
}

BOSK_EXPORT bool GOMP_loop_guided_start(long start, long end, long incr, long chunk, long* istart,
                                        long* iend) {
  return start_loop(bounds_of(start, end, incr), clause_schedule(kScheduleGuided, chunk), false,
                    istart, iend);
}

BOSK_EXPORT bool GOMP_loop_runtime_start(long start, long end, long incr, long* istart,
                                         long* iend) {
  return start_loop(bounds_of(start, end, incr), runtime_schedule(current_task()), false, istart,
                    iend);
}

BOSK_EXPORT bool GOMP_loop_ordered_static_start(long start, long end, long incr, long chunk,
                                                long* istart, long* iend) {
  return start_loop(bounds_of(start, end, incr), clause_schedule(kScheduleStatic, chunk), true,
                    istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ordered_dynamic_start(long start, long end, long incr, long chunk,
                                                 long* istart, long* iend) {
  return start_loop(bounds_of(start, end, incr), clause_schedule(kScheduleDynamic, chunk), true,
                    istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ordered_guided_start(long start, long end, long incr, long chunk,
                                                long* istart, long* iend) {
  return start_loop(bounds_of(start, end, incr), clause_schedule(kScheduleGuided, chunk), true,
                    istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ordered_runtime_start(long start, long end, long incr, long* istart,
                                                 long* iend) {
  return start_loop(bounds_of(start, end, incr), runtime_schedule(current_task()), true, istart,
                    iend);
}

BOSK_EXPORT bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long incr, long chunk,
                                                      long* istart, long* iend) {
  return start_loop(bounds_of(start, end, incr),
                    in_any_order(clause_schedule(kScheduleDynamic, chunk)), false, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_nonmonotonic_runtime_start(long start, long end, long incr, long* istart,
                                                      long* iend) {
  return start_loop(bounds_of(start, end, incr), runtime_schedule(current_task(), true), false,
                    istart, iend);
}
BOSK_EXPORT_ALIAS(GOMP_loop_nonmonotonic_runtime_start)
bool GOMP_loop_maybe_nonmonotonic_runtime_start(long start, long end, long incr, long* istart,
                                                long* iend);

BOSK_EXPORT bool GOMP_loop_nonmonotonic_guided_start(long start, long end, long incr, long chunk,
                                                     long* istart, long* iend) {
  return start_loop(bounds_of(start, end, incr),
                    in_any_order(clause_schedule(kScheduleGuided, chunk)), false, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_start(long start, long end, long incr, long sched, long chunk,
                                 long* istart, long* iend, uintptr_t* reductions, void** mem) {
  return start_with_extras(
      bounds_of(start, end, incr),
      encoded_schedule(current_task(), sched, chunk > 0 ? static_cast<uint64_t>(chunk) : 0), false,
      {reductions, mem}, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ordered_start(long start, long end, long incr, long sched, long chunk,
                                         long* istart, long* iend, uintptr_t* reductions,
                                         void** mem) {
  return start_with_extras(
      bounds_of(start, end, incr),
      encoded_schedule(current_task(), sched, chunk > 0 ? static_cast<uint64_t>(chunk) : 0), true,
      {reductions, mem}, istart, iend);
}

// ---- doacross

BOSK_EXPORT bool GOMP_loop_doacross_static_start(unsigned ncounts, long* counts, long chunk,
                                                 long* istart, long* iend) {
  return start_doacross(ncounts, counts, clause_schedule(kScheduleStatic, chunk), {}, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_doacross_dynamic_start(unsigned ncounts, long* counts, long chunk,
                                                  long* istart, long* iend) {
  return start_doacross(ncounts, counts, clause_schedule(kScheduleDynamic, chunk), {}, istart,
                        iend);
}

BOSK_EXPORT bool GOMP_loop_doacross_guided_start(unsigned ncounts, long* counts, long chunk,
                                                 long* istart, long* iend) {
  return start_doacross(ncounts, counts, clause_schedule(kScheduleGuided, chunk), {}, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_doacross_runtime_start(unsigned ncounts, long* counts, long* istart,
                                                  long* iend) {
  return start_doacross(ncounts, counts, runtime_schedule(current_task()), {}, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_doacross_start(unsigned ncounts, long* counts, long sched, long chunk,
                                          long* istart, long* iend, uintptr_t* reductions,
                                          void** mem) {
  return start_doacross(
      ncounts, counts,
      encoded_schedule(current_task(), sched, chunk > 0 ? static_cast<uint64_t>(chunk) : 0),
      {reductions, mem}, istart, iend);
}

// ---- next: by what the construct is, whatever the name says. The compiler pairs, for example,
// GOMP_loop_doacross_dynamic_start with GOMP_loop_dynamic_next.

BOSK_EXPORT bool GOMP_loop_dynamic_next(long* istart, long* iend) {
  Chunk chunk;
  return give(loop_next(current_member(), &chunk), chunk, istart, iend);
}

BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next) bool GOMP_loop_static_next(long* istart, long* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next) bool GOMP_loop_guided_next(long* istart, long* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next) bool GOMP_loop_runtime_next(long* istart, long* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next)
bool GOMP_loop_nonmonotonic_dynamic_next(long* istart, long* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next)
bool GOMP_loop_nonmonotonic_guided_next(long* istart, long* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next)
bool GOMP_loop_nonmonotonic_runtime_next(long* istart, long* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next)
bool GOMP_loop_maybe_nonmonotonic_runtime_next(long* istart, long* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next)
bool GOMP_loop_ordered_static_next(long* istart, long* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next)
bool GOMP_loop_ordered_dynamic_next(long* istart, long* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next)
bool GOMP_loop_ordered_guided_next(long* istart, long* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_dynamic_next)
bool GOMP_loop_ordered_runtime_next(long* istart, long* iend);

// ---- ends, of both flavours

BOSK_EXPORT void GOMP_loop_end() {
  loop_finish(current_member());
  barrier();
}

BOSK_EXPORT void GOMP_loop_end_nowait() { loop_finish(current_member()); }
