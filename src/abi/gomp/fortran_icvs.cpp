// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fortran's names of the routines of threads, levels and ICVs that have arguments: these come by
// reference, LOGICALs and INTEGERs as 4 bytes, in the _8_ forms as 8.
#include "abi/gomp/export.h"
#include "omp/display_env.h"
#include "omp/routines.h"

using namespace bosk::omp;

BOSK_EXPORT void omp_set_num_threads_(const int32_t* n) { set_num_threads(changeable_icvs(), *n); }
BOSK_EXPORT void omp_set_num_threads_8_(const int64_t* n) {
  set_num_threads(changeable_icvs(), saturated_int(*n));
}

BOSK_EXPORT void omp_set_dynamic_(const int32_t* on) { changeable_icvs()->dynamic = *on != 0; }
BOSK_EXPORT void omp_set_dynamic_8_(const int64_t* on) { changeable_icvs()->dynamic = *on != 0; }

BOSK_EXPORT void omp_set_nested_(const int32_t* on) { set_nested(changeable_icvs(), *on != 0); }
BOSK_EXPORT void omp_set_nested_8_(const int64_t* on) { set_nested(changeable_icvs(), *on != 0); }

BOSK_EXPORT void omp_set_max_active_levels_(const int32_t* levels) {
  if (*levels >= 0) set_max_active_levels(changeable_icvs(), *levels);
}
BOSK_EXPORT void omp_set_max_active_levels_8_(const int64_t* levels) {
  if (*levels >= 0) set_max_active_levels(changeable_icvs(), saturated_int(*levels));
}

BOSK_EXPORT void omp_set_schedule_(const uint32_t* kind, const int32_t* chunk) {
  set_schedule(changeable_icvs(), *kind, *chunk);
}
BOSK_EXPORT void omp_set_schedule_8_(const uint32_t* kind, const int64_t* chunk) {
  set_schedule(changeable_icvs(), *kind, saturated_int(*chunk));
}

// Fortran has no constant for the monotonic bit: a program that compares kinds must not see it.
BOSK_EXPORT void omp_get_schedule_(uint32_t* kind, int32_t* chunk) {
  const DataIcvs& icvs = known_icvs();
  *kind = icvs.run_sched & ~kScheduleMonotonic;
  *chunk = icvs.run_sched_chunk;
}
BOSK_EXPORT void omp_get_schedule_8_(uint32_t* kind, int64_t* chunk) {
  const DataIcvs& icvs = known_icvs();
  *kind = icvs.run_sched & ~kScheduleMonotonic;
  *chunk = icvs.run_sched_chunk;
}

BOSK_EXPORT int32_t omp_get_ancestor_thread_num_(const int32_t* level) {
  return ancestor_thread_num(*level);
}
BOSK_EXPORT int32_t omp_get_ancestor_thread_num_8_(const int64_t* level) {
  return ancestor_thread_num(*level);
}
BOSK_EXPORT int32_t omp_get_team_size_(const int32_t* level) { return ancestor_team_size(*level); }
BOSK_EXPORT int32_t omp_get_team_size_8_(const int64_t* level) {
  return ancestor_team_size(*level);
}

BOSK_EXPORT void omp_display_env_(const int32_t* verbose) { display_env(*verbose != 0); }
BOSK_EXPORT void omp_display_env_8_(const int64_t* verbose) { display_env(*verbose != 0); }
