// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queries of the machine, with arguments that may be wrong: bosk/topology.h for any machine. Results are as there.
#pragma once

#include <stdint.h>

#include "topology/machine.h"

namespace bosk::threads {

/// The machine of this process, read at the first call. Null: there is no thread to read it. Preemption is on.
const topology::Machine* machine_of_process();

int level_by_name(const topology::Machine& machine, const char* name);
const char* name_of_level(const topology::Machine& machine, int level);
int domains_of_level(const topology::Machine& machine, int level);
int domain_of_pu(const topology::Machine& machine, int level, int pu);
int pus_in_domain(const topology::Machine& machine, int level, int domain);
int first_pu_of_domain(const topology::Machine& machine, int level, int domain);
int os_number(const topology::Machine& machine, int level, int domain);
int pu_of_cpu(const topology::Machine& machine, int cpu);
int pu_distance(const topology::Machine& machine, int pu, int other);
int shared_level(const topology::Machine& machine, int pu, int other);
/// O(PUs) for all of them.
int neighbours(const topology::Machine& machine, int pu, int* pus, int count);
int node_of(const topology::Machine& machine, int pu);
int node_os_number(const topology::Machine& machine, int node);
int node_distance(const topology::Machine& machine, int from, int to);
int64_t node_bytes(const topology::Machine& machine, int node);

/// The PU that the calling thread is on, as bosk_here() tells it.
int pu_of_caller(const topology::Machine& machine);

}  // namespace bosk::threads
