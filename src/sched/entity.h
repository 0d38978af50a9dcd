// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Entities (threads and bubbles) and the holders that they are on.
#pragma once

#include <stdint.h>

namespace bosk::sched {

struct Holder;

enum class EntityKind : uint8_t { kThread, kBubble };

constexpr int kDefaultPriority = 0;

/// A thread or a bubble. On exactly one holder at a time, or on none while it runs; the holder's
/// lock guards `holder`, `next` and `previous`.
struct Entity {
  Holder* holder = nullptr;
  Entity* next = nullptr;
  Entity* previous = nullptr;
  int32_t priority = kDefaultPriority;
  EntityKind kind = EntityKind::kThread;
};

}  // namespace bosk::sched
