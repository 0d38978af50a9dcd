// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a fault that we cause costs a program on this machine: measured, in a process of our own, with pages of our own.
#pragma once

namespace bosk::affinity {

struct FaultPrice {
  double fault_ns;  ///< of a first write to a page that is write-protected asynchronously
  double event_ns;  ///< what perf's event adds to a fault
};

/// Takes a millisecond. What cannot be had here is given as on the machine that bosk was developed on (750 and 500).
FaultPrice measure_fault_price();

}  // namespace bosk::affinity
