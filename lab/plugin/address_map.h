// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which node a CPU and an address belong to, as the virtual machine was laid out.
#ifndef BOSK_LAB_ADDRESS_MAP_H
#define BOSK_LAB_ADDRESS_MAP_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kMaxNodes = 64, kMaxCpus = 512 };
enum { kNoNode = kMaxNodes };  // an address that is no node's memory

// What QEMU calls a physical address.
enum locality_addresses {
  // Up to QEMU 7.2: the offset of the block of RAM in QEMU's list, plus the place of the block in the
  // machine's memory, plus the offset in the block. With one block a node, added in the order of nodes,
  // the first two are equal: the memory of a node that starts at x is seen from 2x on.
  kBlockOffsets,
  // Later: what the guest's kernel sees. Machine q35 has a hole below 4 GiB for devices; memory that does
  // not fit below the hole starts at 4 GiB.
  kGuestPhysical,
};

struct locality_address_map {
  unsigned nodes;
  unsigned cpus;
  unsigned threads;  // CPUs of a core; they follow one another
  enum locality_addresses addresses;
  uint64_t start[kMaxNodes + 1];  // in the machine's memory, without the hole
  uint64_t below_hole;            // bytes of memory before the hole
  uint8_t node_of_cpu[kMaxCpus];
};

// `cpus` names the CPUs of each node, nodes apart by '/': "0-3/4-5+8/6-7". `memory` the MiB of each:
// "1024/512/0". Returns NULL, or what is wrong (a constant).
const char* locality_map_parse(struct locality_address_map* map, const char* cpus,
                               const char* memory);

// Sets how addresses are to be read.
void locality_map_use(struct locality_address_map* map, enum locality_addresses addresses);

// kNoNode if the address is no node's memory.
unsigned locality_node_of(const struct locality_address_map* map, uint64_t address);

#ifdef __cplusplus
}
#endif
#endif
