// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/look_gap.h"

#include <algorithm>

#include "sched/tuning.h"

namespace bosk::sched {

void LookGap::measure(uint64_t gap) {
  measures_ = false;
  uint32_t at = count_++;
  for (; at > 0 && measured_[at - 1] > gap; --at) measured_[at] = measured_[at - 1];
  measured_[at] = gap;
  usual_ = measured_[count_ / 2];
}

uint64_t LookGap::end(uint64_t now, bool is_first) {
  const uint64_t cycles_per_us = base::cycles_per_microsecond();
  ended_at_ = now;
  if (is_first && count_ < kMeasured) {
    measures_ = true;
    return 0;
  }
  const uint64_t ns = std::max(tuning::kBetweenLooksNs, 6 * 1000 * usual_ / cycles_per_us);
  asked_ = ns * cycles_per_us / 1000;
  least_ = 4 * usual_;
  return ns;
}

void LookGap::leave_to_ticks() {
  measures_ = false;
  asked_ = UINT64_MAX;
  least_ = tuning::kQuickTickNs * base::cycles_per_microsecond() / 1000;
}

}  // namespace bosk::sched
