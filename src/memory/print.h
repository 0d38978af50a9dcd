// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The areas and the nodes as text.
#pragma once

#include "memory/area_table.h"

namespace bosk::memory {

/// One line for each area and each node. Areas that come and go meanwhile may be missing. False: it cannot be
/// written.
bool print(AreaTable& areas, int fd);

}  // namespace bosk::memory
