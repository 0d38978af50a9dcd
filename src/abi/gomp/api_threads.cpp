// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// omp_* routines that ask about threads, teams and levels; with their Fortran names.
#include "abi/gomp/export.h"
#include "omp/environment.h"
#include "omp/places.h"
#include "omp/region.h"
#include "omp/routines.h"

using namespace bosk::omp;

// Fortran's names of routines without arguments are the same code.

BOSK_EXPORT int omp_get_thread_num() { return thread_num(); }
BOSK_EXPORT int omp_get_num_threads() { return num_threads(); }
BOSK_EXPORT int omp_get_level() { return level(); }
BOSK_EXPORT int omp_get_active_level() { return active_level(); }
BOSK_EXPORT int omp_in_parallel() { return active_level() > 0; }
BOSK_EXPORT int omp_in_final() { return in_final_task(); }
BOSK_EXPORT int omp_in_explicit_task() { return in_explicit_task(); }
BOSK_EXPORT int omp_get_num_procs() {
  // A thread that is bound to a place has all of the process's processors to ask for, one that the
  // program has bound itself has not.
  const ProcessIcvs& process = process_icvs();
  return clamped_int(process.places->count() != 0 ? process.available_cpus : processors_now());
}
BOSK_EXPORT int omp_get_supported_active_levels() { return kSupportedActiveLevels; }

BOSK_EXPORT_ALIAS(omp_get_thread_num) int omp_get_thread_num_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_num_threads) int omp_get_num_threads_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_level) int omp_get_level_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_active_level) int omp_get_active_level_() noexcept;
BOSK_EXPORT_ALIAS(omp_in_parallel) int omp_in_parallel_() noexcept;
BOSK_EXPORT_ALIAS(omp_in_final) int omp_in_final_() noexcept;
BOSK_EXPORT_ALIAS(omp_in_explicit_task) int omp_in_explicit_task_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_num_procs) int omp_get_num_procs_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_supported_active_levels) int omp_get_supported_active_levels_() noexcept;

BOSK_EXPORT int omp_get_ancestor_thread_num(int level) { return ancestor_thread_num(level); }
BOSK_EXPORT int omp_get_team_size(int level) { return ancestor_team_size(level); }
