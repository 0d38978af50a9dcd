// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies of boxes between arrays.
#include "omp/host_device.h"

#include <string.h>

namespace bosk::omp {

bool copy_box(void* to, const void* from, size_t element, int dims, const size_t* extent,
              const size_t* to_offset, const size_t* from_offset, const size_t* to_dims,
              const size_t* from_dims) {
  // Bytes from one index of the outermost dimension to the next.
  size_t to_step = element;
  size_t from_step = element;
  for (int i = 1; i < dims; ++i) {
    if (__builtin_mul_overflow(to_step, to_dims[i], &to_step) ||
        __builtin_mul_overflow(from_step, from_dims[i], &from_step)) {
      return false;
    }
  }
  size_t to_first;
  size_t from_first;
  if (__builtin_mul_overflow(to_step, to_offset[0], &to_first) ||
      __builtin_mul_overflow(from_step, from_offset[0], &from_first)) {
    return false;
  }
  char* target = static_cast<char*>(to) + to_first;
  const char* source = static_cast<const char*>(from) + from_first;
  if (dims == 1) {
    size_t bytes;
    if (__builtin_mul_overflow(element, extent[0], &bytes)) return false;
    if (bytes != 0) memcpy(target, source, bytes);
    return true;
  }
  for (size_t i = 0; i < extent[0]; ++i, target += to_step, source += from_step) {
    if (!copy_box(target, source, element, dims - 1, extent + 1, to_offset + 1, from_offset + 1,
                  to_dims + 1, from_dims + 1)) {
      return false;
    }
  }
  return true;
}

}  // namespace bosk::omp
