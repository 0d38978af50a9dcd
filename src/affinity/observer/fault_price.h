// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What we do to a program costs it on this machine: measured, in a process of our own, with pages of our own.
#pragma once

namespace bosk::affinity {

struct FaultPrice {
  double fault_ns;  ///< of a first write to a page that is write-protected asynchronously
  double event_ns;  ///< what perf's event adds to a fault
  double
      interrupt_ns;  ///< of arming a chunk, for each CPU that runs the program: it has to forget what it knew of the pages
};

/// Takes 2 ms. What cannot be had here is given as on the machine that bosk was developed on; without events these cost nothing.
FaultPrice measure_fault_price(bool with_events);

}  // namespace bosk::affinity
