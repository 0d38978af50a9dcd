// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chooses the reader, applies the affinity mask, keeps the machine of the process.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/message.h"
#include "topology/raw_machine.h"
#include "topology/source.h"

namespace bosk::topology {
namespace {

constexpr int kExitSoftware = 70;

/// The mask that counts for a source: the caller's, or the calling thread's, read once.
class Mask {
 public:
  Mask() = default;
  Mask(const Mask&) = delete;
  Mask& operator=(const Mask&) = delete;
  ~Mask() { free_process_cpus(&own_); }

  bool get(const MachineSource& source, const ProcessCpus** cpus, Error* error) {
    *cpus = source.process_cpus;
    if (*cpus != nullptr) return true;
    if (own_.n_words == 0 && !load_process_cpus(&own_, error)) return false;
    *cpus = &own_;
    return true;
  }

 private:
  ProcessCpus own_;
};

/// hwloc, then sysfs, then flat: as far as the source allows.
bool read_this_machine(const MachineSource& source, Mask* mask, RawMachine* raw, Error* error) {
  static base::SayOnce said_sysfs;
  static base::SayOnce said_flat;
  if (source.reader == Reader::kHwloc) return read_with_hwloc(source, raw, error);
  if (source.reader == Reader::kSysfs) return read_sysfs(nullptr, raw, error);
  if (source.reader == Reader::kAuto) {
    if (read_with_hwloc(source, raw, error)) return true;
    const bool first = said_sysfs.first();
    if (first) base::say("%s: reading this machine from /sys instead", error->text);
    raw->objects.size = raw->nodes.size = raw->cpu_kinds.size = raw->distances.size = 0;
    if (read_sysfs(nullptr, raw, error)) return true;
    if (said_flat.first()) base::say("%s: taking this machine as flat", error->text);
    raw->objects.size = raw->nodes.size = raw->cpu_kinds.size = raw->distances.size = 0;
  }
  const ProcessCpus* cpus;
  return mask->get(source, &cpus, error) && read_flat(*cpus, raw, error);
}

bool read_machine(const MachineSource& source, Mask* mask, RawMachine* raw, Error* error) {
  switch (source.from) {
    case MachineSource::From::kThisMachine:
      return read_this_machine(source, mask, raw, error);
    case MachineSource::From::kSysfsTree:
      return read_sysfs(source.text, raw, error);
    default:
      return read_with_hwloc(source, raw, error);
  }
}

const char* setting(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && value[0] != '\0' ? value : nullptr;
}

}  // namespace

Machine* load_machine(const MachineSource& source, Error* error) {
  error->text[0] = '\0';
  Mask mask;
  RawMachine raw;
  if (!read_machine(source, &mask, &raw, error)) return nullptr;
  const ProcessCpus* allowed = nullptr;
  if (raw.this_system && source.restrict_to_process && !mask.get(source, &allowed, error)) {
    return nullptr;
  }
  return build_machine(raw, allowed, error);
}

MachineSource machine_source_from_environment() {
  MachineSource source;
  if (const char* file = setting("BOSK_TOPOLOGY_XML")) {
    source.from = MachineSource::From::kXmlFile;
    source.text = file;
    const char* ours = setting("BOSK_TOPOLOGY_THISSYSTEM");
    source.describes_this_system = ours != nullptr && strcmp(ours, "0") != 0;
  } else if (const char* description = setting("BOSK_SYNTHETIC")) {
    source.from = MachineSource::From::kSynthetic;
    source.text = description;
  }
  if (const char* reader = setting("BOSK_TOPOLOGY_READER")) {
    if (strcasecmp(reader, "hwloc") == 0) {
      source.reader = Reader::kHwloc;
    } else if (strcasecmp(reader, "sysfs") == 0) {
      source.reader = Reader::kSysfs;
    } else if (strcasecmp(reader, "flat") == 0) {
      source.reader = Reader::kFlat;
    } else if (strcasecmp(reader, "auto") != 0) {
      static base::SayOnce said;
      if (said.first()) {
        base::say("BOSK_TOPOLOGY_READER=%.60s is not known: use auto, hwloc, sysfs or flat",
                  reader);
      }
    }
  }
  return source;
}

const Machine* process_machine(const ProcessCpus* process_cpus) {
  static Machine* kept;  // set once, by whoever is first
  // Acquire: pairs with the release below, so that the tables are seen filled.
  Machine* machine = __atomic_load_n(&kept, __ATOMIC_ACQUIRE);
  if (machine != nullptr) return machine;

  static base::SayOnce said;
  MachineSource source = machine_source_from_environment();
  source.process_cpus = process_cpus;
  Error error;
  machine = load_machine(source, &error);
  if (machine == nullptr && source.from != MachineSource::From::kThisMachine) {
    if (said.first()) base::say("%s; using this machine", error.text);
    source.from = MachineSource::From::kThisMachine;
    machine = load_machine(source, &error);
  }
  if (machine == nullptr && source.reader != Reader::kFlat) {
    if (said.first()) base::say("%s; taking this machine as flat", error.text);
    source.reader = Reader::kFlat;
    machine = load_machine(source, &error);
  }
  if (machine == nullptr) base::die(kExitSoftware, "%s", error.text);

  Machine* expected = nullptr;
  // Release: publishes the tables. Acquire on failure: the other one's are used instead.
  if (!__atomic_compare_exchange_n(&kept, &expected, machine, false, __ATOMIC_RELEASE,
                                   __ATOMIC_ACQUIRE)) {
    free_machine(machine);
    return expected;
  }
  return machine;
}

}  // namespace bosk::topology
