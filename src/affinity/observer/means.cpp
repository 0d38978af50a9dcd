// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/means.h"

#include "affinity/observer/write_protection.h"

namespace bosk::affinity {

void describe(const Means& means, bool balances, ObserverCounts* counts) {
  const bool protects = WriteProtection::is_there();
  if (!means.has_events && protects) {
    counts->source = "asynchronous write-protection and counts of faults by thread";
    counts->blind = "reads and first touches";
  } else if (!means.has_events) {
    counts->can_see = false;
    counts->source = "nobody";
    counts->blind = "anything: it takes Linux 6.7, or page-fault events";
  } else if (protects || means.has_soft_dirty) {
    counts->source = protects ? "asynchronous write-protection and page-fault events"
                              : "soft-dirty marks and page-fault events";
    counts->blind = "reads of memory that was written before";
  } else {
    counts->source = "page-fault events";
    counts->blind =
        "all but first touches: more takes Linux 6.7, or a kernel with soft-dirty marks";
  }
  if (!means.has_events || !balances) return;
  counts->source += ", and the hint faults of the kernel's balancing";
  counts->blind = "reads between two hint faults";
}

}  // namespace bosk::affinity
