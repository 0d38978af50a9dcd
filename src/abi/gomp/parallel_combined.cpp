// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_parallel_loop_*, GOMP_parallel_sections* and GOMP_parallel_reductions: regions whose first
// construct is set up before the members start.
#include "abi/gomp/export.h"
#include "omp/loop.h"
#include "omp/reduction.h"
#include "omp/sections.h"

using namespace bosk::omp;

namespace {

struct FirstLoop {
  LoopBounds bounds;
  LoopSchedule schedule;
};

void prepare_loop(Team* team, void* argument) {
  const auto* loop = static_cast<const FirstLoop*>(argument);
  loop_preset(team, loop->bounds, loop->schedule);
}

void prepare_sections(Team* team, void* argument) {
  sections_preset(team, *static_cast<const unsigned*>(argument));
}

void run_loop(RegionFunction fn, void* data, unsigned num_threads, unsigned flags, FirstLoop loop) {
  parallel(fn, data, num_threads, flags & 7, prepare_loop, &loop);
}

void begin_loop(RegionFunction fn, void* data, unsigned num_threads, FirstLoop loop) {
  parallel_begin(fn, data, num_threads, prepare_loop, &loop);
}

}  // namespace

BOSK_EXPORT void GOMP_parallel_loop_static(RegionFunction fn, void* data, unsigned num_threads,
                                           long start, long end, long incr, long chunk,
                                           unsigned flags) {
  run_loop(fn, data, num_threads, flags,
           {bounds_of(start, end, incr), clause_schedule(kScheduleStatic, chunk)});
}

BOSK_EXPORT void GOMP_parallel_loop_dynamic(RegionFunction fn, void* data, unsigned num_threads,
                                            long start, long end, long incr, long chunk,
                                            unsigned flags) {
  run_loop(fn, data, num_threads, flags,
           {bounds_of(start, end, incr), clause_schedule(kScheduleDynamic, chunk)});
}

BOSK_EXPORT void GOMP_parallel_loop_guided(RegionFunction fn, void* data, unsigned num_threads,
                                           long start, long end, long incr, long chunk,
                                           unsigned flags) {
  run_loop(fn, data, num_threads, flags,
           {bounds_of(start, end, incr), clause_schedule(kScheduleGuided, chunk)});
}

BOSK_EXPORT void GOMP_parallel_loop_runtime(RegionFunction fn, void* data, unsigned num_threads,
                                            long start, long end, long incr, unsigned flags) {
  run_loop(fn, data, num_threads, flags,
           {bounds_of(start, end, incr), runtime_schedule(current_task())});
}

BOSK_EXPORT void GOMP_parallel_loop_nonmonotonic_dynamic(RegionFunction fn, void* data,
                                                         unsigned num_threads, long start, long end,
                                                         long incr, long chunk, unsigned flags) {
  run_loop(fn, data, num_threads, flags,
           {bounds_of(start, end, incr), in_any_order(clause_schedule(kScheduleDynamic, chunk))});
}

BOSK_EXPORT void GOMP_parallel_loop_nonmonotonic_runtime(RegionFunction fn, void* data,
                                                         unsigned num_threads, long start, long end,
                                                         long incr, unsigned flags) {
  run_loop(fn, data, num_threads, flags,
           {bounds_of(start, end, incr), runtime_schedule(current_task(), true)});
}
BOSK_EXPORT_ALIAS(GOMP_parallel_loop_nonmonotonic_runtime)
void GOMP_parallel_loop_maybe_nonmonotonic_runtime(RegionFunction fn, void* data,
                                                   unsigned num_threads, long start, long end,
                                                   long incr, unsigned flags);

BOSK_EXPORT void GOMP_parallel_loop_nonmonotonic_guided(RegionFunction fn, void* data,
                                                        unsigned num_threads, long start, long end,
                                                        long incr, long chunk, unsigned flags) {
  run_loop(fn, data, num_threads, flags,
           {bounds_of(start, end, incr), in_any_order(clause_schedule(kScheduleGuided, chunk))});
}

// ---- the old protocol: the caller runs fn itself, then calls GOMP_parallel_end

BOSK_EXPORT void GOMP_parallel_loop_static_start(RegionFunction fn, void* data,
                                                 unsigned num_threads, long start, long end,
                                                 long incr, long chunk) {
  begin_loop(fn, data, num_threads,
             {bounds_of(start, end, incr), clause_schedule(kScheduleStatic, chunk)});
}

BOSK_EXPORT void GOMP_parallel_loop_dynamic_start(RegionFunction fn, void* data,
                                                  unsigned num_threads, long start, long end,
                                                  long incr, long chunk) {
  begin_loop(fn, data, num_threads,
             {bounds_of(start, end, incr), clause_schedule(kScheduleDynamic, chunk)});
}

BOSK_EXPORT void GOMP_parallel_loop_guided_start(RegionFunction fn, void* data,
                                                 unsigned num_threads, long start, long end,
                                                 long incr, long chunk) {
  begin_loop(fn, data, num_threads,
             {bounds_of(start, end, incr), clause_schedule(kScheduleGuided, chunk)});
}

BOSK_EXPORT void GOMP_parallel_loop_runtime_start(RegionFunction fn, void* data,
                                                  unsigned num_threads, long start, long end,
                                                  long incr) {
  begin_loop(fn, data, num_threads,
             {bounds_of(start, end, incr), runtime_schedule(current_task())});
}

// ---- sections, reductions

BOSK_EXPORT void GOMP_parallel_sections(RegionFunction fn, void* data, unsigned num_threads,
                                        unsigned count, unsigned flags) {
  parallel(fn, data, num_threads, flags & 7, prepare_sections, &count);
}

BOSK_EXPORT void GOMP_parallel_sections_start(RegionFunction fn, void* data, unsigned num_threads,
                                              unsigned count) {
  parallel_begin(fn, data, num_threads, prepare_sections, &count);
}

BOSK_EXPORT unsigned GOMP_parallel_reductions(RegionFunction fn, void* data, unsigned num_threads,
                                              unsigned flags) {
  return parallel_reductions(fn, data, num_threads, flags);
}
