// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cancellation of constructs, and cancellation points.
#pragma once

#include "omp/team.h"

namespace bosk::omp {

/// The construct kinds as GOMP_cancel numbers them; bits of Team::cancel_bits, too.
enum CancelKind : uint32_t {
  kCancelParallel = 1,
  kCancelLoop = 2,
  kCancelSections = 4,
  kCancelTaskgroup = 8,
};

/// Cancels the innermost construct of this kind; true if cancellation is on at all (OMP_CANCELLATION),
/// whereupon the caller leaves the construct.
bool cancel(uint32_t kind);

/// True if the innermost construct of this kind was cancelled.
bool cancellation_point(uint32_t kind);

/// A barrier that ends a construct which can be cancelled: true if the region was cancelled.
bool end_cancellable(ImplicitTask* member);

}  // namespace bosk::omp
