// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_single_*.
#include "omp/single.h"

#include "abi/gomp/export.h"

using namespace bosk::omp;

BOSK_EXPORT bool GOMP_single_start() { return single_start(current_member()); }

BOSK_EXPORT void* GOMP_single_copy_start() { return single_copy_start(current_member()); }

BOSK_EXPORT void GOMP_single_copy_end(void* data) { single_copy_end(current_member(), data); }
