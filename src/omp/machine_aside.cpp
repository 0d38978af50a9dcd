// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A thread that reads the machine.
#include "omp/machine_aside.h"

#include <pthread.h>
#include <signal.h>

#include "context/new_thread.h"
#include "omp/environment.h"
#include "topology/source.h"

namespace bosk::omp {
namespace {

using topology::Machine;

/// Making a thread allocates, and so does hwloc.
constinit thread_local bool reading = false;

void* read_machine(void* machine) {
  reading = true;
  *static_cast<const Machine**>(machine) = topology::process_machine(process_icvs().cpus);
  return nullptr;
}

}  // namespace

const Machine* read_machine_aside() {
  constexpr size_t kStack = 2u << 20;
  const Machine* machine = nullptr;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return nullptr;
  const bool before_reading = reading;
  reading = true;
  pthread_attr_setstacksize(&attributes, kStack);
  // The program's handlers are not to run there.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t reader;
  const int error = context::create_thread(&reader, &attributes, read_machine, &machine);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == 0) pthread_join(reader, nullptr);
  reading = before_reading;
  return machine;
}

bool is_reading_machine() { return reading; }

}  // namespace bosk::omp
