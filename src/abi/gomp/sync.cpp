// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_critical_* and GOMP_atomic_*.
#include "abi/gomp/export.h"
#include "omp/critical.h"

using namespace bosk::omp;

BOSK_EXPORT void GOMP_critical_start() { lock(unnamed_critical()); }
BOSK_EXPORT void GOMP_critical_end() { unlock(unnamed_critical()); }

BOSK_EXPORT void GOMP_critical_name_start(void** name) { lock(named_critical(name)); }
BOSK_EXPORT void GOMP_critical_name_end(void** name) { unlock(named_critical(name)); }

BOSK_EXPORT void GOMP_atomic_start() { lock(wide_atomic()); }
BOSK_EXPORT void GOMP_atomic_end() { unlock(wide_atomic()); }
