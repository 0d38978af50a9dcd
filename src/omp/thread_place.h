// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the calling thread runs in terms of OpenMP places, for the routines that ask.
#pragma once

#include "omp/affinity_format.h"
#include "omp/places.h"

namespace bosk::omp {

struct ImplicitTask;

/// The place and partition of a member; partition_count 0: threads are not bound. `member` may be null:
/// a thread that is in no team.
MemberPlace place_of(const ImplicitTask* member);
MemberPlace current_place();

/// What the calling thread's fields in an affinity format stand for; `host` as in
/// fill_process_values().
void fill_thread_values(AffinityValues* values, char* host);

}  // namespace bosk::omp
