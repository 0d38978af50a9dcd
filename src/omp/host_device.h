// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The one device there is: the host, and what the memory routines of devices mean on it.
#pragma once

#include <stddef.h>

namespace bosk::omp {

/// omp_initial_device, and the number that omp_get_initial_device() tells: that after the last device.
constexpr int kInitialDevice = -1;
constexpr int kHostDevice = 0;

inline bool is_host(int device) { return device == kHostDevice || device == kInitialDevice; }

/// omp_target_memcpy_rect: a box of `extent` elements of `element` bytes in `dims` dimensions, at the
/// given offsets in arrays of the given dimensions. False: a size overflows.
bool copy_box(void* to, const void* from, size_t element, int dims, const size_t* extent,
              const size_t* to_offset, const size_t* from_offset, const size_t* to_dims,
              const size_t* from_dims);

}  // namespace bosk::omp
