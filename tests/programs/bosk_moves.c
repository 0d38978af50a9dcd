// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Areas that move, at once or by the next touch: no byte is lost, and the books say where they are.
#include "bosk_check.h"

#include <bosk/memory.h>
#include <bosk/topology.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096, MOST_NODES = 64 };

static char globals[20 * PAGE];

static void fill(char* block, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) block[i] = (char)(i * 7 + i / PAGE);
}
static void check(const char* block, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    CHECK(block[i] == (char)(i * 7 + i / PAGE), "byte %zu has changed", i);
}

static uint64_t on_node(const void* address, int node) {
  uint64_t bytes[MOST_NODES];
  CHECK(bosk_mem_area_nodes(address, bytes, MOST_NODES) == bosk_topo_nodes(), "nodes");
  return bytes[node];
}

static uint64_t pages_in(const bosk_mem_moved_t* moved) {
  return moved->moved + moved->already + moved->absent + moved->refused + moved->no_memory;
}

static void* nothing(void* argument) { return argument; }

static void migrate(void) {
  const int last = bosk_topo_nodes() - 1;
  bosk_mem_moved_t moved = {.size = sizeof moved};
  fill(globals, sizeof globals);
  OK(bosk_mem_register(globals, 10 * PAGE));
  OK(bosk_mem_migrate(globals + PAGE, last, &moved));
  const uint64_t touched = ((uintptr_t)globals % PAGE != 0) + 10;
  CHECK(pages_in(&moved) == touched && moved.absent == 0, "%lu pages",
        (unsigned long)pages_in(&moved));
  CHECK(on_node(globals, last) == 10 * PAGE, "%lu bytes there",
        (unsigned long)on_node(globals, last));
  // As the first version had it: nothing is written behind that.
  moved = (bosk_mem_moved_t){.size = offsetof(bosk_mem_moved_t, unsplit), .unsplit = 77};
  OK(bosk_mem_migrate(globals + PAGE, last, &moved));
  CHECK(pages_in(&moved) == touched && moved.unsplit == 77, "%lu pages, %lu",
        (unsigned long)pages_in(&moved), (unsigned long)moved.unsplit);
  bosk_mem_area_t area = {.size = sizeof area};
  OK(bosk_mem_area(globals, &area));
  CHECK((int)area.node == last && area.policy == BOSK_MEM_ON_NODE, "not on the node");
  OK(bosk_mem_distribute(globals, NULL, 0, PAGE, NULL));
  uint64_t sum = 0;
  for (int node = 0; node <= last; ++node) {
    // As many blocks as the others, or one more.
    CHECK(on_node(globals, node) + PAGE >= (uint64_t)10 * PAGE / (last + 1),
          "too little on node %d", node);
    sum += on_node(globals, node);
  }
  CHECK(sum == 10 * PAGE, "%lu bytes in all", (unsigned long)sum);
  check(globals, sizeof globals);

  // Of our own, pages that nobody has touched are as good as there.
  void* block;
  OK(bosk_mem_alloc(&block, 7 * PAGE, NULL));
  OK(bosk_mem_migrate(block, last, &moved));
  CHECK(moved.absent == 7 && pages_in(&moved) == 7, "%lu absent", (unsigned long)moved.absent);
  CHECK(on_node(block, last) == 7 * PAGE, "%lu bytes there", (unsigned long)on_node(block, last));
  fill(block, 7 * PAGE);

  bosk_bubble_t bubble, inner;
  bosk_thread_t thread;
  OK(bosk_bubble_create(&bubble));
  OK(bosk_bubble_create(&inner));
  OK(bosk_bubble_insert_bubble(bubble, inner));
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.asleep = 1;
  OK(bosk_thread_create(&thread, &attr, nothing, NULL));
  OK(bosk_mem_attach_bubble(block, inner, BOSK_MEM_WRITES, 1));
  OK(bosk_mem_attach_thread(globals, thread, BOSK_MEM_READS, 1));
  OK(bosk_bubble_insert_thread(inner, thread));
  OK(bosk_mem_migrate_bubble(bubble, 0, &moved));
  CHECK(pages_in(&moved) == 7 + touched, "%lu pages", (unsigned long)pages_in(&moved));
  CHECK(on_node(block, 0) == 7 * PAGE && on_node(globals, 0) == 10 * PAGE, "not all on node 0");
  OK(bosk_mem_migrate_thread(thread, last, &moved));
  CHECK(pages_in(&moved) == touched, "%lu pages", (unsigned long)pages_in(&moved));
  uint64_t bytes[MOST_NODES];
  CHECK(bosk_mem_bubble_footprint(bubble, bytes, MOST_NODES) == last + 1, "nodes");
  CHECK(bytes[last] == (last == 0 ? 17 : 10) * PAGE, "footprint %lu", (unsigned long)bytes[last]);
  check(globals, sizeof globals);
  check(block, 7 * PAGE);
  OK(bosk_bubble_wake(bubble, NULL));
  OK(bosk_thread_join(thread, NULL));
  OK(bosk_bubble_join(bubble));
  OK(bosk_bubble_destroy(inner));
  OK(bosk_bubble_destroy(bubble));
  OK(bosk_free(block));
  OK(bosk_mem_unregister(globals));
}

/// 1: it is marked; 0: this system marks nothing, and has said so.
static int marked(void* begin, size_t bytes, int flags) {
  const int error = bosk_mem_next_touch(begin, bytes, flags);
  CHECK(error == BOSK_OK || error == BOSK_ENOTSUP, "next touch: %s", bosk_strerror(error));
  uint64_t pages = 0;
  const int64_t now = bosk_mem_next_touch_query(begin, bytes, &pages);
  CHECK(now >= 0 && (uint64_t)now <= pages, "%ld of %lu pages", (long)now, (unsigned long)pages);
  if (error == BOSK_OK) CHECK(now > 0, "nothing is marked");
  return error == BOSK_OK;
}

static bosk_mem_page_t page_at(const void* address) {
  bosk_mem_page_t page = {.size = sizeof page};
  OK(bosk_mem_page(address, &page));
  return page;
}

/// A page that is marked has its data somewhere, and says so.
static void located(void) {
  char* bytes = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(bytes != MAP_FAILED, "mmap");
  fill(bytes, 62 * PAGE);
  OK(bosk_mem_register(bytes, 64 * PAGE));
  const int there = bosk_mem_locate(bytes + 5);
  CHECK(there >= 0 || there == BOSK_ENOENT, "%s", bosk_strerror(there));
  const uint32_t node = there >= 0 ? (uint32_t)there : BOSK_UNKNOWN;
  // A few pages, and many: they are set aside in two ways.
  static const struct {
    int first, count;
  } part[] = {{2, 3}, {20, 40}, {0, 62}};
  for (int flags = 0; flags <= BOSK_MEM_ON_WRITE; ++flags) {
    for (int i = 0; i < 3; ++i) {
      char* first = bytes + part[i].first * PAGE;
      if (!marked(first, (size_t)part[i].count * PAGE, flags)) continue;
      const uint64_t still = (uint64_t)bosk_mem_next_touch_query(first, 0, NULL);
      for (int k = 0; k < 62; ++k) {
        const int is_in = k >= part[i].first && k < part[i].first + part[i].count;
        const bosk_mem_page_t page = page_at(bytes + k * PAGE + 7);
        CHECK(page.marked == (uint32_t)is_in, "page %d of part %d: marked %u", k, i, page.marked);
        CHECK(page.on_write == (uint32_t)(is_in && flags != 0), "page %d: on write %u", k,
              page.on_write);
        CHECK(page.node == node, "page %d of part %d, flags %d: on node %u, not %u", k, i, flags,
              page.node, node);
        CHECK(bosk_mem_locate(bytes + k * PAGE) == there, "page %d of part %d: %d", k, i,
              bosk_mem_locate(bytes + k * PAGE));
      }
      // To look was no touch.
      CHECK((uint64_t)bosk_mem_next_touch_query(first, 0, NULL) == still, "marks are gone");
      *(volatile char*)&first[1] = first[1];
      CHECK(page_at(first).marked == 0 && page_at(first).node == node, "it has been touched");
      OK(bosk_mem_next_touch_cancel(bytes, 0));
      CHECK(page_at(first + PAGE).marked == 0, "it has been cancelled");
      check(bytes, 62 * PAGE);
    }
  }
  // Nobody has touched these.
  CHECK(page_at(bytes + 63 * PAGE).node == BOSK_UNKNOWN, "on a node");
  FAILS(bosk_mem_locate(bytes + 63 * PAGE), BOSK_ENOENT);
  OK(bosk_mem_unregister(bytes));
  munmap(bytes, 64 * PAGE);
  bosk_mem_page_t page = {.size = sizeof page};
  FAILS(bosk_mem_page(NULL, &page), BOSK_EINVAL);
  FAILS(bosk_mem_page(bytes, NULL), BOSK_EINVAL);
  FAILS(bosk_mem_page(bytes, &page), BOSK_EUNMAPPED);
  page.size = 3;
  FAILS(bosk_mem_page(globals, &page), BOSK_EINVAL);
}

static void next_touch(void) {
  fill(globals, sizeof globals);
  OK(bosk_mem_register(globals, sizeof globals));
  for (int flags = 0; flags <= BOSK_MEM_ON_WRITE; ++flags) {
    marked(globals, 0, flags);
    check(globals, sizeof globals);
    fill(globals, sizeof globals);
    CHECK(bosk_mem_next_touch_query(globals, 0, NULL) == 0, "still marked");
    if (!marked(globals + PAGE, 8 * PAGE, flags)) break;
    OK(bosk_mem_next_touch_cancel(globals, 0));
    CHECK(bosk_mem_next_touch_query(globals, 0, NULL) == 0, "still marked");
    check(globals, sizeof globals);
  }
  // Marks go with what they are on.
  marked(globals, 0, 0);
  const pid_t child = fork();
  CHECK(child >= 0, "fork");
  if (child == 0) {
    check(globals, sizeof globals);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child failed: %x", status);
  check(globals, sizeof globals);
  marked(globals, 0, 0);
  OK(bosk_mem_migrate(globals, 0, NULL));
  CHECK(bosk_mem_next_touch_query(globals, 0, NULL) == 0, "still marked");
  marked(globals, 0, 0);
  OK(bosk_mem_unregister(globals));
  check(globals, sizeof globals);

  bosk_mem_attr_t attr;
  OK(bosk_mem_attr_init(&attr));
  attr.policy = BOSK_MEM_ON_NODE;
  void* block;
  for (int round = 0; round < 20; ++round) {
    OK(bosk_mem_alloc(&block, 16 * PAGE, &attr));
    fill(block, 16 * PAGE);
    marked(block, 0, 0);
    if (round % 2 == 0) check(block, 9 * PAGE);
    OK(bosk_free(block));
  }
  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  attr.bubble = bubble;
  OK(bosk_mem_alloc(&block, 16 * PAGE, &attr));
  fill(block, 16 * PAGE);
  const int can = marked(block, 0, 0);
  OK(bosk_mem_next_touch_cancel(block, 0));
  OK(bosk_mem_next_touch_bubble(bubble, 0));
  CHECK(bosk_mem_next_touch_query(block, 0, NULL) == (can ? 16 : 0), "not all marked");
  check(block, 16 * PAGE);
  OK(bosk_bubble_destroy(bubble));
  OK(bosk_free(block));
}

/// What is known of an area with a place of its own, before and after a mark that is refused.
static void refused_mark(char* at, int flags, int code) {
  bosk_mem_area_t before = {.size = sizeof before};
  bosk_mem_area_t after = {.size = sizeof after};
  OK(bosk_mem_migrate(at, 0, NULL));
  OK(bosk_mem_area(at, &before));
  FAILS(bosk_mem_next_touch(at, 0, flags), code);
  OK(bosk_mem_area(at, &after));
  CHECK(memcmp(&before, &after, sizeof before) == 0, "policy %u, node %u", after.policy,
        after.node);
}

static void refused(void) {
  char* shared = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED, "mmap");
  OK(bosk_mem_register(shared, 4 * PAGE));
  refused_mark(shared, 0, BOSK_ENOTSUP);
  OK(bosk_mem_unregister(shared));
  // Ours, and what the program does with it.
  void* block;
  OK(bosk_mem_alloc(&block, 4 * PAGE, NULL));
  CHECK(mprotect((char*)block + PAGE, PAGE, PROT_NONE) == 0, "mprotect");
  refused_mark(block, 0, BOSK_ENOTSUP);
  CHECK(munmap((char*)block + PAGE, PAGE) == 0, "munmap");
  refused_mark(block, 0, BOSK_EUNMAPPED);
  CHECK(mmap((char*)block + PAGE, PAGE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED,
        "mmap");
  OK(bosk_free(block));
  // Pages can be reserved without there being any.
  const size_t huge = 2 << 20;
  char* reserved = mmap(NULL, huge, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return;
  OK(bosk_mem_register(reserved, huge));
  refused_mark(reserved, 0, BOSK_ENOTSUP);
  OK(bosk_mem_unregister(reserved));
}

static void errors(void) {
  bosk_mem_moved_t moved = {.size = 1};
  const uint32_t none = (uint32_t)bosk_topo_nodes();
  FAILS(bosk_mem_migrate(globals, 0, NULL), BOSK_ENOAREA);
  FAILS(bosk_mem_distribute(globals, NULL, 0, 0, NULL), BOSK_ENOAREA);
  FAILS(bosk_mem_next_touch(globals, 0, 0), BOSK_ENOAREA);
  FAILS(bosk_mem_next_touch(NULL, 0, 0), BOSK_EINVAL);
  OK(bosk_mem_register(globals, 4 * PAGE));
  FAILS(bosk_mem_migrate(globals, (int)none, NULL), BOSK_ENODE);
  FAILS(bosk_mem_migrate(globals, -1, NULL), BOSK_ENODE);
  FAILS(bosk_mem_migrate(globals, 0, &moved), BOSK_EINVAL);
  FAILS(bosk_mem_distribute(globals, &none, 0, 0, NULL), BOSK_EINVAL);
  FAILS(bosk_mem_distribute(globals, &none, 1, 0, NULL), BOSK_ENODE);
  FAILS(bosk_mem_next_touch(globals, 4 * PAGE + 1, 0), BOSK_EINVAL);
  FAILS(bosk_mem_next_touch(globals + 1, 4 * PAGE, 0), BOSK_EINVAL);
  FAILS(bosk_mem_next_touch(globals, SIZE_MAX, 0), BOSK_EINVAL);
  FAILS(bosk_mem_next_touch(globals, 0, 8), BOSK_EINVAL);
  FAILS(bosk_mem_next_touch_cancel(globals + 4 * PAGE, 1), BOSK_ENOAREA);
  CHECK(bosk_mem_next_touch_query(globals, 5 * PAGE, NULL) == BOSK_EINVAL, "out of the area");
  const bosk_thread_t nobody = (bosk_thread_t)(uintptr_t)0x400000001;
  FAILS(bosk_mem_migrate_thread(nobody, 0, NULL), BOSK_ESTALE);
  FAILS(bosk_mem_migrate_bubble(NULL, 0, NULL), BOSK_ESTALE);
  FAILS(bosk_mem_migrate_thread(nobody, -1, NULL), BOSK_ENODE);
  FAILS(bosk_mem_next_touch_thread(nobody, 0), BOSK_ESTALE);
  OK(bosk_mem_unregister(globals));
}

int main(int argc, char** argv) {
  const struct test tests[] = {{"migrate", migrate},
                               {"next-touch", next_touch},
                               {"located", located},
                               {"refused", refused},
                               {"errors", errors}};
  return RUN_TEST(argc, argv, tests);
}
