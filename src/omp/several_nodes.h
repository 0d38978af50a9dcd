// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Does it matter on which memory node a member works, and which one is it on?
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::omp {

namespace detail {
enum class Nodes : uint8_t { kUnknown, kOne, kSeveral };
extern std::atomic<Nodes> nodes;  ///< tests write it
}  // namespace detail

/// The process's CPUs are on several memory nodes. The first call looks at /sys: some 20 µs. Preemption
/// must be on.
bool several_nodes();

/// The memory node of the calling kernel thread, from 1 on; 0: the kernel does not say.
uint32_t node_here();

}  // namespace bosk::omp
