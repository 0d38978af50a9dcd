// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A source of remote accesses (locality/watch.h): what the hardware counts.
#pragma once

#include "locality/watch.h"

namespace bosk::threads {

extern const locality::RemoteSource worker_counters;

}  // namespace bosk::threads
