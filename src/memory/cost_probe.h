// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measures what memory costs on the machine that this runs on. Takes seconds, all CPUs of the mask and a share of
// the free memory: never done by itself inside of a program, only by `bosk topo --measure` and who asks for it.
#pragma once

#include "memory/costs.h"
#include "topology/error.h"

namespace bosk::memory {

struct CostProbe {
  /// Short samples and small batches: a second or so for each pair of nodes, and good to a tenth or two.
  bool quick = false;
  /// Called between measurements: `done` of `total`, and what comes next (a line, valid during the call). May be null.
  void (*progress)(void* context, uint32_t done, uint32_t total, const char* next) = nullptr;
  void* context = nullptr;
};

/// Fills in what can be measured, over what was there. Call it on a thread that may be moved about: its affinity is
/// put back at the end. False: nothing can be measured here (an invented machine, an emulated one, no memory); `error`
/// says why.
bool measure_costs(const topology::Machine& machine, const CostProbe& probe, CostTable* table,
                   topology::Error* error);

/// Instructions are emulated: times say nothing about memory. `root` as for machine_fingerprint().
bool machine_is_emulated(const char* root = nullptr);

/// The line through (x, y) with the least squares of relative errors: y = fixed + each · x; neither is below
/// `least`. For `count` >= 1.
struct Line {
  double fixed;
  double each;
};
Line fit_line(const double* x, const double* y, uint32_t count, double least);

}  // namespace bosk::memory
