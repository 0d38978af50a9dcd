// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// omp_* routines of devices, C and Fortran: there is the host, and nothing else.
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi/gomp/export.h"
#include "base/message.h"
#include "omp/host_device.h"
#include "omp/routines.h"

using namespace bosk::omp;

namespace {

int pause_device(int kind, int device) { return is_host(device) ? pause_host(kind) : -1; }

int copy(void* to, const void* from, size_t size, size_t to_offset, size_t from_offset,
         int to_device, int from_device) {
  if (!is_host(to_device) || !is_host(from_device)) return EINVAL;
  // The ranges may be the same one, which memcpy does not promise to bear.
  memmove(static_cast<char*>(to) + to_offset, static_cast<const char*>(from) + from_offset, size);
  return 0;
}

int copy_rect(void* to, const void* from, size_t element, int dims, const size_t* extent,
              const size_t* to_offset, const size_t* from_offset, const size_t* to_dims,
              const size_t* from_dims, int to_device, int from_device) {
  if (to == nullptr && from == nullptr) return INT_MAX;  // how many dimensions may it be?
  if (!is_host(to_device) || !is_host(from_device) || dims < 1) return EINVAL;
  return copy_box(to, from, element, dims, extent, to_offset, from_offset, to_dims, from_dims)
             ? 0
             : EINVAL;
}

void no_dependences(const char* name, int count) {
  if (count > 0) bosk::base::die(70, "%s with dependences is not supported yet", name);
}

}  // namespace

BOSK_EXPORT void omp_set_default_device(int device) {
  set_default_device(changeable_icvs(), device);
}
BOSK_EXPORT void omp_set_default_device_(const int32_t* device) {
  set_default_device(changeable_icvs(), *device);
}
BOSK_EXPORT void omp_set_default_device_8_(const int64_t* device) {
  set_default_device(changeable_icvs(), saturated_int(*device));
}

BOSK_EXPORT int omp_get_default_device() { return known_icvs().default_device; }
BOSK_EXPORT int omp_get_num_devices() { return 0; }
BOSK_EXPORT int omp_get_initial_device() { return kHostDevice; }
BOSK_EXPORT int omp_get_device_num() { return kHostDevice; }
BOSK_EXPORT int omp_is_initial_device() { return 1; }
BOSK_EXPORT_ALIAS(omp_get_default_device) int omp_get_default_device_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_num_devices) int omp_get_num_devices_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_initial_device) int omp_get_initial_device_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_device_num) int omp_get_device_num_() noexcept;
BOSK_EXPORT_ALIAS(omp_is_initial_device) int omp_is_initial_device_() noexcept;

BOSK_EXPORT int omp_pause_resource(int kind, int device) { return pause_device(kind, device); }
BOSK_EXPORT int omp_pause_resource_(const int32_t* kind, const int32_t* device) {
  return pause_device(*kind, *device);
}
BOSK_EXPORT int omp_pause_resource_all(int kind) { return pause_host(kind); }
BOSK_EXPORT int omp_pause_resource_all_(const int32_t* kind) { return pause_host(*kind); }

BOSK_EXPORT void* omp_target_alloc(size_t size, int device) {
  return is_host(device) ? malloc(size) : nullptr;
}
BOSK_EXPORT void omp_target_free(void* pointer, int device) {
  if (is_host(device)) free(pointer);
}
BOSK_EXPORT int omp_target_is_present(const void* pointer, int device) {
  return pointer == nullptr || is_host(device);
}
BOSK_EXPORT int omp_target_is_accessible(const void* /*pointer*/, size_t /*size*/, int device) {
  return is_host(device);
}
BOSK_EXPORT void* omp_get_mapped_ptr(const void* pointer, int device) {
  return is_host(device) ? const_cast<void*>(pointer) : nullptr;
}
BOSK_EXPORT void* GOMP_target_map_indirect_ptr(void* pointer) { return pointer; }

// Host memory is not mapped to the host.
BOSK_EXPORT int omp_target_associate_ptr(const void*, const void*, size_t, size_t, int) {
  return EINVAL;
}
BOSK_EXPORT int omp_target_disassociate_ptr(const void*, int) { return EINVAL; }

BOSK_EXPORT int omp_target_memcpy(void* to, const void* from, size_t size, size_t to_offset,
                                  size_t from_offset, int to_device, int from_device) {
  return copy(to, from, size, to_offset, from_offset, to_device, from_device);
}
BOSK_EXPORT int omp_target_memcpy_async(void* to, const void* from, size_t size, size_t to_offset,
                                        size_t from_offset, int to_device, int from_device,
                                        int n_dependences, void* /*dependences*/) {
  no_dependences("omp_target_memcpy_async", n_dependences);
  return copy(to, from, size, to_offset, from_offset, to_device, from_device);
}
BOSK_EXPORT int omp_target_memcpy_rect(void* to, const void* from, size_t element, int dims,
                                       const size_t* extent, const size_t* to_offset,
                                       const size_t* from_offset, const size_t* to_dims,
                                       const size_t* from_dims, int to_device, int from_device) {
  return copy_rect(to, from, element, dims, extent, to_offset, from_offset, to_dims, from_dims,
                   to_device, from_device);
}
BOSK_EXPORT int omp_target_memcpy_rect_async(void* to, const void* from, size_t element, int dims,
                                             const size_t* extent, const size_t* to_offset,
                                             const size_t* from_offset, const size_t* to_dims,
                                             const size_t* from_dims, int to_device,
                                             int from_device, int n_dependences,
                                             void* /*dependences*/) {
  no_dependences("omp_target_memcpy_rect_async", n_dependences);
  return copy_rect(to, from, element, dims, extent, to_offset, from_offset, to_dims, from_dims,
                   to_device, from_device);
}
BOSK_EXPORT void* omp_target_memset(void* pointer, int value, size_t size, int device) {
  return is_host(device) && size != 0 ? memset(pointer, value, size) : pointer;
}
BOSK_EXPORT void* omp_target_memset_async(void* pointer, int value, size_t size, int device,
                                          int n_dependences, void* /*dependences*/) {
  no_dependences("omp_target_memset_async", n_dependences);
  return is_host(device) && size != 0 ? memset(pointer, value, size) : pointer;
}

// Constructors of objects with code for devices; there is no device that would load it.
BOSK_EXPORT void GOMP_offload_register(const void*, int, const void*) {}
BOSK_EXPORT void GOMP_offload_unregister(const void*, int, const void*) {}
BOSK_EXPORT void GOMP_offload_register_ver(unsigned, const void*, int, const void*) {}
BOSK_EXPORT void GOMP_offload_unregister_ver(unsigned, const void*, int, const void*) {}
