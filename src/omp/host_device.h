// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The one device there is: the host; how it is asked for, and what the memory routines of devices mean
// on it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "omp/icv.h"

namespace bosk::omp {

/// omp_initial_device, omp_default_device (OpenMP 6.1), and the number that omp_get_initial_device()
/// tells: that after the last device.
constexpr int kInitialDevice = -1;
constexpr int kDefaultDevice = -5;
constexpr int kHostDevice = 0;

inline bool is_host(int device) { return device == kHostDevice || device == kInitialDevice; }

/// Whether `device`, as passed to an omp_* routine, is the host. If it is omp_invalid_device, or not
/// there with OMP_TARGET_OFFLOAD=mandatory, the program ends.
bool is_host_or_dies(int device);

/// The device of a construct, as compilers pass it to GOMP_*: ends the program in these cases. All else
/// means the host: it stands in for devices that are not there.
void check_device_of_construct(int device);

/// The program has brought code for devices: says once that its target regions run on the host.
void note_device_code();

/// omp_get_uid_from_device, null: it is not there; and its inverse, or kInvalidDevice.
const char* uid_of_device(int device);
int device_of_uid(const char* uid, size_t length);

/// A box of `extent` elements of `element` bytes in `dims` dimensions, at the given offsets in arrays of
/// the given dimensions.
struct Box {
  size_t element;
  int dims;
  const size_t* extent;
  const size_t* to_offset;
  const size_t* from_offset;
  const size_t* to_dims;
  const size_t* from_dims;
};

/// Whether all sizes and offsets in it can be computed.
bool is_sound(const Box& box);
/// omp_target_memcpy_rect; the box is sound.
void copy_box(void* to, const void* from, const Box& box);

}  // namespace bosk::omp
