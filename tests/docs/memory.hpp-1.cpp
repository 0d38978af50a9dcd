// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lines at the head of bosk/memory.hpp, on a node that there is.
#include <bosk/memory.hpp>
#include <vector>

#include "fragment.h"

int main() {
  const int node = bosk_mem_least_loaded();
  const std::size_t n = 300, bytes = n * n * sizeof(double);
  bosk_thread_attr_t attr;
  bosk_thread_attr_init(&attr);
  attr.asleep = 1;
  bosk_thread_t thread;
  EXPECT(bosk_thread_create(&thread, &attr, [](void*) -> void* { return nullptr; }, nullptr) == 0);
  void* block = nullptr;
  EXPECT(bosk_mem_alloc(&block, bytes, nullptr) == 0);
  const void* was_registered = nullptr;
  bosk_mem_area_t area{};
  area.size = sizeof area;
  {
#include "block.inc"
    was_registered = matrix.data();
    EXPECT(bosk_mem_area(was_registered, &area) == 0 && area.attached == 1);
    EXPECT(bosk_mem_detach_thread(was_registered, thread) == 0);
    EXPECT(bosk_mem_area(block, &area) == 0 && area.node == static_cast<uint32_t>(node));
    EXPECT(here.size() == n && matrix.size() == n * n);
  }
  // The matrix is back with the resource: nothing is known of it.
  EXPECT(bosk_mem_area(was_registered, &area) == BOSK_ENOAREA);
  EXPECT(bosk_free(block) == 0);
  EXPECT(bosk_thread_wake(thread) == 0 && bosk_thread_join(thread, nullptr) == 0);
  return 0;
}
