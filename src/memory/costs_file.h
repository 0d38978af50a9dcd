// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measured costs, kept between runs: one file for each machine under the XDG cache folder.
//
//   bosk-costs 2                                        format and version
//   machine 0123456789abcdef                            fingerprint
//   access FROM TO read|write alone|node|machine LATENCY BANDWIDTH SOURCE     ps, bytes/us
//   migration FROM TO base|huge FIXED PER-PAGE SOURCE                         ps, ps
//   threads FIXED EACH SOURCE                                                 ps, ps
//   next-touch MARK MARK-PAGE TOUCH-PAGE SOURCE                               ps, ps, ps
//   end LINES                                           a file that was cut has none
//
// Nodes are the kernel's numbers, because a process that may use a part of the machine numbers them otherwise. Only
// whole numbers: a locale does not matter. The file is replaced as a whole.
#pragma once

#include "memory/costs.h"
#include "topology/error.h"

namespace bosk::memory {

/// What costs depend on: processor, nodes with their CPUs, memory and distances, kernel. Independent of the affinity
/// mask. Reads some files of /proc and /sys. `root`: null, or a folder that they are under.
uint64_t machine_fingerprint(const char* root = nullptr);

/// Where the costs of this machine are kept: $XDG_CACHE_HOME/bosk/ or ~/.cache/bosk/. False: neither variable is
/// set to an absolute path, or the path is too long; `error` says so.
bool costs_path(uint64_t fingerprint, char* path, size_t size, topology::Error* error);

enum class CostsFile : uint8_t { kRead, kMissing, kBad };
/// Fills in the figures of nodes that `machine` has. kBad: `error` is one line; the table is as it was.
CostsFile read_costs(const char* path, uint64_t fingerprint, const topology::Machine& machine,
                     CostTable* table, topology::Error* error);

/// Writes what was measured (kMeasured and kAlike). Makes the folder. False: `error` says why; a file that was there is
/// untouched.
bool write_costs(const char* path, uint64_t fingerprint, const topology::Machine& machine,
                 const CostTable& table, topology::Error* error);

/// The costs of a machine: what was measured, if it is this one and there is a good file, else estimates. Null: no
/// memory, or too many nodes. A bad file is said in one line. Never measures.
CostTable* load_costs(const topology::Machine& machine);

}  // namespace bosk::memory
