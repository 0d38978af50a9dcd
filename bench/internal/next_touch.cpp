// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What marking and touching cost, a page: the rows of `./dev bench next-touch`. One thread. "copy" is what
// a page takes that comes from another node (an invented kernel says so of all of them, and gives its
// answers for free); "exchange" the same in both directions, 2 MiB each; "local" one that was where it shall be already; "bare" what the kernel
// alone takes.
#include <sys/mman.h>

#include <vector>

#include "../programs/bench.h"
#include "bare_userfault.h"
#include "memory/next_touch/kernel_nodes.h"
#include "memory/next_touch/next_touch.h"

namespace {

using namespace bosk::memory;

constexpr size_t kPage = 4096;
constexpr size_t kPages = 8192;
constexpr size_t kFewPages = 1024;  // where each is a fault

[[noreturn]] void fail(const char* what) {
  fprintf(stderr, "next-touch: %s\n", what);
  exit(1);
}

char* fresh(size_t pages) {
  void* at = mmap(nullptr, (pages + 512) * kPage, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) fail("no memory");
  // Windows begin at multiples of 2 MiB.
  auto* memory = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(at) + 512 * kPage - 1) &
                                         ~(512 * kPage - 1));
  madvise(memory, pages * kPage, MADV_NOHUGEPAGE);
  memset(memory, 1, pages * kPage);
  return memory;
}

void print(const char* name, std::vector<double>& values, const char* unit) {
  bench_print(name, bench_median(values.data(), static_cast<int>(values.size())), unit);
}

void mark(char* memory, size_t pages, const NextTouchOptions& options) {
  if (next_touch_mark(memory, pages * kPage, options) != kNextTouchOk) fail("cannot mark");
}

int turns() { return bench_sample_ns() < 5e6 ? 5 : 15; }

/// Nodes that give each other data: where the toucher is changes every so many pages, and the data are elsewhere.
size_t change_every = 0;
volatile uint32_t here = 0;  // handlers read it

/// Touches every page once; what marks are left is a mistake.
double touch_ns(char* memory, size_t pages) {
  const double start = now_ns();
  for (size_t page = 0; page < pages; ++page) {
    if (change_every != 0 && page % change_every == 0) here = here ^ 1;
    *static_cast<volatile char*>(memory + page * kPage) = 2;
  }
  const double took = now_ns() - start;
  NextTouchState state;
  if (next_touch_query(memory, pages * kPage, &state) != 0 || state.marked != 0)
    fail("a touch that was none");
  return took;
}

void measure_touch(const char* name, char* memory, NextTouchOptions options) {
  const size_t pages = options.window == 1 ? kFewPages : kPages;
  std::vector<double> samples;
  for (int turn = 0; turn < turns(); ++turn) {
    mark(memory, pages, options);
    samples.push_back(touch_ns(memory, pages) / static_cast<double>(pages));
  }
  if (options.window == 1)
    for (double& sample : samples) sample /= 1000;
  print(name, samples, options.window == 1 ? "us" : "ns");
}

void measure_touches(char* memory, NextTouchBackend backend, const char* const names[4]) {
  NextTouchOptions options;
  options.backend = backend;
  const uint32_t windows[4] = {1, 64, 512, 0};
  for (int i = 0; i < 4; ++i) {
    options.window = windows[i];
    measure_touch(names[i], memory, options);
  }
}

void measure_marks(char* memory) {
  NextTouchOptions options;
  options.backend = NextTouchBackend::kUffd;
  std::vector<double> one, again, many;
  for (int turn = 0; turn < turns() * 40; ++turn) {
    double start = now_ns();
    mark(memory + 16 * kPage, 1, options);
    one.push_back(now_ns() - start);
    if (next_touch_cancel(memory, kPages * kPage) != 0) fail("cannot cancel");
    // A region that is there, with one page of several touched: what a phase change finds.
    mark(memory, 64, options);
    memory[0] = 3;
    start = now_ns();
    mark(memory, 1, options);
    again.push_back(now_ns() - start);
    if (next_touch_cancel(memory, kPages * kPage) != 0) fail("cannot cancel");
  }
  for (int turn = 0; turn < turns(); ++turn) {
    const double start = now_ns();
    mark(memory, kPages, options);
    many.push_back((now_ns() - start) / kPages);
    if (next_touch_cancel(memory, kPages * kPage) != 0) fail("cannot cancel");
  }
  print("next-touch-mark-1", one, "ns");
  print("next-touch-mark-again", again, "ns");
  print("next-touch-mark", many, "ns");
}

void measure_memcpy(char* memory) {
  char* other = fresh(kPages);
  std::vector<double> samples;
  for (int turn = 0; turn < turns(); ++turn) {
    const double start = now_ns();
    for (size_t page = 0; page < kPages; ++page)
      memcpy(other + page * kPage, memory + page * kPage, kPage);
    samples.push_back((now_ns() - start) / kPages);
  }
  print("next-touch-memcpy", samples, "ns");
}

}  // namespace

int main() {
  char* memory = fresh(kPages);
  measure_memcpy(memory);
  bare::measure(kPages, kFewPages, turns());
  const char* const sigsegv[4] = {"next-touch-sigsegv-1", "next-touch-sigsegv-64",
                                  "next-touch-sigsegv-512", "next-touch-sigsegv-adaptive"};
  measure_touches(memory, NextTouchBackend::kSigsegv, sigsegv);
  if (!next_touch_available(NextTouchBackend::kUffd)) fail("userfaultfd is not allowed here");
  measure_marks(memory);
  const char* const local[4] = {"next-touch-local-1", "next-touch-local-64", "next-touch-local-512",
                                "next-touch-local-adaptive"};
  measure_touches(memory, NextTouchBackend::kUffd, local);
  const KernelNodesForTests remote = {2, [] { return 0u; }, [](uintptr_t) { return 1; },
                                      [](uint32_t) { return uint64_t{1} << 30; }};
  set_kernel_nodes_for_tests(&remote);
  const char* const copy[4] = {"next-touch-copy-1", "next-touch-copy-64", "next-touch-copy-512",
                               "next-touch-copy-adaptive"};
  measure_touches(memory, NextTouchBackend::kUffd, copy);

  const KernelNodesForTests exchange = {2, []() -> uint32_t { return here; },
                                        [](uintptr_t) { return here == 0 ? 1 : 0; },
                                        [](uint32_t) { return uint64_t{1} << 30; }};
  set_kernel_nodes_for_tests(&exchange);
  change_every = 512;
  const char* const exchanged[4] = {"next-touch-exchange-1", "next-touch-exchange-64",
                                    "next-touch-exchange-512", "next-touch-exchange-adaptive"};
  measure_touches(memory, NextTouchBackend::kUffd, exchanged);
  return 0;
}
