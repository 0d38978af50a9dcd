// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the readers hand to the builder: hardware as they found it, nothing folded or numbered yet.
// Private to topology/ (and its tests).
#pragma once

#include <stdint.h>

#include "topology/array.h"
#include "topology/error.h"
#include "topology/machine.h"
#include "topology/process_cpus.h"

namespace bosk::topology {

/// One object. Objects are pushed parents first, siblings left to right; object 0 is the machine.
struct RawObject {
  Kind kind;
  int8_t cpu_kind;    ///< PU: index into RawMachine::cpu_kinds, -1: not known
  uint32_t parent;    ///< object 0: kNone
  uint32_t os_index;  ///< kNone: it has none; a PU must have one
};

/// One NUMA node.
struct RawNode {
  uint32_t object;  ///< what it is attached to
  uint32_t os_index;
  uint64_t bytes;
  bool has_pus;
  char subtype[sizeof(NumaNode::subtype)];
  uint64_t bandwidth = 0;
};

struct RawMachine {
  Array<RawObject> objects;
  Array<RawNode> nodes;
  Array<CpuKind> cpu_kinds;  ///< n_pus is filled by the builder
  Array<uint32_t>
      distances;          ///< nodes.size², in the order of `nodes`; 0: not told; empty: none told
  Array<NodeLink> links;  ///< nodes.size², likewise; empty: none told
  bool this_system = false;
  const char* reader = "";
  char source[200] = {};

  /// Returns the new object's index, or kNone when out of memory.
  uint32_t add(Kind kind, uint32_t parent, uint32_t os_index, int8_t cpu_kind = -1) {
    const RawObject object{kind, cpu_kind, parent, os_index};
    return objects.push(object) ? objects.size - 1 : kNone;
  }
};

/// Most PUs, and most NUMA nodes (Linux has at most 1,024; their distances are a square).
constexpr uint32_t kMaxPus = 1u << 16;
constexpr uint32_t kMaxNodes = 1024;

/// Prunes what `allowed` forbids (null: nothing), folds levels of arity 1, numbers everything and lays
/// it out in one block. Null: `error` says why. O(objects × kinds + nodes²).
Machine* build_machine(const RawMachine& raw, const ProcessCpus* allowed, Error* error);

/// The readers. True: `raw` is filled.
struct MachineSource;
bool read_with_hwloc(const MachineSource& source, RawMachine* raw, Error* error);
/// `root`: null for this system's /sys, else a folder that holds sys/devices/system.
bool read_sysfs(const char* root, RawMachine* raw, Error* error);
bool read_flat(const ProcessCpus& cpus, RawMachine* raw, Error* error);

}  // namespace bosk::topology
