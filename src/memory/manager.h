// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory manager of this process, made at its first use.
#pragma once

#include "memory/area_table.h"

namespace bosk::memory {

/// The table of areas; null: nobody has called start() yet. Never changes after that.
AreaTable* areas();

/// The table, made for this machine by whoever comes first. Null: no memory. Preemption is on.
AreaTable* start(const topology::Machine& machine);

}  // namespace bosk::memory
