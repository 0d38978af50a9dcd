// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the kernel alone takes for a mark, a touch and a copy of next-touch: the fewest system calls that do it on one page,
// nothing decided, noted or locked. Whatever is built on userfaultfd(2) takes as much.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "../programs/bench.h"
#include "memory/next_touch/userfault.h"

namespace bare {

using namespace bosk::memory;

constexpr size_t kPage = 4096;

struct Bare {
  int file = -1;
  char* place = nullptr;   ///< pages that are touched
  char* shadow = nullptr;  ///< where their data are
};
inline Bare bare;

inline uintptr_t address(const char* at) { return reinterpret_cast<uintptr_t>(at); }

inline bool watch(char* at, size_t pages) {
  return userfault_register(bare.file, address(at), address(at) + pages * kPage,
                            UFFDIO_REGISTER_MODE_MISSING) == 0;
}

inline void bring_in(int, siginfo_t* info, void*) {
  const uintptr_t to = reinterpret_cast<uintptr_t>(info->si_addr) & ~(kPage - 1);
  size_t done;
  if (userfault_move(bare.file, to, to - address(bare.place) + address(bare.shadow), kPage,
                     &done) != 0)
    _exit(1);
}

/// Two places, each with a fence so that they are mappings of their own, written and watched. False: not allowed here.
inline bool start(size_t pages) {
  uint64_t features;
  bare.file = open_userfault(false, UFFD_FEATURE_SIGBUS | kFeatureMove, 0, &features);
  if (bare.file < 0) return false;
  for (char** at : {&bare.place, &bare.shadow}) {
    *at = static_cast<char*>(
              mmap(nullptr, (pages + 2) * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) +
          kPage;
    if (mprotect(*at, pages * kPage, PROT_READ | PROT_WRITE) != 0) return false;
    madvise(*at, pages * kPage, MADV_NOHUGEPAGE);
  }
  memset(bare.place, 1, pages * kPage);
  return watch(bare.place, pages) && watch(bare.shadow, pages);
}

inline void stop(size_t pages) {
  for (char* at : {bare.place, bare.shadow}) munmap(at - kPage, (pages + 2) * kPage);
  close(bare.file);
  bare = {};
}

/// Moves all aside; false: the kernel does not.
inline bool set_aside(size_t pages) {
  size_t done = 0;
  for (size_t page = 0; page < pages; ++page)
    if (userfault_move(bare.file, address(bare.shadow) + page * kPage,
                       address(bare.place) + page * kPage, kPage, &done) != 0)
      return false;
  return true;
}

/// us: a write to a page that is set aside, with a handler that only moves it in. Negative: cannot be measured.
inline double touch_us(size_t pages, int turns) {
  struct sigaction ours = {}, before;
  ours.sa_sigaction = bring_in;
  ours.sa_flags = SA_SIGINFO;
  sigfillset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, &before);
  std::vector<double> samples;
  for (int turn = 0; turn < turns && set_aside(pages); ++turn) {
    const double start = now_ns();
    for (size_t page = 0; page < pages; ++page)
      *static_cast<volatile char*>(bare.place + page * kPage) = 2;
    samples.push_back((now_ns() - start) / static_cast<double>(pages) / 1000);
  }
  sigaction(SIGBUS, &before, nullptr);
  if (samples.size() != static_cast<size_t>(turns)) return -1;
  return bench_median(samples.data(), turns);
}

/// ns a page: new pages, so many at once, and the old ones given back.
inline double copy_ns(size_t pages, size_t at_once, int turns) {
  std::vector<double> samples;
  for (int turn = 0; turn < turns; ++turn) {
    if (!set_aside(pages)) return -1;
    const double start = now_ns();
    for (size_t page = 0; page < pages; page += at_once) {
      size_t done;
      if (userfault_copy(bare.file, address(bare.place) + page * kPage,
                         address(bare.shadow) + page * kPage, at_once * kPage, &done) != 0)
        return -1;
      madvise(bare.shadow + page * kPage, at_once * kPage, MADV_DONTNEED);
    }
    samples.push_back((now_ns() - start) / static_cast<double>(pages));
  }
  return bench_median(samples.data(), turns);
}

/// ns: one page in the middle of a mapping that nobody watches is watched, and set aside.
inline double mark_ns(size_t pages, int turns) {
  std::vector<double> samples;
  const uintptr_t begin = address(bare.place);
  for (int turn = 0; turn < turns; ++turn) {
    if (userfault_unregister(bare.file, begin, begin + pages * kPage) != 0) return -1;
    char* const page = bare.place + pages / 2 * kPage;
    size_t done, back;
    const double start = now_ns();
    const bool marked = watch(page, 1) && userfault_move(bare.file, address(bare.shadow),
                                                         address(page), kPage, &done) == 0;
    samples.push_back(now_ns() - start);
    if (!marked ||
        userfault_move(bare.file, address(page), address(bare.shadow), kPage, &back) != 0)
      return -1;
  }
  if (!watch(bare.place, pages)) return -1;
  return bench_median(samples.data(), turns);
}

/// A row that cannot be measured is missing, not negative.
inline void print(const char* name, double value, const char* unit) {
  if (value >= 0) bench_print(name, value, unit);
}

/// Prints the rows, where userfaultfd is allowed and can move pages. As many pages as the rows beside them.
inline void measure(size_t pages, size_t few_pages, int turns) {
  if (!start(pages)) return;
  print("next-touch-bare-mark-1", mark_ns(pages, turns * 40), "ns");
  print("next-touch-bare-copy-64", copy_ns(pages, 64, turns), "ns");
  print("next-touch-bare-copy-512", copy_ns(pages, 512, turns), "ns");
  print("next-touch-bare-touch-1", touch_us(few_pages, turns), "us");
  stop(pages);
}

}  // namespace bare
