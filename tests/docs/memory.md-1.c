// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A matrix in four stripes, docs/memory.md: areas that adjoin, cut at pages, each its bubble's.
#include <bosk/bosk.h>
#include <bosk/memory.h>

#include "fragment.h"

int main(void) {
  const size_t n = 400, page = 4096;
  const uint32_t iterations = 10;
  bosk_bubble_t bubble[4];
  for (int i = 0; i < 4; i++) EXPECT(bosk_bubble_create(&bubble[i]) == 0);
#include "block.inc"
  char* end = (char*)matrix;
  for (int i = 0; i < 4; i++) {
    bosk_mem_area_t area = {.size = sizeof area};
    EXPECT(bosk_mem_area(stripe[i], &area) == 0);
    EXPECT(area.begin == end && area.begin == stripe[i] && area.attached == 1);
    EXPECT(i == 0 || (uintptr_t)stripe[i] % page == 0);
    end += area.bytes;
    EXPECT(bosk_mem_detach_bubble(stripe[i], bubble[i]) == 0);
    EXPECT(bosk_mem_unregister(stripe[i]) == 0);
  }
  EXPECT(end == (char*)(matrix + n * n));
  free(matrix);
  return 0;
}
