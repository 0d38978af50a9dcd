// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How gfortran (since GCC 9) passes an array of any type and rank.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::acc {

struct ArrayDescriptor {
  struct Dimension {
    ptrdiff_t stride;
    ptrdiff_t lower;
    ptrdiff_t upper;
  };

  void* base;
  size_t offset;
  size_t element_size;
  int32_t version;
  int8_t rank;
  int8_t type;
  int16_t attribute;
  ptrdiff_t span;
  Dimension dimension[];  // as many as the rank says

  /// Bytes of all elements: the routines ask for contiguous arrays.
  size_t size() const {
    size_t bytes = element_size;
    for (int i = 0; i < rank; ++i) {
      const ptrdiff_t extent = dimension[i].upper - dimension[i].lower + 1;
      bytes *= extent > 0 ? static_cast<size_t>(extent) : 0;
    }
    return bytes;
  }
};
static_assert(offsetof(ArrayDescriptor, dimension) == 40);

}  // namespace bosk::acc
