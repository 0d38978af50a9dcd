// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// omp_target_*: memory of devices, which is the host's.
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi/gomp/export.h"
#include "omp/host_device.h"
#include "omp/target_region.h"

using namespace bosk::omp;

// The _async forms are tasks where they have to wait for others, and done at once where not.

namespace {

/// Both are looked at, so that either may end the program.
bool on_host(int to_device, int from_device) {
  const bool to = is_host_or_dies(to_device);
  const bool from = is_host_or_dies(from_device);
  return to && from;
}

struct Copy {
  char* to;
  const char* from;
  size_t size;
};

// The ranges may be the same one, which memcpy does not promise to bear.
void copy(void* data) {
  const auto& c = *static_cast<const Copy*>(data);
  if (c.size != 0) memmove(c.to, c.from, c.size);
}

struct Fill {
  void* at;
  int value;
  size_t size;
};

void fill(void* data) {
  const auto& f = *static_cast<const Fill*>(data);
  if (f.size != 0) memset(f.at, f.value, f.size);
}

/// In a task the box's five lists lie behind it.
struct BoxCopy {
  void* to;
  const void* from;
  Box box;
};

size_t size_of_lists(const Box& box) { return 5 * static_cast<size_t>(box.dims) * sizeof(size_t); }

void copy_a_box(void* data) {
  const auto& c = *static_cast<const BoxCopy*>(data);
  copy_box(c.to, c.from, c.box);
}

template <typename T>
void take_plain(void* to, void* from) {
  memcpy(to, from, sizeof(T));
}

void take_box(void* to, void* from) {
  auto* copy = static_cast<BoxCopy*>(to);
  *copy = *static_cast<const BoxCopy*>(from);
  auto* list = reinterpret_cast<size_t*>(copy + 1);
  const auto dims = static_cast<size_t>(copy->box.dims);
  for (const size_t** lengths : {&copy->box.extent, &copy->box.to_offset, &copy->box.from_offset,
                                 &copy->box.to_dims, &copy->box.from_dims}) {
    memcpy(list, *lengths, dims * sizeof(size_t));
    *lengths = list;
    list += dims;
  }
}

template <typename T>
void now_or_after(T* what, void (*fn)(void*), void (*take)(void*, void*), size_t bytes, int count,
                  void* dependences) {
  if (count > 0)
    defer_with_dependences(fn, what, take, bytes, count, dependences);
  else
    fn(what);
}

int copy_after(void* to, const void* from, size_t size, size_t to_offset, size_t from_offset,
               int to_device, int from_device, int count, void* dependences) {
  if (!on_host(to_device, from_device)) return EINVAL;
  Copy what{static_cast<char*>(to) + to_offset, static_cast<const char*>(from) + from_offset, size};
  now_or_after(&what, copy, take_plain<Copy>, sizeof what, count, dependences);
  return 0;
}

int copy_box_after(void* to, const void* from, const Box& box, int to_device, int from_device,
                   int count, void* dependences) {
  if (to == nullptr && from == nullptr) return INT_MAX;  // how many dimensions may it be?
  if (!on_host(to_device, from_device) || !is_sound(box)) return EINVAL;
  BoxCopy what{to, from, box};
  now_or_after(&what, copy_a_box, take_box, sizeof what + size_of_lists(box), count, dependences);
  return 0;
}

void* fill_after(void* pointer, int value, size_t size, int device, int count, void* dependences) {
  if (!is_host_or_dies(device)) return pointer;
  Fill what{pointer, value, size};
  now_or_after(&what, fill, take_plain<Fill>, sizeof what, count, dependences);
  return pointer;
}

}  // namespace

BOSK_EXPORT void* omp_target_alloc(size_t size, int device) {
  return is_host_or_dies(device) ? malloc(size) : nullptr;
}
BOSK_EXPORT void omp_target_free(void* pointer, int device) {
  if (pointer != nullptr && is_host_or_dies(device)) free(pointer);
}
BOSK_EXPORT int omp_target_is_present(const void* pointer, int device) {
  return pointer == nullptr || is_host_or_dies(device);
}
BOSK_EXPORT int omp_target_is_accessible(const void* /*pointer*/, size_t /*size*/, int device) {
  return is_host_or_dies(device);
}
BOSK_EXPORT void* omp_get_mapped_ptr(const void* pointer, int device) {
  return is_host_or_dies(device) ? const_cast<void*>(pointer) : nullptr;
}
BOSK_EXPORT void* GOMP_target_map_indirect_ptr(void* pointer) { return pointer; }

// Host memory is not mapped to the host.
BOSK_EXPORT int omp_target_associate_ptr(const void*, const void*, size_t, size_t, int device) {
  is_host_or_dies(device);
  return EINVAL;
}
BOSK_EXPORT int omp_target_disassociate_ptr(const void*, int device) {
  is_host_or_dies(device);
  return EINVAL;
}

BOSK_EXPORT int omp_target_memcpy(void* to, const void* from, size_t size, size_t to_offset,
                                  size_t from_offset, int to_device, int from_device) {
  return copy_after(to, from, size, to_offset, from_offset, to_device, from_device, 0, nullptr);
}
BOSK_EXPORT int omp_target_memcpy_async(void* to, const void* from, size_t size, size_t to_offset,
                                        size_t from_offset, int to_device, int from_device,
                                        int n_dependences, void* dependences) {
  return copy_after(to, from, size, to_offset, from_offset, to_device, from_device, n_dependences,
                    dependences);
}
BOSK_EXPORT int omp_target_memcpy_rect(void* to, const void* from, size_t element, int dims,
                                       const size_t* extent, const size_t* to_offset,
                                       const size_t* from_offset, const size_t* to_dims,
                                       const size_t* from_dims, int to_device, int from_device) {
  return copy_box_after(to, from,
                        {element, dims, extent, to_offset, from_offset, to_dims, from_dims},
                        to_device, from_device, 0, nullptr);
}
BOSK_EXPORT int omp_target_memcpy_rect_async(void* to, const void* from, size_t element, int dims,
                                             const size_t* extent, const size_t* to_offset,
                                             const size_t* from_offset, const size_t* to_dims,
                                             const size_t* from_dims, int to_device,
                                             int from_device, int n_dependences,
                                             void* dependences) {
  return copy_box_after(to, from,
                        {element, dims, extent, to_offset, from_offset, to_dims, from_dims},
                        to_device, from_device, n_dependences, dependences);
}
BOSK_EXPORT void* omp_target_memset(void* pointer, int value, size_t size, int device) {
  return fill_after(pointer, value, size, device, 0, nullptr);
}
BOSK_EXPORT void* omp_target_memset_async(void* pointer, int value, size_t size, int device,
                                          int n_dependences, void* dependences) {
  return fill_after(pointer, value, size, device, n_dependences, dependences);
}
