// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether workers have homes on the machine: docs/binding.md.
#pragma once

#include "topology/machine.h"

namespace bosk::omp {

/// The machine whose PUs are the workers' seats; null: the kernel alone decides where they run. Decided by
/// the first caller and kept. Preemption must be on: it may read the machine.
const topology::Machine* machine_of_homes();

}  // namespace bosk::omp
