// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Distances are SLIT's, links are HMAT's (Linux tells those of a node's own initiators only) or a description's.
#include "topology/hwloc_node_pairs.h"

#include <algorithm>

namespace bosk::topology {
namespace {

bool keep_distances(const hwloc_distances_s& found, const Array<hwloc_obj_t>& nodes,
                    RawMachine* raw) {
  const uint32_t n = nodes.size;
  if (n > kMaxNodes) return true;  // the builder will refuse the machine
  Array<uint32_t> row_of;          // our node -> its row, kNone: not in the matrix
  if (!row_of.assign(n, 0xff) || !raw->distances.assign(n * n)) return false;
  for (uint32_t i = 0; i < n; i++) {
    for (unsigned row = 0; row < found.nbobjs; row++) {
      if (found.objs[row] == nodes[i]) row_of[i] = row;
    }
  }
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < n; j++) {
      if (row_of[i] == kNone || row_of[j] == kNone) continue;
      const uint64_t value = found.values[uint64_t{row_of[i]} * found.nbobjs + row_of[j]];
      raw->distances[i * n + j] = value < kNone ? static_cast<uint32_t>(value) : kNone - 1;
    }
  }
  return true;
}

bool read_distances(const Hwloc& h, hwloc_topology_t topology, const Array<hwloc_obj_t>& nodes,
                    RawMachine* raw) {
  if (h.distances_get_by_type == nullptr || h.distances_release == nullptr) return true;
  // What the system says goes before what a user added to the XML; bandwidths are not distances.
  for (const unsigned long kind :
       {HWLOC_DISTANCES_KIND_FROM_OS | HWLOC_DISTANCES_KIND_MEANS_LATENCY,
        HWLOC_DISTANCES_KIND_FROM_USER | HWLOC_DISTANCES_KIND_MEANS_LATENCY}) {
    hwloc_distances_s* found = nullptr;
    unsigned n = 1;
    if (h.distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &n, &found, kind, 0) != 0) continue;
    if (n == 0 || found == nullptr) continue;
    const bool kept = keep_distances(*found, nodes, raw);
    h.distances_release(topology, found);
    return kept;
  }
  return true;
}

#if HWLOC_API_VERSION >= 0x00020300
#if HWLOC_API_VERSION >= 0x00020800
constexpr hwloc_memattr_id_t kReadBandwidth = HWLOC_MEMATTR_ID_READ_BANDWIDTH;
constexpr hwloc_memattr_id_t kWriteBandwidth = HWLOC_MEMATTR_ID_WRITE_BANDWIDTH;
constexpr hwloc_memattr_id_t kReadLatency = HWLOC_MEMATTR_ID_READ_LATENCY;
constexpr hwloc_memattr_id_t kWriteLatency = HWLOC_MEMATTR_ID_WRITE_LATENCY;
#else
constexpr hwloc_memattr_id_t kReadBandwidth = HWLOC_MEMATTR_ID_BANDWIDTH;
constexpr hwloc_memattr_id_t kWriteBandwidth = HWLOC_MEMATTR_ID_BANDWIDTH;
constexpr hwloc_memattr_id_t kReadLatency = HWLOC_MEMATTR_ID_LATENCY;
constexpr hwloc_memattr_id_t kWriteLatency = HWLOC_MEMATTR_ID_LATENCY;
#endif

/// The attribute for reads or writes, else the one for both; 0: not told.
uint32_t attribute(const Hwloc& h, hwloc_topology_t topology, hwloc_obj_t from, hwloc_obj_t to,
                   hwloc_memattr_id_t one_way, hwloc_memattr_id_t both_ways) {
  hwloc_location initiator;
  initiator.type = HWLOC_LOCATION_TYPE_CPUSET;
  initiator.location.cpuset = from->cpuset;
  for (const hwloc_memattr_id_t id : {one_way, both_ways}) {
    hwloc_uint64_t value = 0;
    if (h.memattr_get_value(topology, id, to, &initiator, 0, &value) == 0 && value != 0)
      return static_cast<uint32_t>(std::min<uint64_t>(value, kNone - 1));
  }
  return 0;
}

bool read_links(const Hwloc& h, hwloc_topology_t topology, const Array<hwloc_obj_t>& nodes,
                RawMachine* raw) {
  const uint32_t n = nodes.size;
  if (h.memattr_get_value == nullptr || n > kMaxNodes) return true;
  for (uint32_t i = 0; i < n; i++) {
    if (!raw->nodes[i].has_pus) continue;
    for (uint32_t j = 0; j < n; j++) {
      const NodeLink link{
          attribute(h, topology, nodes[i], nodes[j], kReadLatency, HWLOC_MEMATTR_ID_LATENCY),
          attribute(h, topology, nodes[i], nodes[j], kWriteLatency, HWLOC_MEMATTR_ID_LATENCY),
          attribute(h, topology, nodes[i], nodes[j], kReadBandwidth, HWLOC_MEMATTR_ID_BANDWIDTH),
          attribute(h, topology, nodes[i], nodes[j], kWriteBandwidth, HWLOC_MEMATTR_ID_BANDWIDTH)};
      if (!link.told()) continue;
      if (raw->links.size == 0 && !raw->links.assign(n * n)) return false;
      raw->links[i * n + j] = link;
    }
  }
  return true;
}
#else
bool read_links(const Hwloc&, hwloc_topology_t, const Array<hwloc_obj_t>&, RawMachine*) {
  return true;
}
#endif

}  // namespace

bool read_node_pairs(const Hwloc& hwloc, hwloc_topology_t topology, const Array<hwloc_obj_t>& nodes,
                     RawMachine* raw) {
  return read_distances(hwloc, topology, nodes, raw) && read_links(hwloc, topology, nodes, raw);
}

}  // namespace bosk::topology
