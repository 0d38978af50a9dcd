// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of holders: open addressing, and deletion that moves later entries back.
#include "holders.h"

#include <stdlib.h>
#include <string.h>

bool locality_holders_init(struct locality_holders* table, uint64_t most_lines, unsigned cores) {
  table->slots = 64;
  while (table->slots < 2 * most_lines) table->slots *= 2;
  table->words = (cores + 63) / 64;
  table->lines = malloc(table->slots * sizeof *table->lines);
  table->cores = calloc(table->slots * table->words, sizeof *table->cores);
  table->nodes = calloc(table->slots, sizeof *table->nodes);
  if (!table->lines || !table->cores || !table->nodes) {
    locality_holders_free(table);
    return false;
  }
  locality_holders_clear(table);
  return true;
}

void locality_holders_free(struct locality_holders* table) {
  free(table->lines);
  free(table->cores);
  free(table->nodes);
  table->lines = NULL;
  table->cores = NULL;
  table->nodes = NULL;
}

void locality_holders_clear(struct locality_holders* table) {
  memset(table->lines, 0xff, table->slots * sizeof *table->lines);
  memset(table->cores, 0, table->slots * table->words * sizeof *table->cores);
  memset(table->nodes, 0, table->slots * sizeof *table->nodes);
}

// Neighbouring lines spread: streams would fill long runs otherwise.
static size_t home_slot(const struct locality_holders* table, uint64_t line) {
  return (size_t)((line * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (table->slots - 1);
}

size_t locality_holders_find(const struct locality_holders* table, uint64_t line) {
  for (size_t slot = home_slot(table, line);; slot = (slot + 1) & (table->slots - 1)) {
    if (table->lines[slot] == line) return slot;
    if (table->lines[slot] == LOCALITY_NO_LINE) return SIZE_MAX;
  }
}

// The line's slot; a new one if there was none.
static size_t slot_for(struct locality_holders* table, uint64_t line) {
  size_t slot = home_slot(table, line);
  while (table->lines[slot] != line && table->lines[slot] != LOCALITY_NO_LINE) {
    slot = (slot + 1) & (table->slots - 1);
  }
  table->lines[slot] = line;
  return slot;
}

void locality_holders_add_core(struct locality_holders* table, uint64_t line, unsigned core) {
  size_t slot = slot_for(table, line);
  table->cores[slot * table->words + core / 64] |= UINT64_C(1) << core % 64;
}

void locality_holders_add_node(struct locality_holders* table, uint64_t line, unsigned node) {
  table->nodes[slot_for(table, line)] |= UINT64_C(1) << node;
}

static void free_slot(struct locality_holders* table, size_t hole) {
  size_t mask = table->slots - 1;
  for (size_t slot = (hole + 1) & mask; table->lines[slot] != LOCALITY_NO_LINE;
       slot = (slot + 1) & mask) {
    // An entry may fill the hole if the hole lies between its home and where it is.
    size_t home = home_slot(table, table->lines[slot]);
    if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
    table->lines[hole] = table->lines[slot];
    table->nodes[hole] = table->nodes[slot];
    memcpy(&table->cores[hole * table->words], &table->cores[slot * table->words],
           table->words * sizeof *table->cores);
    hole = slot;
  }
  table->lines[hole] = LOCALITY_NO_LINE;
  table->nodes[hole] = 0;
  memset(&table->cores[hole * table->words], 0, table->words * sizeof *table->cores);
}

static void free_slot_if_unheld(struct locality_holders* table, size_t slot) {
  if (table->nodes[slot]) return;
  for (unsigned word = 0; word < table->words; ++word) {
    if (table->cores[slot * table->words + word]) return;
  }
  free_slot(table, slot);
}

void locality_holders_remove_core(struct locality_holders* table, uint64_t line, unsigned core) {
  size_t slot = locality_holders_find(table, line);
  table->cores[slot * table->words + core / 64] &= ~(UINT64_C(1) << core % 64);
  free_slot_if_unheld(table, slot);
}

void locality_holders_remove_node(struct locality_holders* table, uint64_t line, unsigned node) {
  size_t slot = locality_holders_find(table, line);
  table->nodes[slot] &= ~(UINT64_C(1) << node);
  free_slot_if_unheld(table, slot);
}
