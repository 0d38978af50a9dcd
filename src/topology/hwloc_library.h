// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// hwloc, loaded privately when it is first needed. Only the files that read with it include this.
#pragma once

#include <hwloc.h>
#include <stddef.h>

#include "topology/error.h"

static_assert(HWLOC_API_VERSION >= 0x00020000, "bosk needs the headers of hwloc 2.0 or later");

namespace bosk::topology {

/// The functions of hwloc that we call. libhwloc is not linked: programs without regions should not
/// pay for loading it (it brings libudev), and RTLD_LOCAL keeps its names out of the program's way.
/// The optional ones are null where the library is too old to have them.
struct Hwloc {
  decltype(&hwloc_get_api_version) get_api_version;
  decltype(&hwloc_topology_init) topology_init;
  decltype(&hwloc_topology_destroy) topology_destroy;
  decltype(&hwloc_topology_set_flags) topology_set_flags;
  decltype(&hwloc_topology_set_xmlbuffer) topology_set_xmlbuffer;
  decltype(&hwloc_topology_set_synthetic) topology_set_synthetic;
  decltype(&hwloc_topology_load) topology_load;
  decltype(&hwloc_topology_is_thissystem) topology_is_thissystem;
  decltype(&hwloc_get_obj_by_depth) get_obj_by_depth;
  decltype(&hwloc_bitmap_iszero) bitmap_iszero;
  decltype(&hwloc_bitmap_isset) bitmap_isset;
  decltype(&hwloc_bitmap_alloc) bitmap_alloc;
  decltype(&hwloc_bitmap_free) bitmap_free;
  // Optional.
  decltype(&hwloc_topology_export_xmlbuffer) topology_export_xmlbuffer;
  decltype(&hwloc_free_xmlbuffer) free_xmlbuffer;
  decltype(&hwloc_distances_get_by_type) distances_get_by_type;
  decltype(&hwloc_distances_release) distances_release;
#if HWLOC_API_VERSION >= 0x00020400
  decltype(&hwloc_cpukinds_get_nr) cpukinds_get_nr;
  decltype(&hwloc_cpukinds_get_info) cpukinds_get_info;
#endif
#if HWLOC_API_VERSION >= 0x00020300
  decltype(&hwloc_memattr_get_best_initiator) memattr_get_best_initiator;
  decltype(&hwloc_memattr_get_value) memattr_get_value;
#endif
};

/// Around all use of the library. The first one loads it, and it stays loaded for ever. Any thread.
class HwlocVisit {
 public:
  /// `error`: why there is none.
  explicit HwlocVisit(Error* error);
  ~HwlocVisit();
  HwlocVisit(const HwlocVisit&) = delete;
  HwlocVisit& operator=(const HwlocVisit&) = delete;
  /// Null: it cannot be loaded, or used in this process.
  const Hwloc* library() const { return library_; }

 private:
  const Hwloc* library_ = nullptr;
  bool is_inside_;
};

}  // namespace bosk::topology
