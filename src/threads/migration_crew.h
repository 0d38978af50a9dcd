// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The crew of large migrations (memory/migration.h): workers of the home, on the node that pages go to.
#pragma once

#include "memory/migration.h"

namespace bosk::threads {

/// Of the process; constant.
const memory::Crew* migration_crew();

}  // namespace bosk::threads
