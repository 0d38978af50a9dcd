// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Marked pages end on the node of whoever touches them, and stay where a policy or a full node says so. Linked
// with the core's objects. next_touch NODES CPUS_PER_NODE [full]
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/syscalls.h"
#include "memory/next_touch/kernel_nodes.h"
#include "memory/next_touch/next_touch.h"

namespace {

using namespace bosk::memory;
using bosk::base::address_of;
using bosk::base::raw_syscall;

constexpr size_t kPage = 4096;
constexpr size_t kPagesEach = 512;  // windows do not go over multiples of 2 MiB

int bad = 0;

[[gnu::format(printf, 2, 3)]] void check(bool good, const char* format, ...) {
  if (good) return;
  printf("not so: ");
  va_list values;
  va_start(values, format);
  vprintf(format, values);
  va_end(values);
  printf("\n");
  bad = 1;
}

struct Task {
  int cpu;
  void (*body)(char* memory, size_t pages);
  char* memory;
  size_t pages;
};

void* run(void* argument) {
  const auto* task = static_cast<const Task*>(argument);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(task->cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) abort();
  task->body(task->memory, task->pages);
  return nullptr;
}

/// In a thread bound to a CPU.
void on_cpu(int cpu, void (*body)(char*, size_t), char* memory, size_t pages) {
  Task task{cpu, body, memory, pages};
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run, &task) != 0) abort();
  pthread_join(thread, nullptr);
}

void write_all(char* memory, size_t pages) {
  for (size_t i = 0; i < pages; ++i) {
    auto* word = reinterpret_cast<uint64_t*>(memory + i * kPage);
    word[0] = i;
    word[511] = ~i;
  }
}
size_t wrong = 0;
void read_all(char* memory, size_t pages) {
  for (size_t i = 0; i < pages; ++i) {
    const auto* word = reinterpret_cast<const volatile uint64_t*>(memory + i * kPage);
    wrong += word[0] == i && word[511] == ~uint64_t{i} ? 0 : 1;
  }
}

size_t pages_on(char* memory, size_t pages, int node) {
  size_t n = 0;
  for (size_t i = 0; i < pages; i += kNodesAtOnce) {
    int nodes[kNodesAtOnce];
    const auto count = static_cast<uint32_t>(pages - i < kNodesAtOnce ? pages - i : kNodesAtOnce);
    nodes_of_pages(reinterpret_cast<uintptr_t>(memory + i * kPage), count, nodes);
    for (uint32_t k = 0; k < count; ++k) n += nodes[k] == node ? 1 : 0;
  }
  return n;
}

/// Begins at a multiple of 2 MiB.
char* fresh(size_t pages) {
  constexpr size_t kUnit = size_t{2} << 20;
  void* at = mmap(nullptr, pages * kPage + kUnit, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) abort();
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(at) + kUnit - 1) & ~(kUnit - 1));
}

void set_policy(char* memory, size_t pages, int mode, unsigned long nodes) {
  const long failed = raw_syscall(SYS_mbind, address_of(memory), static_cast<long>(pages * kPage),
                                  mode, address_of(&nodes), 64, 0);
  check(failed == 0, "mbind: %s", strerror(static_cast<int>(-failed)));
}

/// Each node's thread touches its part, in another order than the nodes'.
void follow(NextTouchBackend backend, uint32_t window, int nodes, int cpus) {
  NextTouchOptions options;
  options.backend = backend;
  options.window = window;
  const size_t pages = kPagesEach * static_cast<size_t>(nodes);
  char* memory = fresh(pages);
  on_cpu(0, write_all, memory, pages);
  check(pages_on(memory, pages, 0) == pages, "first touch put only %zu of %zu pages on node 0",
        pages_on(memory, pages, 0), pages);
  write_all(memory, 0);
  for (int round = 0; round < 2; ++round) {
    const int error = next_touch_mark(memory, pages * kPage, options);
    check(error == 0, "%s: %s", next_touch_backend_name(backend), next_touch_error_text(error));
    for (int part = 0; part < nodes; ++part) {
      char* mine = memory + static_cast<size_t>(part) * kPagesEach * kPage;
      const int node = (part + round + 1) % nodes;
      // The first words are those of the whole area.
      on_cpu(
          node * cpus + cpus - 1,
          [](char* at, size_t n) {
            for (size_t i = 0; i < n; ++i)
              *reinterpret_cast<volatile char*>(at + i * kPage + 8) = 1;
          },
          mine, kPagesEach);
      const size_t there = pages_on(mine, kPagesEach, node);
      check(there == kPagesEach, "%s, window %u: %zu of %zu pages are on node %d of the toucher",
            next_touch_backend_name(backend), window, there, kPagesEach, node);
    }
  }
  wrong = 0;
  read_all(memory, pages);
  check(wrong == 0, "%s: %zu pages have lost their data", next_touch_backend_name(backend), wrong);
  printf("%s, window %u: pages follow\n", next_touch_backend_name(backend), window);
  munmap(memory, pages * kPage);
}

/// Cancelled pages and pages that a policy holds stay; a policy that knows one place refuses the mark.
void stay(NextTouchBackend backend, int cpus) {
  NextTouchOptions options;
  options.backend = backend;
  options.window = 16;
  char* memory = fresh(kPagesEach);
  on_cpu(0, write_all, memory, kPagesEach);
  next_touch_mark(memory, kPagesEach * kPage, options);
  next_touch_cancel(memory, kPagesEach * kPage);
  wrong = 0;
  on_cpu(cpus, read_all, memory, kPagesEach);
  check(wrong == 0 && pages_on(memory, kPagesEach, 0) == kPagesEach,
        "%s: cancelled pages have moved", next_touch_backend_name(backend));
  set_policy(memory, kPagesEach, MPOL_BIND, 1 | 4);
  check(next_touch_mark(memory, kPagesEach * kPage, options) == 0, "MPOL_BIND was refused");
  on_cpu(cpus, read_all, memory, kPagesEach / 2);  // node 1 is not among them
  on_cpu(2 * cpus, read_all, memory + kPagesEach / 2 * kPage, 0);
  on_cpu(
      2 * cpus,
      [](char* at, size_t n) {
        for (size_t i = 0; i < n; ++i) *reinterpret_cast<volatile char*>(at + i * kPage + 8) = 1;
      },
      memory + kPagesEach / 2 * kPage, kPagesEach / 2);
  check(wrong == 0 && pages_on(memory, kPagesEach / 2, 0) == kPagesEach / 2,
        "%s: pages went where MPOL_BIND does not let them (%zu wrong)",
        next_touch_backend_name(backend), wrong);
  check(pages_on(memory + kPagesEach / 2 * kPage, kPagesEach / 2, 2) == kPagesEach / 2,
        "%s: pages did not go where MPOL_BIND lets them", next_touch_backend_name(backend));
  set_policy(memory, kPagesEach, MPOL_INTERLEAVE, 3);
  check(next_touch_mark(memory, kPagesEach * kPage, options) == kNextTouchPolicy,
        "interleaved pages were marked");
  printf("%s: what shall stay stays\n", next_touch_backend_name(backend));
  munmap(memory, kPagesEach * kPage);
}

/// Until the kernel takes other nodes.
void fill_node(int node) {
  constexpr size_t kStep = 1024;
  for (int spilled = 0, steps = 0; spilled < 8 && steps < 1000; ++steps) {
    char* filler = fresh(kStep);
    set_policy(filler, kStep, MPOL_PREFERRED, 1ul << node);
    for (size_t i = 0; i < kStep; ++i) filler[i * kPage] = 1;
    spilled += pages_on(filler, kStep, node) < kStep / 2 ? 1 : 0;
  }
}

/// Pages of node 0 that are touched from node 1 are there then, if the kernel has found room after all, or stay
/// where they were: at most a window is elsewhere. How many stayed.
size_t touch_from_full_node(NextTouchBackend backend, int cpus) {
  constexpr uint32_t kWindow = 16;
  NextTouchOptions options;
  options.backend = backend;
  options.window = kWindow;
  char* memory = fresh(kPagesEach);
  on_cpu(0, write_all, memory, kPagesEach);
  const size_t at_first = pages_on(memory, kPagesEach, 0);
  const NextTouchStatistics before = next_touch_statistics();
  check(next_touch_mark(memory, kPagesEach * kPage, options) == 0, "no mark");
  wrong = 0;
  on_cpu(cpus, read_all, memory, kPagesEach);
  const NextTouchStatistics after = next_touch_statistics();
  const size_t home = pages_on(memory, kPagesEach, 0);
  const size_t there = pages_on(memory, kPagesEach, 1);
  const auto refused =
      static_cast<size_t>(after.no_room - before.no_room + after.stayed - before.stayed);
  if (home != 0)
    printf("%s: %zu pages stay where the node is full, %zu found room, %zu are elsewhere\n",
           next_touch_backend_name(backend), home, there, kPagesEach - home - there);
  check(wrong == 0 && at_first == kPagesEach && kPagesEach - home - there <= kWindow &&
            refused + kWindow >= kPagesEach - there,
        "%s: %zu counted, %zu wrong, %zu were on node 0", next_touch_backend_name(backend), refused,
        wrong, at_first);
  return home;
}

/// The kernel drops caches where a node is full, and has room again. It is taken until there is none.
size_t full(NextTouchBackend backend, int cpus) {
  constexpr int kMostRounds = 200;
  fill_node(1);
  size_t stayed = 0;
  for (int round = 0; stayed == 0 && bad == 0 && round < kMostRounds; ++round)
    stayed = touch_from_full_node(backend, cpus);
  return stayed;
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc < 3) return 2;
  const int nodes = atoi(argv[1]);
  const int cpus = atoi(argv[2]);
  size_t stayed = 0;
  for (const NextTouchBackend backend :
       {NextTouchBackend::kUffd, NextTouchBackend::kUffdThread, NextTouchBackend::kSigsegv}) {
    if (!next_touch_available(backend)) {
      printf("%s: not allowed here\n", next_touch_backend_name(backend));
      // userfaultfd as we need it came with Linux 6.8.
      check(backend != NextTouchBackend::kSigsegv, "it should be");
      continue;
    }
    if (argc > 3 && std::string(argv[3]) == "full") {
      stayed += full(backend, cpus);
      continue;
    }
    for (const uint32_t window : {1u, 16u, 512u, 0u}) follow(backend, window, nodes, cpus);
    stay(backend, cpus);
  }
  check(argc == 3 || stayed > 0, "only %zu pages stayed", stayed);
  fflush(stdout);
  return bad;
}
