// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Task reductions: GOMP_taskgroup_reduction_*, GOMP_task_reduction_remap, GOMP_scope_start and
// GOMP_workshare_task_reduction_unregister.
#include "omp/reduction.h"

#include "abi/gomp/export.h"

using namespace bosk::omp;

BOSK_EXPORT void GOMP_taskgroup_reduction_register(uintptr_t* data) {
  reduction_register(current_task(), data);
}

BOSK_EXPORT void GOMP_taskgroup_reduction_unregister(uintptr_t* data) {
  reduction_unregister(data);
}

BOSK_EXPORT void GOMP_task_reduction_remap(size_t cnt, size_t cntorig, void** ptrs) {
  reduction_remap(current_task(), current_member()->index, cnt, cntorig, ptrs);
}

BOSK_EXPORT void GOMP_scope_start(uintptr_t* reductions) {
  scope_start(current_member(), reductions);
}

BOSK_EXPORT void GOMP_workshare_task_reduction_unregister(bool cancelled) {
  workshare_reduction_end(cancelled);
}
