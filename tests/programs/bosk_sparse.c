// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An area of 1 TiB of which a few pages are there: what is done to it takes time by what is there. The limit of the
// test's time is the check: a step for each page would take minutes.
#include "bosk_check.h"

#include <bosk/memory.h>
#include <bosk/topology.h>
#include <sys/mman.h>

enum { PAGE = 4096, THERE = 500, MOST_NODES = 64 };

static const size_t kBytes = (size_t)1 << 40;
static char* area;

/// Some alone, some beside each other, the first and the last among them.
static size_t place(int i) {
  if (i == THERE - 1) return kBytes - PAGE;
  const size_t chunk = (kBytes / (THERE / 5)) & ~(size_t)(PAGE - 1);
  return (size_t)(i / 5) * chunk + (size_t)(i % 5) * PAGE;
}

static void touch(void) {
  for (int i = 0; i < THERE; ++i) *(int*)(area + place(i)) += i;
}
static void check(int times) {
  for (int i = 0; i < THERE; ++i)
    CHECK(*(int*)(area + place(i)) == times * i, "page %d has changed", i);
}

static void reserve(void) {
  area = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
              0);
  if (area == MAP_FAILED) {
    printf("SKIPPED: no 1 TiB of addresses: %s\n", strerror(errno));
    exit(77);
  }
  // Huge ones would be there between those that are touched.
  madvise(area, kBytes, MADV_NOHUGEPAGE);
  touch();
  OK(bosk_mem_register(area, kBytes));
}

static void known(void) {
  uint64_t on[MOST_NODES];
  bosk_mem_area_t found = {.size = sizeof found};
  OK(bosk_mem_area(area + kBytes / 2, &found));
  CHECK(found.begin == area && found.bytes == kBytes, "another area");
  OK(bosk_mem_update(area));
  CHECK(bosk_mem_area_nodes(area, on, MOST_NODES) == bosk_topo_nodes(), "nodes");
  uint64_t sum = 0;
  for (int node = 0; node < bosk_topo_nodes(); ++node) sum += on[node];
  CHECK(sum <= kBytes, "%lu bytes", (unsigned long)sum);
  CHECK(bosk_mem_locate(area + place(7)) >= 0, "a page that is there");
  FAILS(bosk_mem_locate(area + place(7) + 10 * PAGE), BOSK_ENOENT);
  void* part[1000];
  OK(bosk_mem_split(area, 1000, part));
  for (int i = 0; i < 1000; ++i) OK(bosk_mem_unregister(part[i]));
  check(1);
}

static void marked(void) {
  for (int round = 1; round <= 3; ++round) {
    uint64_t pages = 0;
    OK(bosk_mem_next_touch(area, 0, round == 2 ? BOSK_MEM_ON_WRITE : 0));
    const int64_t now = bosk_mem_next_touch_query(area, 0, &pages);
    CHECK(now >= 0 && pages == kBytes / PAGE, "%ld of %lu pages are marked", (long)now,
          (unsigned long)pages);
    touch();
    check(round + 1);
  }
  OK(bosk_mem_next_touch(area, 0, 0));
  OK(bosk_mem_next_touch_cancel(area, 0));
  CHECK(bosk_mem_next_touch_query(area, 0, NULL) == 0, "still marked");
  check(4);
  OK(bosk_mem_next_touch(area, 0, 0));
  OK(bosk_mem_unregister(area));
  check(4);
}

static void migrated(void) {
  bosk_mem_moved_t moved = {.size = sizeof moved};
  OK(bosk_mem_migrate(area, bosk_topo_nodes() - 1, &moved));
  CHECK(moved.moved + moved.already == THERE, "%lu moved, %lu were there",
        (unsigned long)moved.moved, (unsigned long)moved.already);
  OK(bosk_mem_distribute(area, NULL, 0, 0, &moved));
  CHECK(moved.moved + moved.already == THERE, "%lu moved, %lu were there",
        (unsigned long)moved.moved, (unsigned long)moved.already);
  check(1);
  OK(bosk_mem_unregister(area));
}

int main(int argc, char** argv) {
  const struct test tests[] = {{"known", known}, {"marked", marked}, {"migrated", migrated}};
  reserve();
  const int status = RUN_TEST(argc, argv, tests);
  munmap(area, kBytes);
  return status;
}
