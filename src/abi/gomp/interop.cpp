// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interop construct and its routines: the host has no foreign run-time, so every object is
// omp_interop_none.
#include <stdint.h>

#include "abi/gomp/export.h"
#include "abi/gomp/fortran_text.h"
#include "omp/host_device.h"
#include "omp/target_region.h"

using namespace bosk::omp;

namespace {

/// omp_interop_t; null is omp_interop_none.
using Interop = void*;

/// omp_interop_property_t: from -9 up to those of the implementation, of which there is none.
constexpr int kFirstProperty = -9;
constexpr int kPropertiesOfOurs = 0;

/// omp_interop_rc_t.
enum Answer : int { kNoValue = 1, kEmpty = -1, kOutOfRange = -2, kTypeString = -5 };

bool is_property(int property) {
  return property >= kFirstProperty && property < kPropertiesOfOurs;
}

void answer(int property, int* code) {
  if (code != nullptr) *code = is_property(property) ? kEmpty : kOutOfRange;
}

const char* name_of(int property) {
  constexpr const char* kNames[] = {"fr_id",       "fr_name",        "vendor",
                                    "vendor_name", "device_num",     "platform",
                                    "device",      "device_context", "targetsync"};
  return is_property(property) ? kNames[-property - 1] : nullptr;
}

const char* describe(int code) {
  // From omp_irc_no_value down. GCC's tests know the third and fourth.
  constexpr const char* kTexts[] = {"there is no meaningful value",
                                    "success",
                                    "provided interoperability object is equal to omp_interop_none",
                                    "property ID is out of range",
                                    "the property is an integer: omp_get_interop_int gives it",
                                    "the property is a pointer: omp_get_interop_ptr gives it",
                                    "the property is a string: omp_get_interop_str gives it"};
  return code <= kNoValue && code >= kTypeString ? kTexts[kNoValue - code] : nullptr;
}

}  // namespace

BOSK_EXPORT void GOMP_interop(int device, int n_init, Interop** init, const int* /*kinds*/,
                              const char** /*preferences*/, int /*n_use*/, Interop* /*use*/,
                              int n_destroy, Interop** destroy, unsigned flags, void** depend) {
  constexpr unsigned kNowait = 1;
  check_device_of_construct(device);
  keep_dependences(depend, (flags & kNowait) != 0);
  for (int i = 0; i < n_init; ++i) *init[i] = nullptr;
  for (int i = 0; i < n_destroy; ++i) *destroy[i] = nullptr;
}

BOSK_EXPORT int omp_get_num_interop_properties(Interop) { return kPropertiesOfOurs; }

BOSK_EXPORT intptr_t omp_get_interop_int(Interop, int property, int* code) {
  answer(property, code);
  return 0;
}
BOSK_EXPORT void* omp_get_interop_ptr(Interop, int property, int* code) {
  answer(property, code);
  return nullptr;
}
BOSK_EXPORT const char* omp_get_interop_str(Interop, int property, int* code) {
  answer(property, code);
  return nullptr;
}
BOSK_EXPORT const char* omp_get_interop_name(Interop, int property) { return name_of(property); }
// A property has a type once the object has a run-time.
BOSK_EXPORT const char* omp_get_interop_type_desc(Interop, int) { return nullptr; }
BOSK_EXPORT const char* omp_get_interop_rc_desc(Interop, int code) { return describe(code); }

// Fortran: the arguments have the VALUE attribute; ret_code is optional.
BOSK_EXPORT void omp_get_interop_str_(const char** result, size_t* length, Interop, int property,
                                      int* code) {
  answer(property, code);
  return_text(nullptr, result, length);
}
BOSK_EXPORT void omp_get_interop_name_(const char** result, size_t* length, Interop, int property) {
  return_text(name_of(property), result, length);
}
BOSK_EXPORT void omp_get_interop_type_desc_(const char** result, size_t* length, Interop, int) {
  return_text(nullptr, result, length);
}
BOSK_EXPORT void omp_get_interop_rc_desc_(const char** result, size_t* length, Interop, int code) {
  return_text(describe(code), result, length);
}
