// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_parallel, GOMP_barrier and the protocol of old compilers.
#include "abi/gomp/export.h"
#include "omp/team.h"

using namespace bosk;

BOSK_EXPORT void GOMP_parallel(void (*fn)(void*), void* data, unsigned num_threads,
                               unsigned flags) {
  omp::parallel(fn, data, num_threads, flags & 7);
}

BOSK_EXPORT void GOMP_parallel_start(void (*fn)(void*), void* data, unsigned num_threads) {
  omp::parallel_begin(fn, data, num_threads);
}

BOSK_EXPORT void GOMP_parallel_end() { omp::parallel_end(); }

BOSK_EXPORT void GOMP_barrier() { omp::barrier(); }
