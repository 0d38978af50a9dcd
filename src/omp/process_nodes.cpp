// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asks the kernel and the machine about nodes.
#include "omp/process_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "base/pages.h"
#include "base/parse.h"
#include "base/publish_once.h"
#include "base/syscalls.h"
#include "omp/machine_aside.h"

namespace bosk::omp {
namespace {

using topology::kNone;

struct ProcessNodes {
  const topology::Machine* machine = nullptr;  ///< null: there is one node, or none to choose from
  NodeSet usual;
  NodeSet large;
  NodeSet fast;
};

constinit ProcessNodes no_nodes;
constinit base::PublishOnce<ProcessNodes> known_nodes;

/// Null: the file cannot be read. The text is cut at the buffer's end.
template <size_t size>
const char* read_file(const char* path, char (&text)[size]) {
  const int error = errno;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = -1;
  if (fd >= 0) {
    do {
      n = read(fd, text, size - 1);
    } while (n < 0 && errno == EINTR);
    close(fd);
  }
  errno = error;
  if (n < 0) return nullptr;
  text[n] = '\0';
  return text;
}

NodeSet both(const NodeSet& a, const NodeSet& b) {
  NodeSet result = a;
  for (uint32_t i = 0; i < NodeSet::kMost / 64; i++) result.words[i] &= b.words[i];
  return result;
}

/// Nodes with memory that the cpuset allows; empty: this kernel has no NUMA, or nobody can tell.
NodeSet nodes_with_memory() {
  char text[4096];
  if (read_file("/sys/devices/system/node/has_memory", text) == nullptr) return {};
  const NodeSet there = parse_node_list(text);
  NodeSet allowed;
  const long failed = base::raw_syscall(SYS_get_mempolicy, 0, base::address_of(allowed.words),
                                        NodeSet::kMost, 0, MPOL_F_MEMS_ALLOWED);
  return failed != 0 ? there : both(there, allowed);
}

void fill(ProcessNodes* nodes) {
  const NodeSet there = nodes_with_memory();
  if (there.count() <= 1) {
    nodes->usual = there;
    return;
  }
  const topology::Machine* machine = read_machine_aside();
  // The nodes of an invented machine are nowhere: like its CPUs, they are only looked at.
  if (machine == nullptr || !machine->this_system || machine->nodes()[0].assumed) return;
  nodes->machine = machine;
  nodes->usual = both(nodes_of_space(*machine, kDefaultSpace), there);
  nodes->large = both(nodes_of_space(*machine, kLargeCapacitySpace), there);
  nodes->fast = both(nodes_of_space(*machine, kHighBandwidthSpace), there);
}

const ProcessNodes& process_nodes() {
  if (const ProcessNodes* known = known_nodes.get()) return *known;
  void* memory = base::map_pages(sizeof(ProcessNodes));
  if (memory == nullptr) return no_nodes;
  auto* made = new (memory) ProcessNodes;
  fill(made);
  if (!known_nodes.publish(made)) base::unmap_pages(memory, sizeof(ProcessNodes));
  return *known_nodes.get();
}

uint32_t cpu_here() {
  unsigned cpu = 0;
  return base::raw_syscall(SYS_getcpu, base::address_of(&cpu)) == 0 ? cpu : kNone;
}

}  // namespace

MemoryPlan plan_here(const AllocatorTraits& traits, uint32_t* home) {
  *home = kNone;
  const bool space_matters =
      traits.space == kLargeCapacitySpace || traits.space == kHighBandwidthSpace;
  if (!space_matters && traits.partition == kEnvironment) return {};
  const ProcessNodes& here = process_nodes();
  const NodeSet& own = traits.space == kLargeCapacitySpace   ? here.large
                       : traits.space == kHighBandwidthSpace ? here.fast
                                                             : here.usual;
  const bool special = space_matters && !own.empty();
  const NodeSet& nodes = special ? own : here.usual;
  if (traits.partition == kNearest || traits.partition == kBlocked) {
    *home =
        here.machine != nullptr ? nearest_node(*here.machine, nodes, cpu_here()) : nodes.next(0);
  }
  return plan_memory(traits, nodes, special, *home);
}

NodeSet parse_node_list(const char* text) {
  NodeSet nodes;
  base::TextReader reader(text);
  uint64_t first;
  while (reader.take_unsigned(&first)) {
    uint64_t last = first;
    if (reader.take('-') && !reader.take_unsigned(&last)) break;
    for (uint64_t node = first; node <= last && node < NodeSet::kMost; node++) {
      nodes.add(static_cast<uint32_t>(node));
    }
    if (!reader.take(',')) break;
  }
  return nodes;
}

uint64_t room_in(const char* meminfo) {
  uint64_t bytes = 0;
  for (const char* name : {"MemFree:", "Inactive(file):"}) {
    const char* at = strstr(meminfo, name);
    if (at == nullptr) continue;
    base::TextReader reader(at + strlen(name));
    uint64_t kib;
    if (reader.take_unsigned(&kib)) bytes += kib << 10;
  }
  return bytes;
}

bool nodes_have_room(const NodeSet& nodes, size_t bytes) {
  uint64_t room = 0;
  for (uint32_t node = nodes.next(0); node != kNone; node = nodes.next(node + 1)) {
    char path[80];
    char text[4096];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", node);
    if (read_file(path, text) == nullptr) return true;
    room += room_in(text);
    if (room >= bytes) return true;
  }
  return false;
}

}  // namespace bosk::omp
