// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_loop_ull_*: worksharing loops over `unsigned long long`.
#include "omp/loop.h"

#include "abi/gomp/export.h"
#include "omp/doacross.h"

using namespace bosk::omp;

namespace {

using Ull = unsigned long long;

bool give(bool any, const Chunk& chunk, Ull* istart, Ull* iend) {
  if (!any) return false;
  *istart = static_cast<Ull>(chunk.begin);
  *iend = static_cast<Ull>(chunk.end);
  return true;
}

bool start_loop(const LoopBounds& bounds, LoopSchedule schedule, bool ordered, Ull* istart,
                Ull* iend) {
  Chunk chunk;
  return give(loop_start(current_member(), bounds, schedule, ordered, &chunk), chunk, istart, iend);
}

bool start_doacross(unsigned ncounts, Ull* counts, LoopSchedule schedule, ConstructExtras extras,
                    Ull* istart, Ull* iend) {
  Chunk chunk;
  const bool any = doacross_start(current_member(), ncounts, reinterpret_cast<uint64_t*>(counts),
                                  schedule, extras, istart != nullptr ? &chunk : nullptr);
  return istart != nullptr ? give(any, chunk, istart, iend) : any;
}

bool start_with_extras(const LoopBounds& bounds, LoopSchedule schedule, bool ordered,
                       ConstructExtras extras, Ull* istart, Ull* iend) {
  Chunk chunk;
  const bool any = loop_start_with_extras(current_member(), bounds, schedule, ordered, extras,
                                          istart != nullptr ? &chunk : nullptr);
  return istart != nullptr ? give(any, chunk, istart, iend) : any;
}

}  // namespace

// ---- starts

BOSK_EXPORT bool GOMP_loop_ull_static_start(bool up, Ull start, Ull end, Ull incr, Ull chunk,
                                            Ull* istart, Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr), clause_schedule_ull(kScheduleStatic, chunk),
                    false, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ull_dynamic_start(bool up, Ull start, Ull end, Ull incr, Ull chunk,
                                             Ull* istart, Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr), clause_schedule_ull(kScheduleDynamic, chunk),
                    false, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ull_guided_start(bool up, Ull start, Ull end, Ull incr, Ull chunk,
                                            Ull* istart, Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr), clause_schedule_ull(kScheduleGuided, chunk),
                    false, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ull_runtime_start(bool up, Ull start, Ull end, Ull incr, Ull* istart,
                                             Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr), runtime_schedule(current_task()), false,
                    istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ull_ordered_static_start(bool up, Ull start, Ull end, Ull incr,
                                                    Ull chunk, Ull* istart, Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr), clause_schedule_ull(kScheduleStatic, chunk),
                    true, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ull_ordered_dynamic_start(bool up, Ull start, Ull end, Ull incr,
                                                     Ull chunk, Ull* istart, Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr), clause_schedule_ull(kScheduleDynamic, chunk),
                    true, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ull_ordered_guided_start(bool up, Ull start, Ull end, Ull incr,
                                                    Ull chunk, Ull* istart, Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr), clause_schedule_ull(kScheduleGuided, chunk),
                    true, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ull_ordered_runtime_start(bool up, Ull start, Ull end, Ull incr,
                                                     Ull* istart, Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr), runtime_schedule(current_task()), true, istart,
                    iend);
}

BOSK_EXPORT bool GOMP_loop_ull_nonmonotonic_dynamic_start(bool up, Ull start, Ull end, Ull incr,
                                                          Ull chunk, Ull* istart, Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr),
                    in_any_order(clause_schedule_ull(kScheduleDynamic, chunk)), false, istart,
                    iend);
}

BOSK_EXPORT bool GOMP_loop_ull_nonmonotonic_runtime_start(bool up, Ull start, Ull end, Ull incr,
                                                          Ull* istart, Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr), runtime_schedule(current_task(), true), false,
                    istart, iend);
}
BOSK_EXPORT_ALIAS(GOMP_loop_ull_nonmonotonic_runtime_start)
bool GOMP_loop_ull_maybe_nonmonotonic_runtime_start(bool up, Ull start, Ull end, Ull incr,
                                                    Ull* istart, Ull* iend);

BOSK_EXPORT bool GOMP_loop_ull_nonmonotonic_guided_start(bool up, Ull start, Ull end, Ull incr,
                                                         Ull chunk, Ull* istart, Ull* iend) {
  return start_loop(bounds_of(up, start, end, incr),
                    in_any_order(clause_schedule_ull(kScheduleGuided, chunk)), false, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ull_start(bool up, Ull start, Ull end, Ull incr, long sched, Ull chunk,
                                     Ull* istart, Ull* iend, uintptr_t* reductions, void** mem) {
  return start_with_extras(bounds_of(up, start, end, incr),
                           encoded_schedule(current_task(), sched, chunk), false, {reductions, mem},
                           istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ull_ordered_start(bool up, Ull start, Ull end, Ull incr, long sched,
                                             Ull chunk, Ull* istart, Ull* iend,
                                             uintptr_t* reductions, void** mem) {
  return start_with_extras(bounds_of(up, start, end, incr),
                           encoded_schedule(current_task(), sched, chunk), true, {reductions, mem},
                           istart, iend);
}

// ---- doacross

BOSK_EXPORT bool GOMP_loop_ull_doacross_static_start(unsigned ncounts, Ull* counts, Ull chunk,
                                                     Ull* istart, Ull* iend) {
  return start_doacross(ncounts, counts, clause_schedule_ull(kScheduleStatic, chunk), {}, istart,
                        iend);
}

BOSK_EXPORT bool GOMP_loop_ull_doacross_dynamic_start(unsigned ncounts, Ull* counts, Ull chunk,
                                                      Ull* istart, Ull* iend) {
  return start_doacross(ncounts, counts, clause_schedule_ull(kScheduleDynamic, chunk), {}, istart,
                        iend);
}

BOSK_EXPORT bool GOMP_loop_ull_doacross_guided_start(unsigned ncounts, Ull* counts, Ull chunk,
                                                     Ull* istart, Ull* iend) {
  return start_doacross(ncounts, counts, clause_schedule_ull(kScheduleGuided, chunk), {}, istart,
                        iend);
}

BOSK_EXPORT bool GOMP_loop_ull_doacross_runtime_start(unsigned ncounts, Ull* counts, Ull* istart,
                                                      Ull* iend) {
  return start_doacross(ncounts, counts, runtime_schedule(current_task()), {}, istart, iend);
}

BOSK_EXPORT bool GOMP_loop_ull_doacross_start(unsigned ncounts, Ull* counts, long sched, Ull chunk,
                                              Ull* istart, Ull* iend, uintptr_t* reductions,
                                              void** mem) {
  return start_doacross(ncounts, counts, encoded_schedule(current_task(), sched, chunk),
                        {reductions, mem}, istart, iend);
}

// ---- next: by what the construct is, whatever the name says. The compiler pairs, for example,
// GOMP_loop_doacross_dynamic_start with GOMP_loop_dynamic_next.

BOSK_EXPORT bool GOMP_loop_ull_dynamic_next(Ull* istart, Ull* iend) {
  Chunk chunk;
  return give(loop_next(current_member(), &chunk), chunk, istart, iend);
}

BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_static_next(Ull* istart, Ull* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_guided_next(Ull* istart, Ull* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_runtime_next(Ull* istart, Ull* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_nonmonotonic_dynamic_next(Ull* istart, Ull* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_nonmonotonic_guided_next(Ull* istart, Ull* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_nonmonotonic_runtime_next(Ull* istart, Ull* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_maybe_nonmonotonic_runtime_next(Ull* istart, Ull* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_ordered_static_next(Ull* istart, Ull* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_ordered_dynamic_next(Ull* istart, Ull* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_ordered_guided_next(Ull* istart, Ull* iend);
BOSK_EXPORT_ALIAS(GOMP_loop_ull_dynamic_next)
bool GOMP_loop_ull_ordered_runtime_next(Ull* istart, Ull* iend);
