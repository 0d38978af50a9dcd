// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_sections_*.
#include "omp/sections.h"

#include "abi/gomp/export.h"

using namespace bosk::omp;

BOSK_EXPORT unsigned GOMP_sections_start(unsigned count) {
  return sections_start(current_member(), count);
}

BOSK_EXPORT unsigned GOMP_sections2_start(unsigned count, uintptr_t* reductions, void** mem) {
  return sections_start_with_extras(current_member(), count, {reductions, mem});
}

BOSK_EXPORT unsigned GOMP_sections_next() { return sections_next(current_member()); }

BOSK_EXPORT void GOMP_sections_end() {
  loop_finish(current_member());
  barrier();
}

BOSK_EXPORT void GOMP_sections_end_nowait() { loop_finish(current_member()); }
