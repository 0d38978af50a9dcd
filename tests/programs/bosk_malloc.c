// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Allocation as a program sees it (bosk/memory.h).
#include "bosk_check.h"
#include "children.h"

#include <bosk/memory.h>
#include <bosk/topology.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096, BIG = 3 << 20 };

static bosk_mem_area_t area_at(const void* address) {
  bosk_mem_area_t area = {.size = sizeof area};
  OK(bosk_mem_area(address, &area));
  return area;
}

static void fill(char* block, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) block[i] = (char)(i * 7 + bytes);
}
static void check(const char* block, size_t bytes, size_t filled) {
  for (size_t i = 0; i < bytes; ++i)
    CHECK(block[i] == (char)(i * 7 + filled), "byte %zu of %zu has changed", i, bytes);
}

static uint64_t used(void) {
  uint64_t sum = 0;
  for (int node = 0; node < bosk_topo_nodes(); ++node) {
    bosk_mem_stats_t stats = {.size = sizeof stats};
    OK(bosk_mem_node_stats(node, &stats));
    CHECK(stats.used <= stats.reserved, "more used than reserved");
    sum += stats.used;
  }
  return sum;
}

static void sizes(void) {
  static const size_t size[] = {0,    1,    16,   63,    64,    65,        1024,          1025,
                                1280, 1281, 4096, 65536, 65537, (1 << 20), (1 << 20) + 1, BIG};
  enum { COUNT = sizeof size / sizeof *size };
  for (int round = 0; round < 3; ++round) {
    char* block[COUNT];
    for (int i = 0; i < COUNT; ++i) {
      block[i] = bosk_malloc(size[i]);
      CHECK(block[i] != NULL, "no %zu bytes", size[i]);
      CHECK((uintptr_t)block[i] % 16 == 0, "%zu bytes at %p", size[i], (void*)block[i]);
      CHECK(bosk_malloc_size(block[i]) >= size[i], "only %zu of %zu", bosk_malloc_size(block[i]),
            size[i]);
      fill(block[i], size[i]);
    }
    for (int i = 0; i < COUNT; ++i) check(block[i], size[i], size[i]);
    for (int i = 0; i < COUNT; ++i) {
      const size_t to = round == 0 ? size[i] * 2 : size[i] / 3;
      block[i] = bosk_realloc(block[i], to);
      CHECK(block[i] != NULL, "realloc to %zu", to);
      check(block[i], to < size[i] ? to : size[i], size[i]);
      OK(bosk_free(block[i]));
    }
    CHECK(used() == 0, "%lu bytes are still in use", (unsigned long)used());
  }
  for (size_t alignment = 1; alignment <= 4 << 20; alignment *= 2) {
    char* block = bosk_aligned_alloc(alignment, 100);
    CHECK(block != NULL && (uintptr_t)block % alignment == 0, "%p, aligned to %zu", (void*)block,
          alignment);
    fill(block, 100);
    block = bosk_realloc(block, 10000);
    check(block, 100, 100);
    OK(bosk_free(block));
  }
  for (int i = 0; i < 100; ++i) {
    unsigned char* block = bosk_calloc((size_t)i, 100);
    for (int k = 0; k < i * 100; ++k) CHECK(block[k] == 0, "not zero");
    memset(block, 255, (size_t)i * 100);
    OK(bosk_free(block));
  }
  OK(bosk_free(NULL));
  char* block = bosk_realloc(NULL, 10);
  CHECK(block != NULL, "realloc of null");
  OK(bosk_free(block));
  OK(bosk_mem_trim());
  CHECK(used() == 0, "%lu bytes are still in use", (unsigned long)used());
}

/// Pages may come to lie right behind the heaps, where the header of a block at their begin would still be in one.
static void behind(void) {
  char* first = bosk_malloc(1);
  bosk_mem_stats_t stats = {.size = sizeof stats};
  OK(bosk_mem_node_stats(0, &stats));
  if (stats.reserved == 0) return;  // there are no heaps (sanitizers)
  uintptr_t end = 0, next = 0, from, to;
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (next == 0 && fgets(line, sizeof line, maps) != NULL) {
    unsigned long inode;
    CHECK(sscanf(line, "%lx-%lx %*s %*s %*s %lu", &from, &to, &inode) == 3, "%s", line);
    const int ours = inode == 0 && strchr(line, '[') == NULL;
    if (from <= (uintptr_t)first && (uintptr_t)first < to) end = to;
    if (end != 0 && from == end && ours) end = to;
    if (end != 0 && (from > end || (from == end && !ours))) next = from;
  }
  fclose(maps);
  CHECK(next != 0, "nothing behind the heaps");
  if (next == end) return;  // a library
  // Two pages are left there: in one the library looks at things while it makes an area.
  if (next - end > 2 * PAGE)
    CHECK(mmap((void*)(end + 2 * PAGE), next - end - 2 * PAGE, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
               0) != MAP_FAILED,
          "mmap");
  // The kernel takes the highest hole: all that are higher are filled.
  for (size_t bytes = (size_t)1 << 32; bytes >= PAGE; bytes /= 2) {
    void* at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    while (at != MAP_FAILED && (uintptr_t)at > end + PAGE)
      at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) munmap(at, bytes);
  }
  void* block = NULL;
  OK(bosk_mem_alloc(&block, PAGE, NULL));
  // Books may have grown into it.
  if ((uintptr_t)block != end && msync((void*)end, PAGE, MS_ASYNC) == 0) return;
  CHECK((uintptr_t)block == end, "the kernel did not put a page there");
  CHECK(bosk_malloc_size(block) == PAGE, "%zu bytes", bosk_malloc_size(block));
  block = bosk_realloc(block, PAGE - 5);
  CHECK((uintptr_t)block == end, "realloc");
  OK(bosk_free(block));
  OK(bosk_free(first));
}

static void errors(void) {
  bosk_mem_attr_t attr;
  void* block = &attr;
  char local[64];
  FAILS(bosk_free(local), BOSK_ENOAREA);
  FAILS(bosk_free((void*)16), BOSK_ENOAREA);
  FAILS(bosk_free((void*)(uintptr_t)-16), BOSK_ENOAREA);
  for (size_t bytes = 1; bytes <= BIG; bytes *= 7) {
    char* once = bosk_malloc(bytes);
    char* before = bosk_malloc(bytes);
    CHECK(once != NULL && before != NULL, "no memory");
    OK(bosk_free(once));
    FAILS(bosk_free(once), BOSK_ENOAREA);
    FAILS(bosk_free(before + 1), BOSK_ENOAREA);
    CHECK(bosk_malloc_size(once) == 0, "a block that is none");
    errno = 0;
    CHECK(bosk_realloc(once, 5) == NULL && errno == EINVAL, "realloc of what is freed");
    OK(bosk_free(before));
  }
  errno = 0;
  CHECK(bosk_malloc(SIZE_MAX) == NULL && errno == ENOMEM, "all memory there is");
  errno = 0;
  CHECK(bosk_malloc(SIZE_MAX - 20) == NULL && errno == ENOMEM, "all memory there is");
  errno = 0;
  CHECK(bosk_calloc(SIZE_MAX / 2, 3) == NULL && errno == ENOMEM, "more than there can be");
  errno = 0;
  CHECK(bosk_aligned_alloc(3, 3) == NULL && errno == EINVAL, "aligned to 3");
  errno = 0;
  CHECK(bosk_malloc_on(3, bosk_topo_nodes()) == NULL && errno == EINVAL, "no such node");
  CHECK(bosk_malloc_on(3, -1) == NULL, "no such node");

  FAILS(bosk_mem_attr_init_sized(NULL, sizeof attr), BOSK_EINVAL);
  FAILS(bosk_mem_attr_init_sized(&attr, 5), BOSK_EINVAL);
  FAILS(bosk_mem_alloc(NULL, 5, NULL), BOSK_EINVAL);
  FAILS(bosk_mem_alloc(&block, 0, NULL), BOSK_EINVAL);
  FAILS(bosk_mem_alloc(&block, SIZE_MAX - 5, NULL), BOSK_EINVAL);
  FAILS(bosk_mem_alloc(&block, SIZE_MAX / 4, NULL), BOSK_ENOMEM);
#define REFUSED(field, value, code) \
  OK(bosk_mem_attr_init(&attr));    \
  attr.field = (value);             \
  FAILS(bosk_mem_alloc(&block, 100, &attr), code)
  REFUSED(policy, 7, BOSK_EINVAL);
  REFUSED(pages, 3, BOSK_EINVAL);
  REFUSED(alignment, 48, BOSK_EINVAL);
  REFUSED(use, 0, BOSK_EINVAL);
  REFUSED(use, 4, BOSK_EINVAL);
  REFUSED(size, 8, BOSK_EINVAL);
  REFUSED(thread, (bosk_thread_t)(uintptr_t)0x400000001, BOSK_ESTALE);
  REFUSED(bubble, (bosk_bubble_t)(uintptr_t)0x400000002, BOSK_ESTALE);
  OK(bosk_mem_attr_init(&attr));
  attr.policy = BOSK_MEM_ON_NODE;
  attr.node = (uint32_t)bosk_topo_nodes();
  FAILS(bosk_mem_alloc(&block, 100, &attr), BOSK_ENODE);
  const uint32_t nodes[2] = {0, 1000};
  attr.policy = BOSK_MEM_INTERLEAVED;
  attr.nodes = nodes;
  attr.n_nodes = 2;
  FAILS(bosk_mem_alloc(&block, 100, &attr), BOSK_ENODE);
  attr.n_nodes = 0;
  FAILS(bosk_mem_alloc(&block, 100, &attr), BOSK_EINVAL);
  CHECK(block == &attr, "an error has left a block");
  OK(bosk_mem_alloc(&block, 100, NULL));
  FAILS(bosk_mem_unregister(block), BOSK_ENOAREA);
  FAILS(bosk_mem_register(block, PAGE + 10), BOSK_EOVERLAP);
  FAILS(bosk_free((char*)block + PAGE / 2), BOSK_ENOAREA);
  OK(bosk_free(block));
  FAILS(bosk_free(block), BOSK_ENOAREA);
}

static void policies(void) {
  const int nodes = bosk_topo_nodes();
  bosk_mem_attr_t attr;
  for (uint32_t policy = BOSK_MEM_DEFAULT; policy <= BOSK_MEM_NEXT_TOUCH; ++policy) {
    for (uint32_t pages = BOSK_MEM_PAGES_ORDINARY; pages <= BOSK_MEM_PAGES_HUGE; ++pages) {
      OK(bosk_mem_attr_init(&attr));
      attr.policy = policy;
      attr.node = (uint32_t)(nodes - 1);
      attr.pages = pages;
      attr.alignment = 1 << 16;
      void* block;
      const size_t bytes = 64 * PAGE - 5;
      OK(bosk_mem_alloc(&block, bytes, &attr));
      CHECK((uintptr_t)block % (1 << 16) == 0, "aligned wrongly: %p", block);
      const bosk_mem_area_t area = area_at((char*)block + bytes - 1);
      CHECK(area.begin == block && area.bytes == 64 * PAGE && area.allocated == 1, "another area");
      CHECK(area.policy == policy, "another policy: %u", area.policy);
      if (policy == BOSK_MEM_ON_NODE) CHECK(area.node == attr.node, "on node %u", area.node);
      uint64_t on[64];
      CHECK(bosk_mem_area_nodes(block, on, 64) == nodes, "nodes");
      uint64_t sum = 0;
      for (int i = 0; i < nodes; ++i) sum += on[i];
      const int told = nodes == 1 || (policy >= BOSK_MEM_ON_NODE && policy <= BOSK_MEM_WEIGHTED);
      CHECK(sum == (told ? 64 * PAGE : 0), "%lu bytes are known", (unsigned long)sum);
      if (policy == BOSK_MEM_INTERLEAVED || policy == BOSK_MEM_WEIGHTED)
        for (int i = 0; i < nodes; ++i)
          CHECK(on[i] == (uint64_t)(64 * PAGE / nodes), "%lu bytes on node %d",
                (unsigned long)on[i], i);
      for (size_t i = 0; i < bytes; ++i) CHECK(((char*)block)[i] == 0, "not zero");
      fill(block, bytes);
      check(block, bytes, bytes);
      OK(bosk_mem_update(block));
      OK(bosk_free(block));
    }
  }
  OK(bosk_mem_attr_init(&attr));
  attr.pages = BOSK_MEM_PAGES_RESERVED_HUGE;
  void* block;
  const int error = bosk_mem_alloc(&block, 100, &attr);
  CHECK(error == BOSK_OK || error == BOSK_ENOMEM, "reserved: %s", bosk_strerror(error));
  if (error == BOSK_OK) {
    CHECK(area_at(block).huge_page >= 1 << 16 && area_at(block).bytes == area_at(block).huge_page,
          "no huge page");
    fill(block, 100);
    OK(bosk_free(block));
  }
  // In parts, each freed by itself.
  OK(bosk_mem_alloc(&block, 10 * PAGE, NULL));
  void* part[4];
  OK(bosk_mem_split(block, 4, part));
  for (int i = 0; i < 4; ++i) fill(part[i], area_at(part[i]).bytes);
  OK(bosk_free(part[1]));
  FAILS(bosk_free(part[1]), BOSK_ENOAREA);
  check(part[0], area_at(part[0]).bytes, area_at(part[0]).bytes);
  check(part[2], area_at(part[2]).bytes, area_at(part[2]).bytes);
  for (int i = 0; i < 4; ++i)
    if (i != 1) OK(bosk_free(part[i]));
  for (int node = 0; node < nodes; ++node) {
    char* on_node = bosk_malloc_on(1000, node);
    CHECK(on_node != NULL, "none on node %d", node);
    fill(on_node, 1000);
    bosk_mem_stats_t stats = {.size = sizeof stats};
    OK(bosk_mem_node_stats(node, &stats));
    CHECK(stats.used >= 1000 || stats.reserved == 0, "%lu used", (unsigned long)stats.used);
    on_node = bosk_realloc(on_node, 5000);
    check(on_node, 1000, 1000);
    OK(bosk_free(on_node));
  }
}

static void* own_memory(void* argument) {
  void* block;
  bosk_mem_attr_t attr;
  OK(bosk_mem_attr_init(&attr));
  attr.thread = bosk_thread_self();
  attr.use = BOSK_MEM_WRITES;
  OK(bosk_mem_alloc(&block, 3 * PAGE, &attr));
  // A thread that runs has a place.
  const bosk_mem_area_t area = area_at(block);
  CHECK(area.attached == 1, "attached to %u", area.attached);
  CHECK(area.policy == BOSK_MEM_ON_NODE || area.policy == BOSK_MEM_FIRST_TOUCH, "policy %u",
        area.policy);
  *(void**)argument = block;
  return NULL;
}

static void owners(void) {
  bosk_thread_t thread;
  void* block;
  OK(bosk_thread_create(&thread, NULL, own_memory, &block));
  OK(bosk_thread_join(thread, NULL));
  // The memory does not go with its owner.
  memset(block, 1, 3 * PAGE);
  OK(bosk_free(block));

  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  bosk_mem_attr_t attr;
  OK(bosk_mem_attr_init(&attr));
  attr.bubble = bubble;
  attr.policy = BOSK_MEM_ON_NODE;
  attr.node = (uint32_t)bosk_topo_nodes() - 1;
  OK(bosk_mem_alloc(&block, 8 * PAGE, &attr));
  uint64_t on[64];
  CHECK(bosk_mem_bubble_footprint(bubble, on, 64) == bosk_topo_nodes(), "nodes");
  CHECK(on[attr.node] == 8 * PAGE, "%lu bytes", (unsigned long)on[attr.node]);
  // More of its own goes where most is.
  attr.policy = BOSK_MEM_DEFAULT;
  attr.node = 0;
  void* more;
  OK(bosk_mem_alloc(&more, PAGE, &attr));
  CHECK(area_at(more).node == (uint32_t)bosk_topo_nodes() - 1, "on node %u", area_at(more).node);
  OK(bosk_free(block));
  bosk_stats_t stats = {.size = sizeof stats};
  OK(bosk_bubble_get_stats(bubble, &stats));
  CHECK(stats.footprint == PAGE, "footprint %lu", (unsigned long)stats.footprint);
  OK(bosk_bubble_destroy(bubble));
  CHECK(bosk_mem_update(more) == BOSK_OK, "gone with its owner");
  OK(bosk_free(more));
}

enum { SLOTS = 4096, ROUNDS = 60000 };
static _Atomic(char*) slots[SLOTS];
static atomic_int threads_left;

/// Blocks wander: whoever finds one in a slot checks it, frees it and leaves another one.
static void churn(unsigned seed, int rounds) {
  unsigned x = seed;
  for (int i = 0; i < rounds; ++i) {
    x = x * 1103515245 + 12345;
    const size_t bytes = (x >> 8) % 16 == 0 ? (x >> 12) % 70000 + 8 : (x >> 12) % 600 + 8;
    char* block = (x >> 3) % 2 == 0 ? bosk_malloc(bytes) : bosk_calloc(1, bytes);
    CHECK(block != NULL, "no memory");
    memcpy(block, &bytes, sizeof bytes);
    fill(block + sizeof bytes, bytes - sizeof bytes);
    char* found = atomic_exchange(&slots[(x >> 16) % SLOTS], block);
    if (found == NULL) continue;
    size_t length;
    memcpy(&length, found, sizeof length);
    CHECK(bosk_malloc_size(found) == length, "size");
    check(found + sizeof length, length - sizeof length, length - sizeof length);
    OK(bosk_free(found));
  }
}

static void* churn_thread(void* seed) {
  churn((unsigned)(uintptr_t)seed, ROUNDS / 10);
  return NULL;
}

static void empty_slots(void) {
  for (int i = 0; i < SLOTS; ++i) {
    char* found = atomic_exchange(&slots[i], NULL);
    OK(bosk_free(found));
  }
}

static void many(void) {
#pragma omp parallel num_threads(4)
  {
    churn((unsigned)threads_left++ + 1, ROUNDS);
#pragma omp parallel num_threads(3)
    churn((unsigned)threads_left++ + 1, ROUNDS / 10);
  }
  bosk_thread_t thread[20];
  pthread_t pthread[10];
  for (uintptr_t i = 0; i < 20; ++i)
    OK(bosk_thread_create(&thread[i], NULL, churn_thread, (void*)(i + 100)));
  for (uintptr_t i = 0; i < 10; ++i)
    CHECK(pthread_create(&pthread[i], NULL, churn_thread, (void*)(i + 200)) == 0, "pthread_create");
  for (int i = 0; i < 20; ++i) OK(bosk_thread_join(thread[i], NULL));
  for (int i = 0; i < 10; ++i) pthread_join(pthread[i], NULL);
  empty_slots();
  CHECK(used() == 0, "%lu bytes are still in use", (unsigned long)used());
}

static pthread_key_t key;
/// Allocates in a thread that ends: before the heaps' own destructor, and after it.
static void at_end(void* block) {
  check(block, 100, 100);
  OK(bosk_free(block));
  if (++threads_left % 3 == 0) return;
  char* another = bosk_malloc(100);
  CHECK(another != NULL, "no memory");
  fill(another, 100);
  pthread_setspecific(key, another);
}

static void* with_destructor(void* unused) {
  char* block = bosk_malloc(100);
  fill(block, 100);
  pthread_setspecific(key, block);
  OK(bosk_free(bosk_malloc(200)));
  return unused;
}

static void ends(void) {
  for (int before = 1; before >= 0; --before) {
    if (before == 0) pthread_key_delete(key);
    if (before == 0) OK(bosk_free(bosk_malloc(5)));
    CHECK(pthread_key_create(&key, at_end) == 0, "key");
    for (int round = 0; round < 100; ++round) {
      threads_left = 0;
      pthread_t pthread;
      CHECK(pthread_create(&pthread, NULL, with_destructor, NULL) == 0, "pthread_create");
      pthread_join(pthread, NULL);
      CHECK(threads_left == 3, "%d destructors", threads_left);
    }
  }
  CHECK(used() == 0, "%lu bytes are still in use", (unsigned long)used());
}

static atomic_int over;
static void* churn_until(void* seed) {
  while (!over) churn((unsigned)(uintptr_t)seed, 100);
  return NULL;
}

static void forks(void) {
  pthread_t pthread[2];
  for (uintptr_t i = 0; i < 2; ++i)
    CHECK(pthread_create(&pthread[i], NULL, churn_until, (void*)(i + 1)) == 0, "pthread_create");
  char* mine = bosk_malloc(1000);
  fill(mine, 1000);
  for (int round = 0; round < 50; ++round) {
    churn((unsigned)round + 7, 100);
    const pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
      check(mine, 1000, 1000);
      OK(bosk_free(mine));
      churn((unsigned)round + 99, 3000);
      pthread_t another;
      CHECK(pthread_create(&another, NULL, churn_thread, (void*)3) == 0, "pthread_create");
      pthread_join(another, NULL);
      void* block;
      OK(bosk_mem_alloc(&block, BIG, NULL));
      OK(bosk_free(block));
      empty_slots();
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child failed: %x", status);
  }
  over = 1;
  for (int i = 0; i < 2; ++i) pthread_join(pthread[i], NULL);
  OK(bosk_free(mine));
  empty_slots();
  CHECK(used() == 0, "%lu bytes are still in use", (unsigned long)used());
}

/// Fills slots, and another thread frees what it finds there: now and then each is in the middle of what concerns the other.
static void* fill_until(void* unused) {
  for (unsigned x = 1; !over; x = x * 1103515245 + 12345) {
    _Atomic(char*)* slot = &slots[(x >> 16) % SLOTS];
    if (*slot == NULL) *slot = bosk_malloc(600);
  }
  return unused;
}
static void* free_until(void* unused) {
  for (unsigned x = 7; !over; x = x * 1103515245 + 12345)
    OK(bosk_free(atomic_exchange(&slots[(x >> 16) % SLOTS], NULL)));
  return unused;
}
static void* allocate_once(void* unused) {
  OK(bosk_free(bosk_malloc(700)));
  return unused;
}

/// Threads of a child may get the stacks, and so the numbers, of threads that its parent had.
static void forks_of_others_blocks(void) {
  pthread_t filling, freeing;
  OK(bosk_free(bosk_malloc(700)));
  CHECK(pthread_create(&filling, NULL, fill_until, NULL) == 0, "pthread_create");
  CHECK(pthread_create(&freeing, NULL, free_until, NULL) == 0, "pthread_create");
  for (int round = 0; round < 300; ++round) {
    usleep(500);
    const pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
      arm_watchdog(30);
      pthread_t pthread[3];
      for (int i = 0; i < 3; ++i)
        CHECK(pthread_create(&pthread[i], NULL, allocate_once, NULL) == 0, "pthread_create");
      for (int i = 0; i < 3; ++i) pthread_join(pthread[i], NULL);
      _exit(0);
    }
    wait_for_child(child, 0, "a child");
  }
  over = 1;
  pthread_join(filling, NULL);
  pthread_join(freeing, NULL);
  empty_slots();
  CHECK(used() == 0, "%lu bytes are still in use", (unsigned long)used());
}

int main(int argc, char** argv) {
  const struct test tests[] = {{"sizes", sizes},
                               {"behind", behind},
                               {"errors", errors},
                               {"policies", policies},
                               {"owners", owners},
                               {"many", many},
                               {"ends", ends},
                               {"forks", forks},
                               {"forks-of-others-blocks", forks_of_others_blocks}};
  return RUN_TEST(argc, argv, tests);
}
