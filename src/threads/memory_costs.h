// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The costs of memory on this process's machine.
#pragma once

#include "memory/costs.h"

namespace bosk::threads {

/// Read at the first call, together with the machine; in use by memory/ from then on. Null: no memory, no thread to read
/// the machine, or too many nodes. Preemption is on.
const memory::CostTable* memory_costs();

}  // namespace bosk::threads
