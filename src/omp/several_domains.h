// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Does it matter on this machine who is beside whom?
#pragma once

#include "topology/machine.h"

namespace bosk::omp {

/// Do some cores share what others do not? If not, all distances are equal but for siblings on a core.
bool has_several_domains(const topology::Machine& machine);

/// The same of this machine without reading all of it: a dozen small files. May say yes where a closer
/// look says no.
bool may_have_several_domains();

/// Are there several memory nodes, or last-level caches that several cores share?
bool has_several_memories(const topology::Machine& machine);

}  // namespace bosk::omp
