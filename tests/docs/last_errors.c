// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints the lines of bosk_last_error() that docs/languages.md shows.
#include <bosk/bosk.h>
#include <bosk/memory.h>
#include <bosk/tree.h>
#include <sys/mman.h>

#include "fragment.h"

static void tell(int result) {
  char line[300];
  EXPECT(result < 0);
  EXPECT(bosk_last_error(line, sizeof line) > 0);
  puts(line);
}

int main(void) {
  bosk_tree_t* tree;
  tell(bosk_tree_create(&tree, "plank"));
  const size_t bytes = 1 << 16;
  void* block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(block != MAP_FAILED && bosk_mem_register(block, bytes) == 0);
  tell(bosk_mem_migrate(block, 1000, NULL));
  EXPECT(mlock(block, bytes) == 0);
  tell(bosk_mem_next_touch(block, bytes, 0));
  bosk_bubble_t bubble;
  EXPECT(bosk_bubble_create(&bubble) == 0);
  tell(bosk_bubble_set_policy(bubble, "wurst"));
  return 0;
}
