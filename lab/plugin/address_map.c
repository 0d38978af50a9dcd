// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CPU → node and address → node, parsed from the plugin's arguments.
#include "address_map.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t kGiB = UINT64_C(1) << 30;

// A number at *text; moves on behind it. False if there is none.
static bool number(const char** text, unsigned long limit, unsigned long* value) {
  if (**text < '0' || **text > '9') return false;
  char* end;
  *value = strtoul(*text, &end, 10);
  *text = end;
  return *value <= limit;
}

static const char* parse_cpus(struct locality_address_map* map, const char* text) {
  bool seen[kMaxCpus] = {false};
  unsigned node = 0;
  while (*text) {
    if (*text == '/') {
      if (++node >= kMaxNodes) return "cpus: more than 64 nodes";
      ++text;
      continue;
    }
    unsigned long first;
    unsigned long last;
    if (!number(&text, kMaxCpus - 1, &first)) return "cpus: a CPU number below 512 is expected";
    last = first;
    if (*text == '-') {
      ++text;
      if (!number(&text, kMaxCpus - 1, &last)) return "cpus: a CPU number below 512 is expected";
      if (last < first) return "cpus: a range that ends before it starts";
    }
    for (unsigned long cpu = first; cpu <= last; ++cpu) {
      if (seen[cpu]) return "cpus: a CPU in two places";
      seen[cpu] = true;
      map->node_of_cpu[cpu] = (uint8_t)node;
      if (cpu >= map->cpus) map->cpus = (unsigned)cpu + 1;
    }
    if (*text == '+') {
      ++text;
      if (*text < '0' || *text > '9') return "cpus: a CPU number is expected after '+'";
    } else if (*text && *text != '/') {
      return "cpus: unexpected character";
    }
  }
  for (unsigned cpu = 0; cpu < map->cpus; ++cpu) {
    if (!seen[cpu]) return "cpus: a CPU of no node";
  }
  if (map->cpus == 0) return "cpus: there is none";
  map->nodes = node + 1;
  return NULL;
}

static const char* parse_memory(struct locality_address_map* map, const char* text) {
  for (unsigned node = 0; node < map->nodes; ++node) {
    unsigned long size;
    if (node > 0 && *text++ != '/') return "memory: fewer nodes than in cpus";
    if (!number(&text, 1UL << 24, &size)) return "memory: a size in MiB is expected";
    map->start[node + 1] = map->start[node] + ((uint64_t)size << 20);
  }
  if (*text) return "memory: more nodes than in cpus";
  if (map->start[map->nodes] == 0) return "memory: there is none";
  return NULL;
}

const char* locality_map_parse(struct locality_address_map* map, const char* cpus,
                               const char* memory) {
  memset(map, 0, sizeof *map);
  map->threads = 1;
  const char* wrong = parse_cpus(map, cpus);
  if (!wrong) wrong = parse_memory(map, memory);
  if (wrong) return wrong;
  // Machine q35: 2.75 GiB below the hole if all memory fits there, else 2 GiB.
  uint64_t all = map->start[map->nodes];
  map->below_hole = all >= UINT64_C(0xb0000000) ? 2 * kGiB : all;
  locality_map_use(map, kGuestPhysical);
  return NULL;
}

void locality_map_use(struct locality_address_map* map, enum locality_addresses addresses) {
  map->addresses = addresses;
}

// The node whose part of the machine's memory holds the offset.
static unsigned node_at(const struct locality_address_map* map, uint64_t offset) {
  for (unsigned node = 0; node < map->nodes; ++node) {
    if (offset < map->start[node + 1]) return node;
  }
  return kNoNode;
}

unsigned locality_node_of(const struct locality_address_map* map, uint64_t address) {
  if (map->addresses == kGuestPhysical) {
    if (address < map->below_hole) return node_at(map, address);
    if (address < 4 * kGiB) return kNoNode;
    return node_at(map, address - 4 * kGiB + map->below_hole);
  }
  for (unsigned node = 0; node < map->nodes; ++node) {
    uint64_t size = map->start[node + 1] - map->start[node];
    if (address - 2 * map->start[node] < size) return node;
  }
  return kNoNode;
}
