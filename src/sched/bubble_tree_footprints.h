// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The footprints of an entity and all that belongs to it, for who moves their memory.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

struct TreeEntity;

/// The first `room` of them that there are. Returns how many there are.
uint32_t footprints_in(TreeEntity& entity, const std::atomic<uint64_t>** footprints, uint32_t room);

}  // namespace bosk::sched
