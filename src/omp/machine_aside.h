// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the machine for a caller whose stack may be small.
#pragma once

#include "topology/machine.h"

namespace bosk::omp {

/// topology::process_machine(), called on a thread of its own: the caller may be a member on a stack of
/// any size. Null: there is no thread to be had. Each call makes a thread, so keep the answer.
/// Preemption must be on.
const topology::Machine* read_machine_aside();

/// True: the caller is asked for something by what reads the machine, as a malloc of the program's that is made of ours is:
/// it must not ask for the machine.
bool is_reading_machine();

}  // namespace bosk::omp
