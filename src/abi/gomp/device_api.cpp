// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// omp_* routines of devices, C and Fortran: there is the host, and nothing else.
#include <stdint.h>
#include <string.h>

#include "abi/gomp/export.h"
#include "abi/gomp/fortran_text.h"
#include "omp/host_device.h"
#include "omp/routines.h"

using namespace bosk::omp;

namespace {

int pause_device(int kind, int device) { return is_host(device) ? pause_host(kind) : -1; }

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

BOSK_EXPORT const char* omp_get_uid_from_device(int device) { return uid_of_device(device); }
BOSK_EXPORT void omp_get_uid_from_device_(const char** result, size_t* length, int32_t device) {
  return_text(uid_of_device(device), result, length);
}
BOSK_EXPORT void omp_get_uid_from_device_8_(const char** result, size_t* length, int64_t device) {
  return_text(uid_of_device(saturated_int(device)), result, length);
}

BOSK_EXPORT int omp_get_device_from_uid(const char* uid) {
  return device_of_uid(uid, uid != nullptr ? strlen(uid) : 0);
}
BOSK_EXPORT int32_t omp_get_device_from_uid_(const char* uid, size_t length) {
  return device_of_uid(uid, trimmed_length(uid, length));
}

// Constructors of objects with code for devices; there is no device that would load it.
BOSK_EXPORT void GOMP_offload_register(const void*, int, const void*) { note_device_code(); }
BOSK_EXPORT void GOMP_offload_unregister(const void*, int, const void*) {}
BOSK_EXPORT void GOMP_offload_register_ver(unsigned, const void*, int, const void*) {
  note_device_code();
}
BOSK_EXPORT void GOMP_offload_unregister_ver(unsigned, const void*, int, const void*) {}
