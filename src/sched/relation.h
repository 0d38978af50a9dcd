// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the entities of a bubble have to do with each other (2005 §3.1, 2007 §3.1).
#pragma once

#include <stdint.h>

namespace bosk::sched {

/// The affinity that a bubble stands for. Policies obey it: docs/policies.md.
enum class Relation : uint8_t {
  kNone,
  kDataSharing,          ///< they work on the same data
  kCollective,           ///< they meet often: barriers, reductions
  kSmtSymbiosis,         ///< they run well on the PUs of one core
  kGang,                 ///< they run at the same time or not at all
  kSequence,             ///< one after another, in the order of insertion
  kMemoryBesideCompute,  ///< those bound by memory and those bound by computing share caches
};
constexpr uint8_t kRelations = 7;

/// What bounds a thread's speed, for kMemoryBesideCompute. Of threads of which nobody told, the first
/// half of a bubble counts as bound by memory.
enum class Demand : uint8_t { kUnknown, kCompute, kMemory };

}  // namespace bosk::sched
