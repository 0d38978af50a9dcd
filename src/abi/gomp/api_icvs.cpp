// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// omp_* routines that ask for and set ICVs; with the Fortran names of those without arguments.
#include "abi/gomp/export.h"
#include "omp/display_env.h"
#include "omp/routines.h"

using namespace bosk::omp;

BOSK_EXPORT void omp_set_num_threads(int n) { set_num_threads(changeable_icvs(), n); }
BOSK_EXPORT void omp_set_dynamic(int on) { changeable_icvs()->dynamic = on != 0; }
BOSK_EXPORT void omp_set_nested(int on) { set_nested(changeable_icvs(), on != 0); }
BOSK_EXPORT void omp_set_max_active_levels(int levels) {
  if (levels >= 0) set_max_active_levels(changeable_icvs(), levels);
}
BOSK_EXPORT void omp_set_schedule(uint32_t kind, int chunk) {
  set_schedule(changeable_icvs(), kind, chunk);
}

BOSK_EXPORT int omp_get_max_threads() {
  expect_regions();
  return clamped_int(known_icvs().nthreads);
}
BOSK_EXPORT int omp_get_dynamic() { return known_icvs().dynamic; }
BOSK_EXPORT int omp_get_nested() {
  return nested(known_icvs(), static_cast<uint32_t>(active_level()));
}
BOSK_EXPORT int omp_get_max_active_levels() { return known_icvs().max_active_levels; }
BOSK_EXPORT int omp_get_thread_limit() { return clamped_int(known_icvs().thread_limit); }
BOSK_EXPORT void omp_get_schedule(uint32_t* kind, int* chunk) {
  const DataIcvs& icvs = known_icvs();
  *kind = icvs.run_sched;
  *chunk = icvs.run_sched_chunk;
}
BOSK_EXPORT int omp_get_proc_bind() { return static_cast<int>(known_icvs().bind); }
BOSK_EXPORT int omp_get_cancellation() { return process_icvs().cancellation; }
BOSK_EXPORT int omp_get_max_task_priority() { return process_icvs().max_task_priority; }

BOSK_EXPORT_ALIAS(omp_get_max_threads) int omp_get_max_threads_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_dynamic) int omp_get_dynamic_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_nested) int omp_get_nested_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_max_active_levels) int omp_get_max_active_levels_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_thread_limit) int omp_get_thread_limit_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_proc_bind) int omp_get_proc_bind_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_cancellation) int omp_get_cancellation_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_max_task_priority) int omp_get_max_task_priority_() noexcept;

BOSK_EXPORT void omp_display_env(int verbose) { display_env(verbose != 0); }
