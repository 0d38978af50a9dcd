// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Areas that share huge pages with others: what is to go goes, nothing else does, and the books are the kernel's.
//   huge_pages stripes|neighbours|whole|stuck|touched|reserved always|never
// The last word as /sys/kernel/mm/transparent_hugepage/enabled says.
#include "../programs/bosk_check.h"
#include "numa.h"

#include <bosk/memory.h>
#include <bosk/topology.h>
#include <stddef.h>
#include <sys/wait.h>

enum { NODES = 4, HUGE = 2 << 20, IN_HUGE = HUGE / kPage, MOST_PAGES = 8 * IN_HUGE };

static int with_huge;
static char* memory;
static size_t pages;

/// Of so many blocks of 2 MiB, as many as are huge pages: by the mappings in them, which touch() has cut off from others.
static size_t huge_pages(void) {
  FILE* file = fopen("/proc/self/smaps", "r");
  CHECK(file != NULL, "smaps: %s", strerror(errno));
  char line[1000];
  size_t kib = 0;
  int within = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    unsigned long begin, end, found;
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
      within = end > (uintptr_t)memory && begin < (uintptr_t)memory + pages * kPage;
    else if (within && sscanf(line, "AnonHugePages: %lu", &found) == 1)
      kib += found;
  }
  fclose(file);
  return kib * 1024 / HUGE;
}

/// So many blocks of 2 MiB, on node 0, with a word of its own in each page: pages of zeros are absent when Linux 6.12 has split.
static void touch(size_t blocks) {
  pages = blocks * IN_HUGE;
  CHECK(pages <= MOST_PAGES, "%zu pages", pages);
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  CHECK(sched_setaffinity(0, sizeof first, &first) == 0, "CPU 0: %s", strerror(errno));
  // A block more on either side, which nobody may touch: or the kernel has one mapping for these and what was mapped before.
  memory = fresh_memory(pages * kPage + 3 * HUGE);
  memory += HUGE + (HUGE - (uintptr_t)memory % HUGE) % HUGE;
  CHECK(mprotect(memory - HUGE, HUGE, PROT_NONE) == 0 &&
            mprotect(memory + pages * kPage, HUGE, PROT_NONE) == 0,
        "the blocks beside: %s", strerror(errno));
  for (size_t i = 0; i < pages; ++i) *(size_t*)(memory + i * kPage) = i + 1;
  CHECK(huge_pages() == (with_huge ? blocks : 0), "%zu huge pages of %zu", huge_pages(), blocks);
}

static void unchanged(void) {
  for (size_t i = 0; i < pages; ++i)
    CHECK(*(size_t*)(memory + i * kPage) == i + 1, "page %zu has changed", i);
}

static size_t on_node(size_t first, size_t count, int node) {
  static int found[MOST_PAGES];
  nodes_of_pages(memory + first * kPage, count, found);
  size_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += found[i] == node;
  return sum;
}

/// The kernel and the books say the same of the area's pages.
static void books_are_true(size_t first, size_t count) {
  uint64_t bytes[NODES];
  CHECK(bosk_mem_area_nodes(memory + first * kPage, bytes, NODES) == NODES, "nodes");
  for (int node = 0; node < NODES; ++node) {
    const size_t there = on_node(first, count, node);
    CHECK(bytes[node] == there * kPage,
          "pages %zu to %zu: the books say %lu bytes on node %d, not %zu", first, first + count,
          (unsigned long)bytes[node], node, there * kPage);
  }
}

static void add_area(size_t first, size_t count) {
  OK(bosk_mem_register(memory + first * kPage, count * kPage));
}

/// Four of 1 MiB, an area each; and one area in blocks of all sizes.
static void stripes(void) {
  enum { EACH = IN_HUGE / 2 };
  touch(2);
  for (size_t i = 0; i < NODES; ++i) add_area(i * EACH, EACH);
  // All three that are not on node 0 already, in an order that comes back to what was dealt with.
  for (size_t turn = 0; turn < 2; ++turn) {
    for (size_t i = 0; i < NODES; ++i) {
      bosk_mem_moved_t moved = {.size = sizeof moved};
      OK(bosk_mem_migrate(memory + i * EACH * kPage, (int)i, &moved));
      CHECK(moved.moved + moved.already == EACH && moved.unsplit == 0, "%lu moved, %lu were there",
            (unsigned long)moved.moved, (unsigned long)moved.already);
    }
    for (size_t i = 0; i < NODES; ++i) {
      CHECK(on_node(i * EACH, EACH, (int)i) == EACH, "stripe %zu: %zu pages", i,
            on_node(i * EACH, EACH, (int)i));
      books_are_true(i * EACH, EACH);
    }
  }
  unchanged();

  for (size_t block = 1; block <= 2 * IN_HUGE; block *= 4) {
    touch(4);
    add_area(IN_HUGE / 4, 3 * IN_HUGE);
    OK(bosk_mem_distribute(memory + IN_HUGE / 4 * kPage, NULL, 0, block * kPage, NULL));
    for (size_t i = 0; i < 3 * IN_HUGE; ++i)
      CHECK(on_node(IN_HUGE / 4 + i, 1, (int)(i / block % NODES)) == 1,
            "blocks of %zu: page %zu is elsewhere", block, i);
    CHECK(on_node(0, IN_HUGE / 4, 0) == IN_HUGE / 4, "pages before have moved");
    CHECK(on_node(3 * IN_HUGE + IN_HUGE / 4, IN_HUGE * 3 / 4, 0) == IN_HUGE * 3 / 4,
          "pages behind have moved");
    books_are_true(IN_HUGE / 4, 3 * IN_HUGE);
    unchanged();
  }
}

/// One page, then areas over several huge pages whose ends are parts of some.
static void neighbours(void) {
  touch(6);
  add_area(100, 1);
  OK(bosk_mem_migrate(memory + 100 * kPage, 3, NULL));
  CHECK(on_node(0, pages, 0) == pages - 1 && on_node(100, 1, 3) == 1, "one page: %zu stayed",
        on_node(0, pages, 0));
  books_are_true(100, 1);
  if (with_huge) CHECK(huge_pages() == 5, "%zu are huge still, not 5", huge_pages());

  const size_t first = IN_HUGE + 5, count = 4 * IN_HUGE - 10;
  add_area(first, count);
  OK(bosk_mem_migrate(memory + first * kPage, 2, NULL));
  CHECK(on_node(first, count, 2) == count, "%zu pages came", on_node(first, count, 2));
  CHECK(on_node(0, pages, 0) == pages - 1 - count, "%zu stayed", on_node(0, pages, 0));
  books_are_true(first, count);
  // Those in the middle and the last are whole.
  if (with_huge) CHECK(huge_pages() == 3, "%zu are huge still, not 3", huge_pages());
  unchanged();
}

/// Nothing is split that goes as a whole, or nowhere.
static void whole(void) {
  touch(8);
  add_area(0, 8 * IN_HUGE);
  for (int node = NODES - 1; node >= 0; --node) {
    bosk_mem_moved_t moved = {.size = sizeof moved};
    OK(bosk_mem_migrate(memory, node, &moved));
    CHECK(moved.moved == 8 * IN_HUGE, "%lu moved", (unsigned long)moved.moved);
    CHECK(on_node(0, pages, node) == pages, "%zu there", on_node(0, pages, node));
    books_are_true(0, pages);
  }
  OK(bosk_mem_distribute(memory, NULL, 0, HUGE, NULL));
  for (size_t i = 0; i < 8; ++i)
    CHECK(on_node(i * IN_HUGE, IN_HUGE, (int)i % NODES) == IN_HUGE, "block %zu", i);
  books_are_true(0, pages);
  OK(bosk_mem_unregister(memory));
  add_area(7, 20);
  bosk_mem_moved_t moved = {.size = sizeof moved};
  OK(bosk_mem_migrate(memory + 7 * kPage, 0, &moved));
  CHECK(moved.already == 20, "%lu were there", (unsigned long)moved.already);
  if (with_huge) CHECK(huge_pages() == 8, "%zu are huge still", huge_pages());
  unchanged();
}

/// Locked, and shared with a child: the whole could go, so nothing goes, and the counts say why.
static void stuck(void) {
  touch(3);
  CHECK(mlock(memory, pages * kPage) == 0, "mlock: %s", strerror(errno));
  const size_t first = IN_HUGE / 2, count = 2 * IN_HUGE;
  add_area(first, count);
  bosk_mem_moved_t moved = {.size = sizeof moved};
  OK(bosk_mem_migrate(memory + first * kPage, 1, &moved));
  // Whole ones and small ones go although they are locked.
  const size_t stays = with_huge ? IN_HUGE : 0;
  CHECK(moved.moved == count - stays && moved.refused == stays && moved.unsplit == stays,
        "%lu moved, %lu refused, %lu of them unsplit", (unsigned long)moved.moved,
        (unsigned long)moved.refused, (unsigned long)moved.unsplit);
  CHECK(on_node(0, pages, 0) == pages - moved.moved, "neighbours of what is locked have moved");
  books_are_true(first, count);
  OK(bosk_mem_unregister(memory + first * kPage));
  munmap(memory, pages * kPage);  // or the next would be in one mapping with it

  touch(1);
  int ends[2];
  CHECK(pipe(ends) == 0, "pipe");
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    char nothing;
    close(ends[1]);
    _exit(read(ends[0], &nothing, 1) == 0 ? 0 : 1);  // until the parent closes its end
  }
  add_area(first, 10);
  OK(bosk_mem_migrate(memory + first * kPage, 1, &moved));
  CHECK(moved.refused == 10, "%lu refused", (unsigned long)moved.refused);
  CHECK(on_node(0, pages, 0) == pages, "neighbours of what is shared have moved");
  books_are_true(first, 10);
  close(ends[0]);
  close(ends[1]);
  waitpid(child, NULL, 0);
  OK(bosk_mem_migrate(memory + first * kPage, 1, &moved));
  CHECK(moved.moved == 10 && on_node(0, pages, 0) == pages - 10, "alone again: %lu moved",
        (unsigned long)moved.moved);
  books_are_true(first, 10);
  unchanged();
}

static void touch_from(int cpu, size_t first, size_t count) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "CPU %d: %s", cpu, strerror(errno));
  for (size_t i = 0; i < count; ++i) ((volatile char*)memory)[(first + i) * kPage + 100] = 1;
}

/// Marked parts go to whoever touches them, their neighbours do not; CPUs are nodes here.
static void touched(void) {
  touch(5);
  const struct {
    size_t first, count;
  } parts[] = {{100, 1}, {IN_HUGE + 9, 77}, {2 * IN_HUGE + IN_HUGE / 2, 2 * IN_HUGE}};
  size_t sum = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    const size_t first = parts[i].first, count = parts[i].count;
    add_area(first, count);
    OK(bosk_mem_next_touch(memory + first * kPage, count * kPage, 0));
    CHECK(on_node(0, pages, (int)i + 1) == 0, "marked, and %zu pages have moved",
          on_node(0, pages, (int)i + 1));
    touch_from((int)i + 1, first, count);
    sum += count;
    CHECK(on_node(first, count, (int)i + 1) == count, "part %zu: %zu pages came", i,
          on_node(first, count, (int)i + 1));
    CHECK(on_node(0, pages, 0) == pages - sum, "part %zu: %zu pages stayed, not %zu", i,
          on_node(0, pages, 0), pages - sum);
    OK(bosk_mem_update(memory + first * kPage));
    books_are_true(first, count);
  }
  unchanged();
}

/// A part of a reserved huge page stays, a whole one goes (if there are any: see /proc/sys/vm/nr_hugepages).
static void reserved(void) {
  const size_t bytes = 2 * HUGE;
  memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (memory == MAP_FAILED) {
    printf("SKIPPED: no reserved huge pages: %s\n", strerror(errno));
    exit(77);
  }
  pages = bytes / kPage;
  for (size_t i = 0; i < pages; ++i) *(size_t*)(memory + i * kPage) = i + 1;
  const size_t at_first = on_node(0, IN_HUGE, 0) != 0 ? 0 : 1;
  const int other = at_first == 0 ? 1 : 0;
  const size_t there = on_node(0, IN_HUGE, other);
  bosk_mem_moved_t moved = {.size = sizeof moved};
  add_area(0, 20);
  OK(bosk_mem_migrate(memory, other, &moved));
  CHECK(there != 0 || (moved.refused == 20 && moved.unsplit == 20),
        "%lu refused, %lu of them unsplit", (unsigned long)moved.refused,
        (unsigned long)moved.unsplit);
  CHECK(on_node(0, IN_HUGE, other) == there, "the rest of it has moved");
  books_are_true(0, 20);
  unchanged();
}

int main(int argc, char** argv) {
  const struct test tests[] = {{"stripes", stripes}, {"neighbours", neighbours},
                               {"whole", whole},     {"stuck", stuck},
                               {"touched", touched}, {"reserved", reserved}};
  CHECK(argc == 3,
        "usage: huge_pages stripes|neighbours|whole|stuck|touched|reserved always|never");
  CHECK(bosk_topo_nodes() == NODES, "%d nodes", bosk_topo_nodes());
  with_huge = strcmp(argv[2], "always") == 0;
  return RUN_TEST(2, argv, tests);
}
