// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_cancel*, and the ends of constructs that can be cancelled.
#include "omp/cancel.h"

#include "abi/gomp/export.h"
#include "omp/loop.h"

using namespace bosk::omp;

BOSK_EXPORT bool GOMP_cancel(int which, bool do_cancel) {
  const auto kind = static_cast<uint32_t>(which);
  return do_cancel ? cancel(kind) : cancellation_point(kind);
}

BOSK_EXPORT bool GOMP_cancellation_point(int which) {
  return cancellation_point(static_cast<uint32_t>(which));
}

BOSK_EXPORT bool GOMP_barrier_cancel() { return end_cancellable(current_member()); }

BOSK_EXPORT bool GOMP_loop_end_cancel() {
  ImplicitTask* member = current_member();
  loop_finish(member);
  return end_cancellable(member);
}

BOSK_EXPORT_ALIAS(GOMP_loop_end_cancel) bool GOMP_sections_end_cancel();
