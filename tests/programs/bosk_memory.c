// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Areas, and who works on them, as a program sees them (bosk/memory.h).
#include "bosk_check.h"

#include <bosk/memory.h>
#include <bosk/topology.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096, MOST_NODES = 64 };

static char globals[10 * PAGE];

static void* nothing(void* argument) { return argument; }

static char* map(size_t bytes) {
  char* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED, "mmap");
  return at;
}

static uint64_t footprint_of_thread(bosk_thread_t thread) {
  bosk_stats_t stats = {.size = sizeof stats};
  OK(bosk_thread_get_stats(thread, &stats));
  return stats.footprint;
}
static uint64_t footprint_of_bubble(bosk_bubble_t bubble) {
  bosk_stats_t stats = {.size = sizeof stats};
  OK(bosk_bubble_get_stats(bubble, &stats));
  return stats.footprint;
}

static bosk_mem_area_t area_at(const void* address) {
  bosk_mem_area_t area = {.size = sizeof area};
  OK(bosk_mem_area(address, &area));
  return area;
}

static uint64_t on_all_nodes(const void* address) {
  uint64_t bytes[MOST_NODES];
  const int nodes = bosk_mem_area_nodes(address, bytes, MOST_NODES);
  CHECK(nodes == bosk_topo_nodes(), "%d nodes", nodes);
  uint64_t sum = 0;
  for (int i = 0; i < MOST_NODES; ++i) sum += bytes[i];
  return sum;
}

static void areas(void) {
  char on_stack[300];
  bosk_mem_area_t area = {.size = sizeof area};
  FAILS(bosk_mem_area(globals, &area), BOSK_ENOAREA);
  OK(bosk_mem_register(globals + 10, 3 * PAGE));
  OK(bosk_mem_register(globals + 10 + 3 * PAGE, 5));  // on the same page
  OK(bosk_mem_register(on_stack, sizeof on_stack));
  area = area_at(on_stack + 299);
  CHECK(area.begin == on_stack && area.bytes == 300 && area.allocated == 0 && area.attached == 0 &&
            area.policy == BOSK_MEM_DEFAULT && area.node == BOSK_UNKNOWN && area.huge_page == 0,
        "another area");
  FAILS(bosk_mem_area(on_stack + 300, &area), BOSK_ENOAREA);
  CHECK(area_at(globals + 10 + 3 * PAGE).bytes == 5, "not the neighbour");

  memset(globals, 1, sizeof globals);
  OK(bosk_mem_update(globals + 100));
  if (bosk_topo_is_real()) {
    CHECK(on_all_nodes(globals + 100) == 3 * PAGE, "%lu bytes known",
          (unsigned long)on_all_nodes(globals + 100));
    const int node = bosk_mem_locate(globals);
    CHECK(node >= 0 && node < bosk_topo_nodes(), "on node %d", node);
  }

  void* parts[3];
  OK(bosk_mem_split(globals + 10, 3, parts));
  CHECK(parts[0] == globals + 10, "the first is elsewhere");
  size_t sum = 0;
  for (int i = 0; i < 3; ++i) {
    area = area_at(parts[i]);
    CHECK(area.begin == parts[i], "part %d begins elsewhere", i);
    CHECK(i == 0 || (uintptr_t)parts[i] % PAGE == 0, "part %d begins within a page", i);
    sum += area.bytes;
  }
  CHECK(sum == 3 * PAGE, "%zu bytes in all", sum);
  FAILS(bosk_mem_unregister(globals + 11), BOSK_ENOAREA);
  for (int i = 0; i < 3; ++i) OK(bosk_mem_unregister(parts[i]));
  FAILS(bosk_mem_unregister(parts[0]), BOSK_ENOAREA);
  OK(bosk_mem_unregister(globals + 10 + 3 * PAGE));
  OK(bosk_mem_unregister(on_stack));
  OK(bosk_mem_register(globals, sizeof globals));
  OK(bosk_mem_unregister(globals));
}

static void owners(void) {
  OK(bosk_mem_register(globals, 4 * PAGE));
  OK(bosk_mem_register(globals + 4 * PAGE, PAGE));
  memset(globals, 1, sizeof globals);
  OK(bosk_mem_update(globals));
  OK(bosk_mem_update(globals + 4 * PAGE));
  // Of an invented machine nobody can say where pages are.
  const uint64_t page = on_all_nodes(globals + 4 * PAGE);
  CHECK(page == (bosk_topo_is_real()      ? PAGE
                 : bosk_topo_nodes() == 1 ? PAGE
                                          : 0),
        "%lu bytes", (unsigned long)page);

  bosk_bubble_t outer, inner;
  OK(bosk_bubble_create(&outer));
  OK(bosk_bubble_create(&inner));
  OK(bosk_bubble_insert_bubble(outer, inner));
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.bubble = inner;
  bosk_thread_t thread;
  OK(bosk_thread_create(&thread, &attr, nothing, NULL));
  CHECK(footprint_of_thread(thread) == BOSK_UNKNOWN_64, "known before anything is attached");
  OK(bosk_mem_attach_thread(globals + 7, thread, BOSK_MEM_READS, 10));
  CHECK(footprint_of_thread(thread) == 4 * page, "wrong footprint");
  OK(bosk_mem_attach_thread(globals + 8, thread, BOSK_MEM_WRITES, BOSK_UNKNOWN));
  CHECK(footprint_of_thread(thread) == 4 * page, "counted twice");
  OK(bosk_mem_attach_bubble(globals + 4 * PAGE, outer, BOSK_MEM_READS_AND_WRITES, 1));
  CHECK(footprint_of_bubble(outer) == 5 * page, "wrong sum");
  CHECK(footprint_of_bubble(inner) == 4 * page, "wrong sum inside");
  uint64_t bytes[MOST_NODES];
  CHECK(bosk_mem_bubble_footprint(outer, bytes, MOST_NODES) == bosk_topo_nodes(), "nodes");
  uint64_t sum = 0;
  for (int i = 0; i < MOST_NODES; ++i) sum += bytes[i];
  CHECK(sum == 5 * page, "wrong sum over nodes");
  CHECK(area_at(globals).attached == 1, "attached to %u", area_at(globals).attached);
  OK(bosk_mem_detach_thread(globals, thread));
  FAILS(bosk_mem_detach_thread(globals, thread), BOSK_ENOENT);
  FAILS(bosk_mem_detach_bubble(globals, outer), BOSK_ENOENT);
  CHECK(footprint_of_thread(thread) == 0, "still attached");
  OK(bosk_mem_attach_bubble(globals, outer, BOSK_MEM_READS, 1));
  OK(bosk_mem_detach_all_bubble(outer));
  CHECK(footprint_of_bubble(outer) == 0, "still attached");
  OK(bosk_mem_attach_thread(globals, thread, BOSK_MEM_READS, 1));
  OK(bosk_mem_attach_bubble(globals, inner, BOSK_MEM_READS, 1));
  OK(bosk_mem_detach_area(globals));
  CHECK(area_at(globals).attached == 0, "still attached");
  OK(bosk_mem_attach_thread(globals, thread, BOSK_MEM_READS, 1));
  OK(bosk_mem_attach_bubble(globals, inner, BOSK_MEM_READS, 1));

  // Those that end are attached to nothing.
  OK(bosk_bubble_wake(outer, NULL));
  OK(bosk_bubble_join(outer));
  FAILS(bosk_mem_attach_thread(globals + 4 * PAGE, thread, BOSK_MEM_READS, 1), BOSK_ESTATE);
  OK(bosk_thread_join(thread, NULL));
  FAILS(bosk_mem_attach_thread(globals, thread, BOSK_MEM_READS, 1), BOSK_ESTALE);
  FAILS(bosk_mem_detach_thread(globals, thread), BOSK_ESTALE);
  FAILS(bosk_mem_detach_all_thread(thread), BOSK_ESTALE);
  OK(bosk_bubble_destroy(inner));
  OK(bosk_bubble_destroy(outer));
  CHECK(area_at(globals).attached == 0, "still attached to those who have ended");
  FAILS(bosk_mem_attach_bubble(globals, inner, BOSK_MEM_READS, 1), BOSK_ESTALE);
  FAILS(bosk_mem_detach_area(globals + 5 * PAGE), BOSK_ENOAREA);
  CHECK(area_at(globals).attached == 0, "attached to somebody who has ended");
  OK(bosk_mem_unregister(globals));
  OK(bosk_mem_unregister(globals + 4 * PAGE));
}

/// Attaches, detaches and looks; ends at once.
static void* works(void* argument) {
  char* part = argument;
  const bosk_thread_t me = bosk_thread_self();
  CHECK(me != NULL, "not a thread of bosk's");
  OK(bosk_mem_attach_thread(part, me, BOSK_MEM_WRITES, 1));
  OK(bosk_mem_attach_thread(globals, me, BOSK_MEM_READS, 1));
  CHECK(area_at(part).attached == 1, "attached to %u", area_at(part).attached);
  bosk_thread_yield();
  if ((uintptr_t)part / PAGE % 2 == 0) OK(bosk_mem_detach_thread(part, me));
  return NULL;
}

static void many(void) {
  enum { ROUNDS = 20, THREADS = 200 };
  char* memory = map(THREADS * PAGE);
  OK(bosk_mem_register(globals, sizeof globals));
  for (int round = 0; round < ROUNDS; ++round) {
    bosk_bubble_t bubble;
    OK(bosk_bubble_create(&bubble));
    OK(bosk_bubble_wake(bubble, NULL));
    for (int i = 0; i < THREADS; ++i) {
      OK(bosk_mem_register(memory + i * PAGE, PAGE));
      bosk_thread_attr_t attr;
      OK(bosk_thread_attr_init(&attr));
      attr.detached = 1;
      attr.bubble = bubble;
      OK(bosk_thread_create(NULL, &attr, works, memory + i * PAGE));
    }
    OK(bosk_bubble_join(bubble));
    OK(bosk_bubble_destroy(bubble));
    for (int i = 0; i < THREADS; ++i) OK(bosk_mem_unregister(memory + i * PAGE));
    // They are out of the bubble a moment before they have gone for good.
    for (bosk_mem_area_t area = area_at(globals); area.attached != 0; area = area_at(globals)) {
      bosk_thread_yield();
      OK(bosk_mem_update(globals));  // who changes the books takes those out that have gone
    }
  }
  OK(bosk_mem_unregister(globals));
}

static void errors(void) {
  bosk_mem_area_t area = {.size = sizeof area};
  uint64_t bytes[4];
  // Before anything else was called.
  FAILS(bosk_mem_unregister(NULL), BOSK_ENOAREA);
  FAILS(bosk_mem_unregister(globals), BOSK_ENOAREA);
  FAILS(bosk_mem_register(NULL, 5), BOSK_EINVAL);
  FAILS(bosk_mem_register(globals, 0), BOSK_EINVAL);
  FAILS(bosk_mem_register(globals, SIZE_MAX), BOSK_EINVAL);
  FAILS(bosk_mem_register(globals, SIZE_MAX / 2), BOSK_EUNMAPPED);
  FAILS(bosk_mem_register((void*)16, 16), BOSK_EUNMAPPED);
  char* hole = map(3 * PAGE);
  CHECK(munmap(hole + PAGE, PAGE) == 0, "munmap");
  FAILS(bosk_mem_register(hole, 3 * PAGE), BOSK_EUNMAPPED);
  OK(bosk_mem_register(hole, PAGE));
  FAILS(bosk_mem_register(hole + PAGE - 1, 1), BOSK_EOVERLAP);
  FAILS(bosk_mem_register(hole, PAGE), BOSK_EOVERLAP);
  CHECK(area_at(hole).bytes == PAGE, "changed");
  FAILS(bosk_mem_split(hole, 2, NULL), BOSK_EINVAL);
  FAILS(bosk_mem_split(hole, 0, NULL), BOSK_EINVAL);
  FAILS(bosk_mem_split(hole + 1, 2, NULL), BOSK_ENOAREA);
  FAILS(bosk_mem_area(NULL, &area), BOSK_EINVAL);
  FAILS(bosk_mem_area(hole, NULL), BOSK_EINVAL);
  area.size = 3;
  FAILS(bosk_mem_area(hole, &area), BOSK_EINVAL);
  FAILS(bosk_mem_area_nodes(hole, NULL, 1), BOSK_EINVAL);
  FAILS(bosk_mem_area_nodes(hole, bytes, 0), BOSK_EINVAL);
  FAILS(bosk_mem_area_nodes(globals, bytes, 1), BOSK_ENOAREA);
  FAILS(bosk_mem_update(globals), BOSK_ENOAREA);
  FAILS(bosk_mem_locate(NULL), BOSK_EINVAL);
  FAILS(bosk_mem_locate((void*)16), BOSK_EUNMAPPED);
  char* untouched = map(PAGE);
  FAILS(bosk_mem_locate(untouched), BOSK_ENOENT);

  const bosk_thread_t nobody = (bosk_thread_t)(uintptr_t)0x400000001;
  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  FAILS(bosk_mem_attach_thread(hole, nobody, BOSK_MEM_READS, 1), BOSK_ESTALE);
  FAILS(bosk_mem_attach_thread(hole, NULL, BOSK_MEM_READS, 1), BOSK_ESTALE);
  FAILS(bosk_mem_attach_thread(hole, (bosk_thread_t)bubble, BOSK_MEM_READS, 1), BOSK_ESTALE);
  FAILS(bosk_mem_attach_bubble(hole, bubble, 0, 1), BOSK_EINVAL);
  FAILS(bosk_mem_attach_bubble(hole, bubble, 4, 1), BOSK_EINVAL);
  FAILS(bosk_mem_attach_bubble(NULL, bubble, 1, 1), BOSK_EINVAL);
  FAILS(bosk_mem_attach_bubble(globals, bubble, 1, 1), BOSK_ENOAREA);
  FAILS(bosk_mem_detach_bubble(globals, bubble), BOSK_ENOAREA);
  FAILS(bosk_mem_detach_bubble(hole, bubble), BOSK_ENOENT);
  FAILS(bosk_mem_bubble_footprint(bubble, NULL, 1), BOSK_EINVAL);
  FAILS(bosk_mem_bubble_footprint(bubble, bytes, -1), BOSK_EINVAL);
  FAILS(bosk_mem_thread_footprint(nobody, bytes, 4), BOSK_ESTALE);
  CHECK(area_at(hole).attached == 0, "attached by an error");
  OK(bosk_bubble_destroy(bubble));

  bosk_mem_stats_t stats = {.size = sizeof stats};
  FAILS(bosk_mem_node_stats(-1, &stats), BOSK_ENODE);
  FAILS(bosk_mem_node_stats(bosk_topo_nodes(), &stats), BOSK_ENODE);
  FAILS(bosk_mem_node_stats(0, NULL), BOSK_EINVAL);
  OK(bosk_mem_node_stats(0, &stats));
  FAILS(bosk_mem_print(-1), BOSK_EIO);
  const int code[] = {BOSK_EOVERLAP, BOSK_EUNMAPPED, BOSK_ENODE, BOSK_ENOAREA};
  for (int i = 0; i < 4; ++i)
    CHECK(strcmp(bosk_strerror(code[i]), bosk_strerror(-1000)) != 0, "no text for %d", code[i]);
}

static void nodes(void) {
  const int least = bosk_mem_least_loaded();
  CHECK(least >= 0 && least < bosk_topo_nodes(), "node %d", least);
  OK(bosk_mem_register(globals, sizeof globals));
  memset(globals, 1, sizeof globals);
  OK(bosk_mem_update(globals));
  uint64_t in_areas = 0;
  for (int node = 0; node < bosk_topo_nodes(); ++node) {
    bosk_mem_stats_t stats = {.size = sizeof stats};
    OK(bosk_mem_node_stats(node, &stats));
    CHECK(stats.total == BOSK_UNKNOWN_64 || (int64_t)stats.total == bosk_topo_node_bytes(node),
          "total");
    CHECK(stats.free == BOSK_UNKNOWN_64 || stats.free <= stats.total, "more free than there is");
    in_areas += stats.areas;
  }
  CHECK(in_areas == on_all_nodes(globals), "%lu bytes in areas", (unsigned long)in_areas);
  OK(bosk_mem_print(STDOUT_FILENO));
}

static void forks(void) {
  OK(bosk_mem_register(globals, 2 * PAGE));
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.asleep = 1;
  bosk_thread_t thread;
  OK(bosk_thread_create(&thread, &attr, nothing, NULL));
  OK(bosk_mem_attach_thread(globals, thread, BOSK_MEM_READS, 1));
  const pid_t child = fork();
  CHECK(child >= 0, "fork");
  if (child == 0) {
    CHECK(area_at(globals).attached == 1, "the child has other areas");
    FAILS(bosk_mem_register(globals, PAGE), BOSK_EOVERLAP);
    OK(bosk_mem_detach_area(globals));
    OK(bosk_mem_unregister(globals));
    OK(bosk_mem_register(globals + PAGE, PAGE));
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child failed: %x", status);
  CHECK(area_at(globals).attached == 1, "changed by the child");
  OK(bosk_thread_wake(thread));
  OK(bosk_thread_join(thread, NULL));
  CHECK(area_at(globals + PAGE).bytes == 2 * PAGE, "changed by the child");
  OK(bosk_mem_unregister(globals));
}

int main(int argc, char** argv) {
  const struct test tests[] = {{"areas", areas},   {"owners", owners}, {"many", many},
                               {"errors", errors}, {"nodes", nodes},   {"forks", forks}};
  return RUN_TEST(argc, argv, tests);
}
