// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who holds a line: a hash table from lines to sets of private and shared caches, so that a store need not
// search all caches. A line that nobody holds is not in it.
#ifndef BOSK_LAB_HOLDERS_H
#define BOSK_LAB_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct locality_holders {
  size_t slots;     // a power of two, at least twice the lines that can be held
  unsigned words;   // of 64 cores each
  uint64_t* lines;  // kNoLine in a free slot
  uint64_t* cores;  // `words` for each slot
  uint64_t* nodes;  // bit per shared cache
};

#define LOCALITY_NO_LINE UINT64_MAX

bool locality_holders_init(struct locality_holders* table, uint64_t most_lines, unsigned cores);
void locality_holders_free(struct locality_holders* table);
void locality_holders_clear(struct locality_holders* table);

// The slot of a line, or SIZE_MAX. Good until the next add or remove.
size_t locality_holders_find(const struct locality_holders* table, uint64_t line);

void locality_holders_add_core(struct locality_holders* table, uint64_t line, unsigned core);
void locality_holders_add_node(struct locality_holders* table, uint64_t line, unsigned node);
// The line must be held by it.
void locality_holders_remove_core(struct locality_holders* table, uint64_t line, unsigned core);
void locality_holders_remove_node(struct locality_holders* table, uint64_t line, unsigned node);

#ifdef __cplusplus
}
#endif
#endif
