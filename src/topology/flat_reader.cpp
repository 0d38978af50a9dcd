// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The last resort: a machine of one level, made of the affinity mask alone.
#include <stdio.h>

#include "topology/raw_machine.h"

namespace bosk::topology {

bool read_flat(const ProcessCpus& cpus, RawMachine* raw, Error* error) {
  raw->reader = "flat";
  raw->this_system = true;
  snprintf(raw->source, sizeof raw->source, "this machine");
  bool ok = raw->add(Kind::kMachine, kNone, kNone) != kNone;
  for (uint32_t cpu = cpus.next(0); ok && cpu != ProcessCpus::kNoCpu; cpu = cpus.next(cpu + 1)) {
    ok = raw->add(Kind::kPu, 0, cpu) != kNone;
  }
  return ok || error->set("out of memory while reading the affinity mask");
}

}  // namespace bosk::topology
