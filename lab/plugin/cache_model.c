// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cache model. cache_model.h states the rules; the numbers below are those of its list.
//
// A set is an array of words, most recently used first: line number and two flags. `sole` remembers that no
// other private cache and no other node's shared cache holds the line, so that further stores are hits
// without a look at anybody else; whoever fetches the line clears it.
#include "cache_model.h"

#include <stdlib.h>
#include <string.h>

#include "holders.h"

enum { kDirty = 1, kSole = 2, kFlagBits = 2 };
static const uint64_t kEmpty = UINT64_MAX;

struct cache {
  uint64_t* words;  // sets × ways
  unsigned sets;
  unsigned ways;
};

struct locality_caches {
  unsigned cpus;
  unsigned nodes;
  const uint8_t* node_of_cpu;
  struct cache* private_of;  // by CPU
  struct cache* shared_of;   // by node
  uint64_t* words;
  uint64_t word_count;
  struct locality_holders holders;
  uint64_t* others;  // scratch: the cores that hold a line
  locality_write_back_t write_back;
  void* data;
};

// --- one cache ---------------------------------------------------------------------------------------

static uint64_t* set_of(const struct cache* cache, uint64_t line) {
  // Sets need not be a power of two: 12 MiB caches exist.
  uint64_t set =
      (cache->sets & (cache->sets - 1)) == 0 ? line & (cache->sets - 1) : line % cache->sets;
  return cache->words + set * cache->ways;
}

static uint64_t line_of(uint64_t word) { return word >> kFlagBits; }

// The line's word, or NULL.
static uint64_t* look_up(const struct cache* cache, uint64_t line) {
  uint64_t* set = set_of(cache, line);
  for (unsigned way = 0; way < cache->ways; ++way) {
    if (line_of(set[way]) == line && set[way] != kEmpty) return &set[way];
  }
  return NULL;
}

// Makes the word the set's most recent; returns where it is then.
static uint64_t* touch(const struct cache* cache, uint64_t* word) {
  uint64_t* set = cache->words + (uint64_t)(word - cache->words) / cache->ways * cache->ways;
  uint64_t moved = *word;
  memmove(set + 1, set, (size_t)(word - set) * sizeof *set);
  set[0] = moved;
  return set;
}

// Puts a line that is not there at the set's front. Returns the word that fell out, or kEmpty.
static uint64_t push(const struct cache* cache, uint64_t line, uint64_t flags) {
  uint64_t* set = set_of(cache, line);
  unsigned way = 0;
  while (way < cache->ways - 1 && set[way] != kEmpty) ++way;
  uint64_t victim = set[way];
  memmove(set + 1, set, way * sizeof *set);
  set[0] = line << kFlagBits | flags;
  return victim;
}

// --- all of them -------------------------------------------------------------------------------------

// Puts a line into a node's shared cache, or marks the copy that is there (rules 1, 3, 5).
static void put_in_shared(struct locality_caches* caches, unsigned node, uint64_t line,
                          uint64_t flags) {
  const struct cache* shared = &caches->shared_of[node];
  uint64_t* there = look_up(shared, line);
  if (there) {
    *touch(shared, there) |= flags;
    return;
  }
  uint64_t victim = push(shared, line, flags);
  if (victim != kEmpty) {
    if (victim & kDirty) caches->write_back(caches->data, node, line_of(victim));
    locality_holders_remove_node(&caches->holders, line_of(victim), node);
  }
  locality_holders_add_node(&caches->holders, line, node);
}

static void put_in_private(struct locality_caches* caches, unsigned cpu, uint64_t line,
                           uint64_t flags) {
  uint64_t victim = push(&caches->private_of[cpu], line, flags);
  locality_holders_add_core(&caches->holders, line, cpu);
  if (victim == kEmpty) return;
  locality_holders_remove_core(&caches->holders, line_of(victim), cpu);
  if (victim & kDirty) put_in_shared(caches, caches->node_of_cpu[cpu], line_of(victim), kDirty);
}

// The copies of a line outside the asking core and its node's shared cache: cleaned where dirty, and no
// longer sole (rules 2, 4, 5); dropped if the core is about to store.
static void settle_others(struct locality_caches* caches, unsigned cpu, uint64_t line, bool drop) {
  size_t slot = locality_holders_find(&caches->holders, line);
  if (slot == SIZE_MAX) return;
  unsigned words = caches->holders.words;
  // A copy: the slot moves when holders are removed.
  memcpy(caches->others, &caches->holders.cores[slot * words], words * sizeof *caches->others);
  uint64_t nodes = caches->holders.nodes[slot];
  unsigned own_node = caches->node_of_cpu[cpu];
  uint64_t dirty_nodes = 0;

  caches->others[cpu / 64] &= ~(UINT64_C(1) << cpu % 64);
  for (unsigned word = 0; word < words; ++word) {
    for (uint64_t rest = caches->others[word]; rest; rest &= rest - 1) {
      unsigned other = word * 64 + (unsigned)__builtin_ctzll(rest);
      uint64_t* copy = look_up(&caches->private_of[other], line);
      if (*copy & kDirty) dirty_nodes |= UINT64_C(1) << caches->node_of_cpu[other];
      *copy &= ~(uint64_t)(kDirty | kSole);
      if (!drop) continue;
      *copy = kEmpty;
      locality_holders_remove_core(&caches->holders, line, other);
    }
  }
  for (uint64_t rest = nodes & ~(UINT64_C(1) << own_node); rest; rest &= rest - 1) {
    unsigned node = (unsigned)__builtin_ctzll(rest);
    uint64_t* copy = look_up(&caches->shared_of[node], line);
    if (*copy & kDirty) dirty_nodes |= UINT64_C(1) << node;
    *copy &= ~(uint64_t)kDirty;
    if (!drop) continue;
    *copy = kEmpty;
    locality_holders_remove_node(&caches->holders, line, node);
  }
  for (uint64_t rest = dirty_nodes; rest; rest &= rest - 1) {
    unsigned node = (unsigned)__builtin_ctzll(rest);
    if (node == own_node) {
      put_in_shared(caches, node, line, kDirty);
    } else {
      caches->write_back(caches->data, node, line);
    }
  }
}

bool locality_caches_access(struct locality_caches* caches, unsigned cpu, uint64_t line,
                            bool store) {
  const struct cache* own = &caches->private_of[cpu];
  uint64_t* word = look_up(own, line);
  if (word) {
    word = touch(own, word);
    if (store && !(*word & kSole)) settle_others(caches, cpu, line, true);
    if (store) *word |= kDirty | kSole;
    return false;
  }
  settle_others(caches, cpu, line, store);
  unsigned node = caches->node_of_cpu[cpu];
  bool fill = look_up(&caches->shared_of[node], line) == NULL;
  put_in_shared(caches, node, line, 0);
  put_in_private(caches, cpu, line, store ? kDirty | kSole : 0);
  return fill;
}

void locality_caches_clear(struct locality_caches* caches) {
  memset(caches->words, 0xff, caches->word_count * sizeof *caches->words);
  locality_holders_clear(&caches->holders);
}

static unsigned sets_of(struct locality_cache_shape shape, unsigned line_bytes) {
  if (shape.ways == 0 || shape.ways > 64 || shape.bytes > UINT64_C(1) << 32) return 0;
  uint64_t set_bytes = (uint64_t)shape.ways * line_bytes;
  return shape.bytes % set_bytes == 0 ? (unsigned)(shape.bytes / set_bytes) : 0;
}

struct locality_caches* locality_caches_new(unsigned cpus, const uint8_t* node_of_cpu,
                                            unsigned nodes, unsigned line_bytes,
                                            struct locality_cache_shape private_shape,
                                            struct locality_cache_shape shared_shape,
                                            locality_write_back_t write_back, void* data) {
  if (line_bytes < 16 || line_bytes > 4096 || (line_bytes & (line_bytes - 1))) return NULL;
  struct cache private_cache = {.sets = sets_of(private_shape, line_bytes),
                                .ways = private_shape.ways};
  struct cache shared_cache = {.sets = sets_of(shared_shape, line_bytes),
                               .ways = shared_shape.ways};
  if (private_cache.sets == 0 || shared_cache.sets == 0) return NULL;
  uint64_t private_lines = (uint64_t)private_cache.sets * private_cache.ways;
  uint64_t shared_lines = (uint64_t)shared_cache.sets * shared_cache.ways;

  struct locality_caches* caches = calloc(1, sizeof *caches);
  if (!caches) return NULL;
  caches->cpus = cpus;
  caches->nodes = nodes;
  caches->node_of_cpu = node_of_cpu;
  caches->write_back = write_back;
  caches->data = data;
  caches->word_count = private_lines * cpus + shared_lines * nodes;
  caches->words = malloc(caches->word_count * sizeof *caches->words);
  caches->private_of = calloc(cpus, sizeof *caches->private_of);
  caches->shared_of = calloc(nodes, sizeof *caches->shared_of);
  caches->others = calloc((cpus + 63) / 64, sizeof *caches->others);
  if (!caches->words || !caches->private_of || !caches->shared_of || !caches->others ||
      !locality_holders_init(&caches->holders, caches->word_count, cpus)) {
    locality_caches_free(caches);
    return NULL;
  }
  uint64_t* next = caches->words;
  for (unsigned cpu = 0; cpu < cpus; ++cpu, next += private_lines) {
    caches->private_of[cpu] = private_cache;
    caches->private_of[cpu].words = next;
  }
  for (unsigned node = 0; node < nodes; ++node, next += shared_lines) {
    caches->shared_of[node] = shared_cache;
    caches->shared_of[node].words = next;
  }
  locality_caches_clear(caches);
  return caches;
}

void locality_caches_free(struct locality_caches* caches) {
  if (!caches) return;
  locality_holders_free(&caches->holders);
  free(caches->others);
  free(caches->shared_of);
  free(caches->private_of);
  free(caches->words);
  free(caches);
}
