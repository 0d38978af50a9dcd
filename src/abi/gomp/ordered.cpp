// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_ordered_*.
#include "omp/ordered.h"

#include "abi/gomp/export.h"

using namespace bosk::omp;

BOSK_EXPORT void GOMP_ordered_start() { ordered_enter(current_member()); }
BOSK_EXPORT void GOMP_ordered_end() { ordered_leave(current_member()); }
