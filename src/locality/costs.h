// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The costs of memory on this process's machine: one table, by which everybody decides.
#pragma once

#include "memory/costs.h"

namespace bosk::locality {

/// Read at the first call; in use by memory/ from then on. Null: there is no memory, or the machine has too many nodes. Preemption
/// is on.
const memory::CostTable* costs_of(const topology::Machine& machine);

}  // namespace bosk::locality
