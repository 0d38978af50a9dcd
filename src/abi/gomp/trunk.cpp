// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_* that GCC's trunk calls where GCC 16 and before called others: barriers that say what they are for,
// and the questions who a thread is and how many there are in one. The forms with _start, _dispatch, _end
// and _with_end are for programs that tools watch (-fopenmp-ompt); nobody watches here.
#include <stdint.h>

#include "abi/gomp/export.h"
#include "omp/cancel.h"
#include "omp/host_teams.h"
#include "omp/loop.h"
#include "omp/routines.h"

using namespace bosk::omp;

namespace {

/// Two numbers in the registers in which GCC returns a complex one.
using Pair = __complex__ int;

Pair pair(int count, int number) {
  Pair both;
  __real__ both = count;
  __imag__ both = number;
  return both;
}

}  // namespace

// The kind: end of a region, of a worksharing construct, or a barrier of the program's.
BOSK_EXPORT void GOMP_barrier_ext(int /*kind*/) { barrier(); }
BOSK_EXPORT bool GOMP_barrier_cancel_ext(int /*kind*/) { return end_cancellable(current_member()); }

BOSK_EXPORT bool GOMP_has_masked_thread_num(int filter) { return thread_num() == filter; }
BOSK_EXPORT bool GOMP_has_masked_thread_num_with_end(int filter) { return thread_num() == filter; }
BOSK_EXPORT void GOMP_masked_end() {}

BOSK_EXPORT Pair GOMP_loop_static_worksharing(unsigned long long /*iterations*/) {
  return pair(num_threads(), thread_num());
}
BOSK_EXPORT Pair GOMP_loop_static_worksharing_start(unsigned long long /*iterations*/) {
  return pair(num_threads(), thread_num());
}
BOSK_EXPORT void GOMP_loop_static_worksharing_dispatch(unsigned long long /*start*/,
                                                       unsigned long long /*iterations*/) {}
BOSK_EXPORT void GOMP_loop_static_worksharing_end() {}

BOSK_EXPORT Pair GOMP_distribute_static_worksharing(unsigned long long /*iterations*/) {
  const auto position = league_position();
  return pair(clamped_int(position.num_teams), clamped_int(position.team_num));
}
BOSK_EXPORT Pair GOMP_distribute_static_worksharing_start(unsigned long long /*iterations*/) {
  const auto position = league_position();
  return pair(clamped_int(position.num_teams), clamped_int(position.team_num));
}
BOSK_EXPORT void GOMP_distribute_static_worksharing_dispatch(unsigned long long /*start*/,
                                                             unsigned long long /*iterations*/) {}
BOSK_EXPORT void GOMP_distribute_static_worksharing_end() {}
