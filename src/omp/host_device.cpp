// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers of devices, and copies of boxes between arrays.
#include "omp/host_device.h"

#include <string.h>

#include "base/message.h"
#include "omp/environment.h"
#include "omp/routines.h"

namespace bosk::omp {
namespace {

// How compiled code says "no device clause" and "the host, whatever the device clause".
constexpr int kDeviceOfIcv = -1;
constexpr int kHostOfConstruct = -2;

// libgomp's word for it; programs may know it.
constexpr char kUidOfHost[] = "OMP_INITIAL_DEVICE";

/// With `device` a device number or omp_initial_device.
bool find_host(int device) {
  if (is_host(device)) return true;
  const bool mandatory = process_icvs().target_offload == TargetOffload::kMandatory;
  if (device < 0) {
    if (mandatory)
      base::gomp_fatal(
          "OMP_TARGET_OFFLOAD is set to MANDATORY, but only the host device is available");
    if (device == kInvalidDevice) base::gomp_fatal("omp_invalid_device encountered");
  } else if (mandatory) {
    base::gomp_fatal("OMP_TARGET_OFFLOAD is set to MANDATORY, but device not found");
  }
  return false;
}

/// What copying one dimension takes.
struct Steps {
  size_t to, from;              ///< bytes from one index of the outermost dimension to the next
  size_t to_first, from_first;  ///< bytes to the box's first one
};

bool steps_of(const Box& box, Steps* steps) {
  steps->to = steps->from = box.element;
  for (int i = 1; i < box.dims; ++i) {
    if (__builtin_mul_overflow(steps->to, box.to_dims[i], &steps->to) ||
        __builtin_mul_overflow(steps->from, box.from_dims[i], &steps->from)) {
      return false;
    }
  }
  return !__builtin_mul_overflow(steps->to, box.to_offset[0], &steps->to_first) &&
         !__builtin_mul_overflow(steps->from, box.from_offset[0], &steps->from_first);
}

Box without_outermost(const Box& box) {
  return {box.element,         box.dims - 1,    box.extent + 1,   box.to_offset + 1,
          box.from_offset + 1, box.to_dims + 1, box.from_dims + 1};
}

}  // namespace

void note_device_code() {
  static constinit base::SayOnce once;
  // Who has said "disabled" knows; with "mandatory" such a region ends the program in libgomp's words.
  if (process_icvs().target_offload != TargetOffload::kDefault || !once.first()) return;
  base::say(
      "this program has code for devices, which bosk does not use: its target regions run on the host");
}

bool is_host_or_dies(int device) {
  return find_host(device == kDefaultDevice ? known_icvs().default_device : device);
}

void check_device_of_construct(int device) {
  if (device == kHostOfConstruct) return;
  const bool by_icv = device == kDeviceOfIcv || device == kDefaultDevice;
  find_host(by_icv ? known_icvs().default_device : device);
}

const char* uid_of_device(int device) {
  if (device == kDefaultDevice) device = known_icvs().default_device;
  return is_host(device) ? kUidOfHost : nullptr;
}

int device_of_uid(const char* uid, size_t length) {
  constexpr size_t kLength = sizeof kUidOfHost - 1;
  return uid != nullptr && length == kLength && memcmp(uid, kUidOfHost, kLength) == 0
             ? kHostDevice
             : kInvalidDevice;
}

bool is_sound(const Box& box) {
  Box inner = box;
  for (; inner.dims > 1; inner = without_outermost(inner)) {
    Steps steps;
    if (!steps_of(inner, &steps)) return false;
  }
  Steps steps;
  size_t bytes;
  return inner.dims == 1 && steps_of(inner, &steps) &&
         !__builtin_mul_overflow(box.element, inner.extent[0], &bytes);
}

void copy_box(void* to, const void* from, const Box& box) {
  Steps steps{};
  steps_of(box, &steps);
  char* target = static_cast<char*>(to) + steps.to_first;
  const char* source = static_cast<const char*>(from) + steps.from_first;
  if (box.dims == 1) {
    if (const size_t bytes = box.element * box.extent[0]; bytes != 0) memcpy(target, source, bytes);
    return;
  }
  for (size_t i = 0; i < box.extent[0]; ++i, target += steps.to, source += steps.from)
    copy_box(target, source, without_outermost(box));
}

}  // namespace bosk::omp
