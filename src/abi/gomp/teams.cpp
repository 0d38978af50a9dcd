// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_teams*, and the omp_* routines of leagues, C and Fortran.
#include <stdint.h>

#include "abi/gomp/export.h"
#include "omp/environment.h"
#include "omp/host_teams.h"
#include "omp/routines.h"

using namespace bosk::omp;

// The flags are for offloading.
BOSK_EXPORT void GOMP_teams_reg(void (*fn)(void*), void* data, unsigned num_teams,
                                unsigned thread_limit, unsigned /*flags*/) {
  run_league(fn, data, num_teams, thread_limit);
}

BOSK_EXPORT void GOMP_teams(unsigned /*num_teams*/, unsigned thread_limit) {
  limit_threads(thread_limit);
}

BOSK_EXPORT bool GOMP_teams4(unsigned num_teams_low, unsigned /*num_teams_high*/,
                             unsigned thread_limit, bool first) {
  return next_team(num_teams_low, thread_limit, first);
}

BOSK_EXPORT int omp_get_team_num() { return clamped_int(league_position().team_num); }
BOSK_EXPORT int omp_get_num_teams() { return clamped_int(league_position().num_teams); }
BOSK_EXPORT int omp_get_max_teams() { return clamped_int(num_teams_icv()); }
BOSK_EXPORT int omp_get_teams_thread_limit() { return clamped_int(teams_thread_limit_icv()); }
BOSK_EXPORT_ALIAS(omp_get_team_num) int omp_get_team_num_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_num_teams) int omp_get_num_teams_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_max_teams) int omp_get_max_teams_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_teams_thread_limit) int omp_get_teams_thread_limit_() noexcept;

BOSK_EXPORT void omp_set_num_teams(int n) { set_num_teams_icv(n); }
BOSK_EXPORT void omp_set_num_teams_(const int32_t* n) { set_num_teams_icv(*n); }
BOSK_EXPORT void omp_set_num_teams_8_(const int64_t* n) { set_num_teams_icv(saturated_int(*n)); }

BOSK_EXPORT void omp_set_teams_thread_limit(int n) { set_teams_thread_limit_icv(n); }
BOSK_EXPORT void omp_set_teams_thread_limit_(const int32_t* n) { set_teams_thread_limit_icv(*n); }
BOSK_EXPORT void omp_set_teams_thread_limit_8_(const int64_t* n) {
  set_teams_thread_limit_icv(saturated_int(*n));
}
