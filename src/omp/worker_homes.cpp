// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decides once per process whether workers have homes.
#include "omp/worker_homes.h"

#include "base/message.h"
#include "base/publish_once.h"
#include "base/settings.h"
#include "omp/environment.h"
#include "omp/machine_aside.h"
#include "omp/places.h"
#include "omp/several_domains.h"

namespace bosk::omp {
namespace {

using base::HomesChoice;
using topology::Machine;

constinit Machine no_machine{};  // there are no homes
constinit base::PublishOnce<Machine> known_machine;

/// Somebody has said where threads are to run, or that nobody is to be put anywhere.
bool binding_is_said() {
  const ProcessIcvs& process = process_icvs();
  return process.bind.count != 0 || process.places->count() != 0;
}

const Machine* find_machine() {
  const base::Settings& settings = base::settings();
  if (settings.homes == HomesChoice::kOff || binding_is_said()) return &no_machine;
  const bool asked = settings.homes == HomesChoice::kOn;
  const bool described = settings.topology_xml != nullptr || settings.synthetic != nullptr;
  if (!asked && !described && !may_have_several_domains()) return &no_machine;
  const Machine* machine = read_machine_aside();
  if (machine == nullptr || machine->n_pus < 2) return &no_machine;
  if (!machine->this_system) {
    if (asked)
      base::say("BOSK_WORKER_HOMES: %s is not the machine this runs on; workers have no homes",
                machine->source);
    return &no_machine;
  }
  return asked || has_several_memories(*machine) ? machine : &no_machine;
}

}  // namespace

const Machine* machine_of_homes() {
  const Machine* known = known_machine.get();
  if (known == nullptr) {
    known_machine.publish(find_machine());
    known = known_machine.get();
  }
  return known == &no_machine ? nullptr : known;
}

}  // namespace bosk::omp
