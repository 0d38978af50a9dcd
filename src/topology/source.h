// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a machine comes from, and loading it.
#pragma once

#include <stddef.h>

#include "topology/error.h"
#include "topology/machine.h"
#include "topology/process_cpus.h"

namespace bosk::topology {

/// Who reads this machine. For XML and synthetic sources it is always hwloc.
enum class Reader : uint8_t {
  kAuto,   ///< hwloc; without it sysfs (said once); without that flat
  kHwloc,  ///< hwloc or an error
  kSysfs,  ///< our own reader of /sys/devices/system, or an error
  kFlat,   ///< one level: the PUs of the affinity mask
};

/// A source of a machine. Plain data; the texts must live until load_machine() returns.
struct MachineSource {
  enum class From : uint8_t {
    kThisMachine,
    kXmlFile,    ///< text: path of a file that hwloc wrote (lstopo x.xml)
    kXmlText,    ///< text: the XML itself
    kSynthetic,  ///< text: "node:4 core:4 pu:1" or hwloc's own spelling
    kSysfsTree,  ///< text: a folder that holds a copy of sys/devices/system
  };
  From from = From::kThisMachine;
  const char* text = nullptr;
  /// The XML describes the system we run on (somebody handed it on to save time): its CPU numbers are
  /// real, and the affinity mask applies to it. Other sources than XML ignore this.
  bool describes_this_system = false;
  /// Leave out PUs that the affinity mask forbids. Only for this machine; an invented one has no mask.
  bool restrict_to_process = true;
  /// The mask to use instead of the calling thread's (null). For a caller that read it earlier,
  /// before it bound its threads.
  const ProcessCpus* process_cpus = nullptr;
  Reader reader = Reader::kAuto;
};

/// Reads a machine. Null: it cannot be; `error` says why in one line. On success the caller owns the
/// machine (free_machine). Costs 1-2 ms for this machine, 0.1-2 ms for XML and synthetic ones, so it
/// is done on demand only. Loads libhwloc privately when it is first needed and keeps it loaded.
/// Thread-safe. Calls malloc, dlopen and the file system: never call it with preemption off, nor from
/// a signal handler. Never changes the affinity of the calling thread. Leaves errno undefined.
Machine* load_machine(const MachineSource& source, Error* error);

/// The source that the environment asks for: BOSK_TOPOLOGY_XML=file (with BOSK_TOPOLOGY_THISSYSTEM=1
/// it describes the running system), else BOSK_SYNTHETIC=description, else this machine;
/// BOSK_TOPOLOGY_READER=auto|hwloc|sysfs|flat chooses the reader. Empty values count as unset. Points
/// into the environment. A malformed reader is named on standard error and ignored.
MachineSource machine_source_from_environment();

/// The machine of this process: load_machine(machine_source_from_environment()), read by the first
/// caller and kept until the process ends. If the asked source is bad, that is said once and this
/// machine is taken instead. `process_cpus` as in MachineSource (only the first caller's counts). Never
/// null: with no memory left it says so and exits with status 70. Thread-safe without a lock (two first
/// callers both read, one result is kept); conditions of load_machine().
const Machine* process_machine(const ProcessCpus* process_cpus);

/// XML of the running system, whole (no mask), for a child that loads it with describes_this_system.
/// Returns `size` bytes from malloc, NUL-terminated (`size` does not count the NUL); null: `error` says
/// why. Costs as load_machine().
char* this_system_xml(size_t* size, Error* error);

}  // namespace bosk::topology
