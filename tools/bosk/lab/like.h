// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A shape after a machine that hwloc has seen.
#pragma once

#include <string>

#include "bosk/lab/shape.h"

namespace bosk::tools::lab {

/// The shape of the machine in an hwloc XML file, with a line on standard error for each thing that QEMU
/// cannot do. `memory`: what to give to each node instead of its own size: words of --mem, or "" for a
/// gibibyte each, in the proportions of the original. Throws LabError.
Shape shape_like(const std::string& xml, const std::string& memory);

}  // namespace bosk::tools::lab
