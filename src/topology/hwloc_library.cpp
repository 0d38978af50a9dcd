// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loading of libhwloc and its table of functions.
#include "topology/hwloc_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/loader.h"

namespace bosk::topology {
namespace {

struct Entry {
  const char* name;
  size_t offset;
  bool required;
};

constexpr Entry kEntries[] = {
    {"hwloc_get_api_version", offsetof(Hwloc, get_api_version), true},
    {"hwloc_topology_init", offsetof(Hwloc, topology_init), true},
    {"hwloc_topology_destroy", offsetof(Hwloc, topology_destroy), true},
    {"hwloc_topology_set_flags", offsetof(Hwloc, topology_set_flags), true},
    {"hwloc_topology_set_xmlbuffer", offsetof(Hwloc, topology_set_xmlbuffer), true},
    {"hwloc_topology_set_synthetic", offsetof(Hwloc, topology_set_synthetic), true},
    {"hwloc_topology_load", offsetof(Hwloc, topology_load), true},
    {"hwloc_topology_is_thissystem", offsetof(Hwloc, topology_is_thissystem), true},
    {"hwloc_get_obj_by_depth", offsetof(Hwloc, get_obj_by_depth), true},
    {"hwloc_bitmap_iszero", offsetof(Hwloc, bitmap_iszero), true},
    {"hwloc_bitmap_isset", offsetof(Hwloc, bitmap_isset), true},
    {"hwloc_bitmap_alloc", offsetof(Hwloc, bitmap_alloc), true},
    {"hwloc_bitmap_free", offsetof(Hwloc, bitmap_free), true},
    {"hwloc_topology_export_xmlbuffer", offsetof(Hwloc, topology_export_xmlbuffer), false},
    {"hwloc_free_xmlbuffer", offsetof(Hwloc, free_xmlbuffer), false},
    {"hwloc_distances_get_by_type", offsetof(Hwloc, distances_get_by_type), false},
    {"hwloc_distances_release", offsetof(Hwloc, distances_release), false},
#if HWLOC_API_VERSION >= 0x00020400
    {"hwloc_cpukinds_get_nr", offsetof(Hwloc, cpukinds_get_nr), false},
    {"hwloc_cpukinds_get_info", offsetof(Hwloc, cpukinds_get_info), false},
#endif
#if HWLOC_API_VERSION >= 0x00020300
    {"hwloc_memattr_get_best_initiator", offsetof(Hwloc, memattr_get_best_initiator), false},
    {"hwloc_memattr_get_value", offsetof(Hwloc, memattr_get_value), false},
#endif
};

// The file that goes with the headers first: the shape of hwloc's objects belongs to its major
// version, so a library of another one is refused whatever its name.
constexpr const char* kFiles[] = {
#if HWLOC_API_VERSION < 0x00030000
    "libhwloc.so.15",
#endif
    "libhwloc.so",  // whatever this system's development link points at
};

constinit base::LibraryVisits visits;

// All zero until load() has run.
pthread_once_t loaded_once = PTHREAD_ONCE_INIT;
Hwloc functions;
bool usable;
char reason[256];

bool fill_table(void* handle, const char* file) {
  for (const Entry& entry : kEntries) {
    void* function = dlsym(handle, entry.name);
    if (function == nullptr && entry.required) {
      snprintf(reason, sizeof reason, "%s has no %s", file, entry.name);
      return false;
    }
    memcpy(reinterpret_cast<char*>(&functions) + entry.offset, &function, sizeof function);
  }
  const unsigned version = functions.get_api_version();
  if (version >> 16 != HWLOC_API_VERSION >> 16) {
    snprintf(reason, sizeof reason, "%s is hwloc %u.%u, but bosk was built for hwloc %d", file,
             version >> 16, version >> 8 & 0xff, HWLOC_API_VERSION >> 16);
    return false;
  }
  return true;
}

void load() {
  for (const char* file : kFiles) {
    const char* why = nullptr;
    void* handle = base::open_library(file, RTLD_NOW | RTLD_LOCAL, &why);
    if (handle == nullptr) {
      // The reason of the first name is the one that helps.
      if (reason[0] == '\0') snprintf(reason, sizeof reason, "%s", why);
      continue;
    }
    if (fill_table(handle, file)) {
      usable = true;
      return;
    }
    dlclose(handle);
  }
}

}  // namespace

HwlocVisit::HwlocVisit(Error* error) : is_inside_(visits.enter()) {
  if (!is_inside_) {
    error->set("hwloc cannot be used (this process was forked while another thread used it)");
    return;
  }
  pthread_once(&loaded_once, load);
  if (usable)
    library_ = &functions;
  else
    error->set("hwloc cannot be loaded (%s); install libhwloc15", reason);
}

HwlocVisit::~HwlocVisit() {
  if (is_inside_) visits.leave();
}

}  // namespace bosk::topology
