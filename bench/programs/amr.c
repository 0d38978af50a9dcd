// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An adaptively refined mesh in four versions, as Thibault 2005 (section 5) announces: balanced by hand,
// dealt out at run time ("opportunist"), as nested teams whose structure is the mesh's, which the runtime takes
// for bubbles, and with bubbles that the program makes itself (bosk only). What each needs beside the numerics
// is counted and printed.
//
// A block is a square of 16 x 16 cells; where a front passes, it is split into four, again and again. A block
// of level l takes 2^l times as many time steps, so its cost doubles with each level, and where the fine
// blocks are changes from step to step. Every version must give the sum of the sequential run, to the bit.
#include <bosk/bosk.h>
#include <math.h>
#include <omp.h>

#include "bench.h"

// On a library that is not bosk only the version that needs them cannot be run.
#pragma weak bosk_thread_attr_init_sized
#pragma weak bosk_thread_create
#pragma weak bosk_bubble_create
#pragma weak bosk_bubble_insert_bubble
#pragma weak bosk_bubble_wake
#pragma weak bosk_bubble_join
#pragma weak bosk_bubble_destroy

enum { kSide = 4, kLevels = 4, kSteps = 3, kCells = 16, kPitch = kCells + 2, kMost = 4096 };

typedef struct Block {
  double x, y, size, total;
  int level;
  struct Block* child;   // four of them, or null
  bosk_bubble_t bubble;  // of a block with children, where the program makes bubbles
} Block;

static Block coarse[kSide * kSide];
static Block pool[kMost];
static int pool_used;
static int threads;

static double distance_to_front(double x, double y, double time) {
  const double dx = x - 0.3 - 0.4 * time, dy = y - 0.35 - 0.3 * time;
  return sqrt(dx * dx + dy * dy) - 0.22;
}

static void refine(Block* block, double time) {
  const double half = block->size / 2;
  block->child = NULL;
  if (block->level == kLevels ||
      fabs(distance_to_front(block->x + half, block->y + half, time)) >= block->size)
    return;
  if (pool_used + 4 > kMost) bench_fail("amr: too many blocks");
  block->child = pool + pool_used;
  pool_used += 4;
  for (int i = 0; i < 4; i++) {
    block->child[i] = (Block){.x = block->x + (i % 2) * half,
                              .y = block->y + (double)(i / 2) * half,
                              .size = half,
                              .level = block->level + 1};
    refine(&block->child[i], time);
  }
}

static void make_mesh(double time) {
  pool_used = 0;
  for (int i = 0; i < kSide * kSide; i++) {
    coarse[i] = (Block){
        .x = (double)(i % kSide) / kSide, .y = (double)(i / kSide) / kSide, .size = 1.0 / kSide};
    refine(&coarse[i], time);
  }
}

/// Time steps of one block without children.
static void advance(Block* leaf, double time) {
  double now[kPitch * kPitch], next[kPitch * kPitch];
  const double h = leaf->size / kCells;
  for (int j = 0; j < kPitch; j++)
    for (int i = 0; i < kPitch; i++)
      next[j * kPitch + i] = now[j * kPitch + i] =
          tanh(-40 * distance_to_front(leaf->x + (i - 0.5) * h, leaf->y + (j - 0.5) * h, time));
  for (int step = 0; step < 4 << leaf->level; step++) {
    for (int j = 1; j <= kCells; j++)
      for (int i = 1; i <= kCells; i++) {
        const double* c = &now[j * kPitch + i];
        next[j * kPitch + i] = c[0] + 0.2 * (c[-1] + c[1] + c[-kPitch] + c[kPitch] - 4 * c[0]);
      }
    memcpy(now, next, sizeof now);
  }
  leaf->total = 0;
  for (int j = 1; j <= kCells; j++)
    for (int i = 1; i <= kCells; i++) leaf->total += now[j * kPitch + i] * h * h;
}

/// In the order of the tree, whoever was first.
static double sum_of(const Block* blocks, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++)
    sum += blocks[i].child != NULL ? sum_of(blocks[i].child, 4) : blocks[i].total;
  return sum;
}

static void advance_sequentially(Block* blocks, int count, double time) {
  for (int i = 0; i < count; i++)
    if (blocks[i].child != NULL)
      advance_sequentially(blocks[i].child, 4, time);
    else
      advance(&blocks[i], time);
}

static void sequential(double time) { advance_sequentially(coarse, kSide * kSide, time); }

enum { kCollectBegin = __LINE__ };
static int collect(Block* blocks, int count, Block** leaves, int found) {
  for (int i = 0; i < count; i++)
    if (blocks[i].child != NULL)
      found = collect(blocks[i].child, 4, leaves, found);
    else
      leaves[found++] = &blocks[i];
  return found;
}
enum { kCollectLines = __LINE__ - kCollectBegin - 1 };

// ---- by hand: leaves in the order of the tree, cut so that each thread has the same work

enum { kHandmadeBegin = __LINE__ };
static void by_hand(double time) {
  static Block* leaves[kMost];
  static long work_before[kMost + 1];
  const int count = collect(coarse, kSide * kSide, leaves, 0);
  for (int i = 0; i < count; i++) work_before[i + 1] = work_before[i] + (1L << leaves[i]->level);
#pragma omp parallel num_threads(threads)
  {
    const long all = work_before[count], mine = omp_get_thread_num();
    const long from = all * mine / omp_get_num_threads();
    const long to = all * (mine + 1) / omp_get_num_threads();
    int low = 0, high = count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (work_before[middle] < from)
        low = middle + 1;
      else
        high = middle;
    }
    for (int i = low; i < count && work_before[i] < to; i++) advance(leaves[i], time);
  }
}
enum { kHandmadeLines = __LINE__ - kHandmadeBegin - 1 };

// ---- opportunist: whoever is free takes the next leaf

enum { kOpportunistBegin = __LINE__ };
static void opportunist(double time) {
  static Block* leaves[kMost];
  const int count = collect(coarse, kSide * kSide, leaves, 0);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int i = 0; i < count; i++) advance(leaves[i], time);
}
enum { kOpportunistLines = __LINE__ - kOpportunistBegin - 1 };

// ---- bubbles: a team for the children of each block that is split

enum { kBubblesBegin = __LINE__ };
static void as_bubbles(Block* blocks, int count, double time) {
#pragma omp parallel for num_threads(count) schedule(static, 1)
  for (int i = 0; i < count; i++)
    if (blocks[i].child != NULL)
      as_bubbles(blocks[i].child, 4, time);
    else
      advance(&blocks[i], time);
}
enum { kBubblesLines = __LINE__ - kBubblesBegin - 1 };

static void bubbles(double time) { as_bubbles(coarse, kSide * kSide, time); }

// ---- explicit: a thread for each leaf, a bubble for each block that is split, loads as they are known

enum { kExplicitBegin = __LINE__ };
typedef struct {
  Block* leaf;
  double time;
} Piece;

static Piece pieces[kMost];
static int pieces_used;

static void need(int code) {
  if (code != BOSK_OK) bench_fail("amr: bosk refuses");
}

static void* advance_piece(void* piece) {
  advance(((Piece*)piece)->leaf, ((Piece*)piece)->time);
  return NULL;
}

static void populate(bosk_bubble_t bubble, Block* blocks, int count, double time) {
  for (int i = 0; i < count; i++) {
    if (blocks[i].child != NULL) {
      need(bosk_bubble_create(&blocks[i].bubble));
      populate(blocks[i].bubble, blocks[i].child, 4, time);
      need(bosk_bubble_insert_bubble(bubble, blocks[i].bubble));
      continue;
    }
    bosk_thread_attr_t attributes;
    need(bosk_thread_attr_init(&attributes));
    attributes.bubble = bubble;
    attributes.load = 1u << blocks[i].level;
    attributes.detached = 1;
    pieces[pieces_used] = (Piece){&blocks[i], time};
    need(bosk_thread_create(NULL, &attributes, advance_piece, &pieces[pieces_used++]));
  }
}

static void remove_bubbles(Block* blocks, int count) {
  for (int i = 0; i < count; i++) {
    if (blocks[i].child == NULL) continue;
    remove_bubbles(blocks[i].child, 4);
    need(bosk_bubble_destroy(blocks[i].bubble));
  }
}

static void by_own_bubbles(double time) {
  bosk_bubble_t mesh;
  pieces_used = 0;
  need(bosk_bubble_create(&mesh));
  populate(mesh, coarse, kSide * kSide, time);
  need(bosk_bubble_wake(mesh, NULL));
  need(bosk_bubble_join(mesh));
  remove_bubbles(coarse, kSide * kSide);
  need(bosk_bubble_destroy(mesh));
}
enum { kExplicitLines = __LINE__ - kExplicitBegin - 1 };

static double simulate(void (*version)(double), double* sum) {
  double took = 0;
  *sum = 0;
  for (int step = 0; step < kSteps; step++) {
    const double time = (double)step / kSteps;
    make_mesh(time);
    const double start = now_ns();
    version(time);
    took += now_ns() - start;
    *sum += (step + 1) * sum_of(coarse, kSide * kSide);
  }
  return took;
}

static void (*measured)(double);
static double expected;

static double run(void* unused, long count) {
  (void)unused;
  double took = 0;
  for (long i = 0; i < count; i++) {
    double sum;
    took += simulate(measured, &sum);
    if (sum != expected) bench_fail("amr: the sum differs from the sequential one");
  }
  return took;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*version)(double);
    int lines;
  } kCases[] = {{"amr-sequential", sequential, 0},
                {"amr-handmade", by_hand, kCollectLines + kHandmadeLines},
                {"amr-opportunist", opportunist, kCollectLines + kOpportunistLines},
                {"amr-bubbles", bubbles, kBubblesLines},
                {"amr-explicit", by_own_bubbles, kExplicitLines}};
  if (argc < 3) bench_fail("amr CASE THREADS; see rows.py for the cases");
  threads = bench_int(argc, argv, 2);
  omp_set_max_active_levels(kLevels + 2);
  simulate(sequential, &expected);
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    if (strcmp(argv[1], kCases[i].name) != 0) continue;
    measured = kCases[i].version;
    if (measured == by_own_bubbles && bosk_bubble_create == NULL)
      bench_fail("amr: the libgomp.so.1 that is loaded is not bosk");
    bench_print(kCases[i].name, bench_measure(run, NULL) / 1e6, "ms");
    bench_print("lines", kCases[i].lines, "lines");
    return 0;
  }
  bench_fail("amr: no such case");
}
