// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where allocators put memory, as the kernel tells it: allocator_memory MODE.
#include "allocator_check.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NODES 1024

// The policy of the page at `address`: its mode; the nodes' lowest word goes to `nodes`.
static int policy_of(const void* address, unsigned long* nodes) {
  unsigned long mask[NODES / (8 * sizeof(long))] = {0};
  int mode = -1;
  const long failed =
      syscall(SYS_get_mempolicy, &mode, mask, (unsigned long)NODES, address, MPOL_F_ADDR);
  CHECK(failed == 0, "get_mempolicy(%p): %s", address, strerror(errno));
  *nodes = mask[0];
  return mode;
}

// The node that holds the page.
static int node_of(const void* address) {
  int node = -1;
  const long failed = syscall(SYS_get_mempolicy, &node, NULL, 0ul, address,
                              (unsigned long)(MPOL_F_NODE | MPOL_F_ADDR));
  CHECK(failed == 0, "get_mempolicy(%p): %s", address, strerror(errno));
  return node;
}

// 77: the kernel has no NUMA, or a sandbox keeps its policies from us.
static void need_policies(void) {
  char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned long node0 = 1;
  int mode;
  if (syscall(SYS_mbind, page, 4096ul, MPOL_PREFERRED, &node0, 65ul, 0) != 0 ||
      syscall(SYS_get_mempolicy, &mode, NULL, 0ul, page, MPOL_F_ADDR) != 0) {
    printf("no memory policies here: %s\n", strerror(errno));
    exit(77);
  }
  munmap(page, 4096);
}

static const struct {
  uintptr_t partition;
  int mode;
} kPartitions[] = {{omp_atv_nearest, MPOL_PREFERRED},
                   {omp_atv_blocked, MPOL_PREFERRED},
                   {omp_atv_interleaved, MPOL_INTERLEAVE}};

// Every page of every block has the policy that was asked for, whatever size and alignment it has.
static void partition(void) {
  need_policies();
  for (size_t p = 0; p < sizeof kPartitions / sizeof kPartitions[0]; ++p) {
    for (size_t to = 1; to <= 1 << 21; to *= 8) {
      const omp_alloctrait_t traits[] = {{omp_atk_partition, kPartitions[p].partition},
                                         {omp_atk_alignment, to}};
      const omp_allocator_handle_t a = make(omp_default_mem_space, 2, traits);
      for (size_t size = 1; size < 3000000; size = size * 5 + 3) {
        char* block = get(size, a);
        CHECK(aligned(block, to) && aligned(block, 16), "%zu bytes to %zu: %p", size, to,
              (void*)block);
        memset(block, 7, size);
        for (size_t at = 0; at < size; at += 4096) {
          unsigned long nodes;
          const int mode = policy_of(block + at, &nodes);
          CHECK(mode == kPartitions[p].mode && nodes != 0,
                "partition %zu, %zu bytes: %d, nodes %lx", p, size, mode, nodes);
          CHECK(kPartitions[p].mode != MPOL_PREFERRED || (nodes >> node_of(block + at) & 1) != 0,
                "the page is on node %d of %lx", node_of(block + at), nodes);
        }
        omp_free(block, a);
      }
      omp_destroy_allocator(a);
    }
  }
  // Nobody asked: the process's own policy.
  const omp_alloctrait_t trait = {omp_atk_partition, omp_atv_environment};
  const omp_allocator_handle_t a = make(omp_default_mem_space, 1, &trait);
  unsigned long nodes;
  char* block = get(1 << 22, a);
  block[0] = 1;
  CHECK(policy_of(block, &nodes) == MPOL_DEFAULT, "environment has a policy");
  omp_free(block, a);
  omp_destroy_allocator(a);
}

// On machines without differing nodes the spaces are the default one; on others they are somewhere.
static void spaces(void) {
  const omp_memspace_handle_t all[] = {omp_default_mem_space, omp_large_cap_mem_space,
                                       omp_const_mem_space, omp_high_bw_mem_space,
                                       omp_low_lat_mem_space};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    const omp_allocator_handle_t a = make(all[i], 0, NULL);
    for (size_t size = 1; size < 300000; size = size * 7 + 1) {
      char* block = get(size, a);
      memset(block, 3, size);
      block = omp_realloc(block, size + 5000, a, a);
      CHECK(block != NULL && block[0] == 3 && block[size - 1] == 3, "space %zu lost bytes", i);
      omp_free(block, a);
    }
    omp_destroy_allocator(a);
  }
}

// Blocks that share pages: distinct, whole, zero where that is asked, used again.
static void small(void) {
  enum { kBlocks = 3000 };
  const omp_alloctrait_t trait = {omp_atk_partition, omp_atv_interleaved};
  const omp_allocator_handle_t a = make(omp_default_mem_space, 1, &trait);
  static unsigned char* blocks[kBlocks];
  static size_t sizes[kBlocks];
  unsigned random = 1;
  const long before = status_kb("VmSize");
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < kBlocks; ++i) {
      if (blocks[i] != NULL) {
        for (size_t k = 0; k < sizes[i]; ++k)
          CHECK(blocks[i][k] == (unsigned char)i, "block %d was overwritten", i);
        omp_free(blocks[i], a);
        blocks[i] = NULL;
      }
      random = random * 1103515245 + 12345;
      if ((random >> 16 & 3) == 0) continue;
      sizes[i] = (random >> 18) % 1900 + 1;
      blocks[i] = omp_calloc(1, sizes[i], a);
      CHECK(blocks[i] != NULL, "no %zu bytes", sizes[i]);
      for (size_t k = 0; k < sizes[i]; ++k)
        CHECK(blocks[i][k] == 0, "byte %zu of %zu is not zero", k, sizes[i]);
      memset(blocks[i], i, sizes[i]);
    }
  }
  // 3000 blocks of at most 2 KiB: they are used again, and share pages.
  CHECK(status_kb("VmSize") - before < 32 * 1024, "grew by %ld kB", status_kb("VmSize") - before);
  for (int i = 0; i < kBlocks; ++i) omp_free(blocks[i], a);
  const long full = status_kb("VmSize");
  omp_destroy_allocator(a);
  CHECK(status_kb("VmSize") < full, "destroying gives nothing back");
}

// Members take and give at once, also what others took.
static void concurrent(void) {
  enum { kThreads = 8, kSlots = 64, kRounds = 4000 };
  const omp_alloctrait_t traits[] = {{omp_atk_partition, omp_atv_nearest},
                                     {omp_atk_pool_size, 1 << 20},
                                     {omp_atk_fallback, omp_atv_null_fb}};
  const omp_allocator_handle_t a = make(omp_default_mem_space, 3, traits);
  static size_t* shared[kSlots];
#pragma omp parallel num_threads(kThreads)
  {
    unsigned random = (unsigned)omp_get_thread_num() + 1;
    for (int i = 0; i < kRounds; ++i) {
      random = random * 1103515245 + 12345;
      const size_t words = (random >> 16) % 400 + 1;
      size_t* mine = omp_alloc(words * sizeof(size_t), a);
      CHECK(mine != NULL, "the pool is empty with 72 blocks of 3200 bytes");
      mine[0] = words;
      for (size_t k = 1; k < words; ++k) mine[k] = words * k;
      size_t* other =
          __atomic_exchange_n(&shared[random >> 8 & (kSlots - 1)], mine, __ATOMIC_ACQ_REL);
      if (other == NULL) continue;
      for (size_t k = 1; k < other[0]; ++k) CHECK(other[k] == other[0] * k, "a block was shared");
      omp_free(other, a);
    }
  }
  for (int i = 0; i < kSlots; ++i) omp_free(shared[i], a);
  void* all = omp_alloc(1 << 20, a);
  CHECK(all != NULL, "the pool is not whole again");
  omp_free(all, a);
  omp_destroy_allocator(a);
}

// Growing and shrinking keeps content, policy and alignment.
static void grow(void) {
  need_policies();
  const omp_alloctrait_t traits[] = {{omp_atk_partition, omp_atv_interleaved},
                                     {omp_atk_alignment, 128}};
  const omp_allocator_handle_t a = make(omp_default_mem_space, 2, traits);
  const size_t sizes[] = {1, 100, 3000, 4000, 5000, 100000, 90000, 99000, 4000, 50, 1 << 20, 10};
  unsigned char* block = get(1, a);
  block[0] = 1;
  size_t had = 1;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    block = omp_realloc(block, sizes[i], a, a);
    LOOK(block);
    CHECK(block != NULL && aligned(block, 128), "%zu bytes at %p", sizes[i], (void*)block);
    const size_t kept = had < sizes[i] ? had : sizes[i];
    for (size_t k = 0; k < kept; ++k)
      CHECK(block[k] == (unsigned char)(k + 1), "byte %zu of %zu", k, kept);
    for (size_t k = 0; k < sizes[i]; ++k) block[k] = (unsigned char)(k + 1);
    unsigned long nodes;
    CHECK(policy_of(block + sizes[i] - 1, &nodes) == MPOL_INTERLEAVE, "%zu bytes", sizes[i]);
    had = sizes[i];
  }
  // To another allocator and back.
  block = omp_realloc(block, 5000, omp_default_mem_alloc, a);
  CHECK(block != NULL && block[9] == 10, "lost on the way to malloc");
  block = omp_realloc(block, 6000, a, omp_default_mem_alloc);
  CHECK(block != NULL && block[9] == 10, "lost on the way back");
  omp_free(block, a);
  omp_destroy_allocator(a);
}

// Allocators made before a fork work in the child, and threads of the parent may be in the middle.
static void fork_beside(void) {
  const omp_alloctrait_t trait = {omp_atk_partition, omp_atv_nearest};
  const omp_allocator_handle_t a = make(omp_default_mem_space, 1, &trait);
  char* kept = get(500, a);
  memset(kept, 42, 500);
  for (int round = 0; round < 20; ++round) {
    pid_t child = -1;
#pragma omp parallel num_threads(4) shared(child)
    {
      if (omp_get_thread_num() == 0) {
        child = fork();
        if (child == 0) {
          for (size_t size = 1; size < 100000; size = size * 3 + 1) {
            char* block = get(size, a);
            memset(block, 1, size);
            omp_free(block, a);
          }
          CHECK(kept[499] == 42, "the parent's block is not here");
          omp_free(kept, a);
          omp_destroy_allocator(a);
          const omp_allocator_handle_t own = make(omp_default_mem_space, 1, &trait);
          omp_free(get(100, own), own);
          omp_destroy_allocator(own);
          _exit(7);
        }
      } else {
        for (int i = 0; i < 300; ++i) omp_free(get((size_t)i * 11 + 1, a), a);
      }
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7,
          "child %d ended with %x", round, status);
  }
  omp_free(kept, a);
  omp_destroy_allocator(a);
}

// OMP_ALLOCATOR=omp_high_bw_mem_space:alignment=256,pool_size=10000,fallback=null_fb,partition=interleaved
static void environment(void) {
  need_policies();
  const omp_allocator_handle_t a = omp_get_default_allocator();
  CHECK(a > omp_thread_mem_alloc, "not an allocator of its own: %ld", (long)a);
  char* block = get(6000, omp_null_allocator);
  unsigned long nodes;
  block[4096] = 1;
  CHECK(aligned(block, 256) && policy_of(block + 4096, &nodes) == MPOL_INTERLEAVE, "%p",
        (void*)block);
  void* none = omp_alloc(6000, omp_null_allocator);
  LOOK(none);
  CHECK(none == NULL, "no pool");
  omp_set_default_allocator(omp_cgroup_mem_alloc);
  omp_free(get(6000, omp_null_allocator), omp_null_allocator);
  omp_set_default_allocator(a);
  none = omp_alloc(6000, omp_null_allocator);
  LOOK(none);
  CHECK(none == NULL, "no pool");
  omp_destroy_allocator(a);  // it stays
  omp_free(block, a);
  omp_free(get(6000, omp_null_allocator), a);
}

int main(int argc, char** argv) {
  CHECK(argc == 2, "usage: allocator_memory MODE");
  arm_watchdog(50);
  const struct {
    const char* name;
    void (*run)(void);
  } modes[] = {{"partition", partition},    {"spaces", spaces}, {"small", small},
               {"concurrent", concurrent},  {"grow", grow},     {"fork_beside", fork_beside},
               {"environment", environment}};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
    if (strcmp(argv[1], modes[i].name) != 0) continue;
    modes[i].run();
    printf("%s: ok\n", argv[1]);
    return 0;
  }
  CHECK(0, "no mode %s", argv[1]);
}
