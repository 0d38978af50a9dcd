// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sections: a dynamic loop over section numbers 1 .. count; 0 means that none is left.
#pragma once

#include "omp/loop.h"

namespace bosk::omp {

uint32_t sections_start(ImplicitTask* member, uint32_t count);
uint32_t sections_start_with_extras(ImplicitTask* member, uint32_t count, ConstructExtras extras);

/// For the combined construct; the members call sections_next() without a start.
void sections_preset(Team* team, uint32_t count);

uint32_t sections_next(ImplicitTask* member);

}  // namespace bosk::omp
