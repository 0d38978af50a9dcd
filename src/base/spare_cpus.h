// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdint.h>

namespace bosk::base {

/// CPUs of this machine less threads that want one at this moment, strangers' and the calling one included: ≤ 0, and another
/// thread that becomes ready has to wait. A guess: the kernel tells it of the whole machine only, so a thread that may not use
/// all CPUs, or has no /proc, hears of INT32_MAX. Some 5 us, and a descriptor for a moment: where threads begin, not on hot paths.
int32_t spare_cpus();

/// More than none, by an answer of this millisecond: many threads may begin in it.
bool is_a_cpu_free();

}  // namespace bosk::base
