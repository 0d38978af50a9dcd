// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fortran's data routines. Each has three forms: for a length of 4 and of 8 bytes, and for an array
// whose descriptor says how long it is.
#include "abi/goacc/array_descriptor.h"
#include "abi/goacc/memory.h"
#include "abi/gomp/export.h"

using namespace bosk::acc;

namespace {

// A negative length is one that nobody checks, as in C.
size_t bytes(const int32_t* length) { return static_cast<size_t>(ptrdiff_t{*length}); }
size_t bytes(const int64_t* length) { return static_cast<size_t>(*length); }

void enter(void* data, size_t size) { enter_data(data, size); }
void leave(void* /*data*/, size_t /*size*/) { exit_data(); }
void update(void* /*data*/, size_t /*size*/) { update_data(); }

}  // namespace

#define BOSK_ACC_FORTRAN(name, what)                                                              \
  BOSK_EXPORT void name##_32_h_(void* data, const int32_t* length) { what(data, bytes(length)); } \
  BOSK_EXPORT void name##_64_h_(void* data, const int64_t* length) { what(data, bytes(length)); } \
  BOSK_EXPORT void name##_array_h_(const ArrayDescriptor* array) {                                \
    what(array->base, array->size());                                                             \
  }

#define BOSK_ACC_FORTRAN_ASYNC(name, what)                                                     \
  BOSK_EXPORT void name##_32_h_(void* data, const int32_t* length, const int32_t* /*queue*/) { \
    what(data, bytes(length));                                                                 \
  }                                                                                            \
  BOSK_EXPORT void name##_64_h_(void* data, const int64_t* length, const int32_t* /*queue*/) { \
    what(data, bytes(length));                                                                 \
  }                                                                                            \
  BOSK_EXPORT void name##_array_h_(const ArrayDescriptor* array, const int32_t* /*queue*/) {   \
    what(array->base, array->size());                                                          \
  }

BOSK_ACC_FORTRAN(acc_copyin, enter)
BOSK_ACC_FORTRAN(acc_present_or_copyin, enter)
BOSK_ACC_FORTRAN(acc_create, enter)
BOSK_ACC_FORTRAN(acc_present_or_create, enter)
BOSK_ACC_FORTRAN(acc_copyout, leave)
BOSK_ACC_FORTRAN(acc_copyout_finalize, leave)
BOSK_ACC_FORTRAN(acc_delete, leave)
BOSK_ACC_FORTRAN(acc_delete_finalize, leave)
BOSK_ACC_FORTRAN(acc_update_device, update)
BOSK_ACC_FORTRAN(acc_update_self, update)

BOSK_ACC_FORTRAN_ASYNC(acc_copyin_async, enter)
BOSK_ACC_FORTRAN_ASYNC(acc_create_async, enter)
BOSK_ACC_FORTRAN_ASYNC(acc_copyout_async, leave)
BOSK_ACC_FORTRAN_ASYNC(acc_copyout_finalize_async, leave)
BOSK_ACC_FORTRAN_ASYNC(acc_delete_async, leave)
BOSK_ACC_FORTRAN_ASYNC(acc_delete_finalize_async, leave)
BOSK_ACC_FORTRAN_ASYNC(acc_update_device_async, update)
BOSK_ACC_FORTRAN_ASYNC(acc_update_self_async, update)

BOSK_EXPORT int32_t acc_is_present_32_h_(void* data, const int32_t* length) {
  return is_present(data, bytes(length)) ? 1 : 0;
}
BOSK_EXPORT int32_t acc_is_present_64_h_(void* data, const int64_t* length) {
  return is_present(data, bytes(length)) ? 1 : 0;
}
BOSK_EXPORT int32_t acc_is_present_array_h_(const ArrayDescriptor* array) {
  return is_present(array->base, array->size()) ? 1 : 0;
}
