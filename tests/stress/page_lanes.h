// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages that many threads write to at once, each to a place of its own in every page, so that each knows what must be there.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

namespace bosk::memory::testing {

struct Random {
  uint64_t state;
  uint64_t below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
  }
};

/// One thread's part of each page: a counter and its complement, and what it must be. At most 16 threads.
struct Lane {
  static constexpr size_t kPageBytes = 4096;

  char* base;
  size_t pages;
  unsigned thread;
  std::vector<uint64_t> expected = std::vector<uint64_t>(pages, 0);

  std::atomic<uint64_t>* words(size_t page) const {
    return reinterpret_cast<std::atomic<uint64_t>*>(base + page * kPageBytes) + 4 * size_t{thread};
  }
  void add(size_t page) {
    std::atomic<uint64_t>* w = words(page);
    w[0].store(w[0].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    w[1].store(~w[0].load(std::memory_order_relaxed), std::memory_order_relaxed);
    ++expected[page];
  }
  bool good(size_t page) const {
    const uint64_t value = words(page)[0].load(std::memory_order_relaxed);
    const uint64_t complement = words(page)[1].load(std::memory_order_relaxed);
    return value == expected[page] && complement == (value == 0 ? 0 : ~value);
  }
  bool all_good() const {
    for (size_t page = 0; page < pages; ++page)
      if (!good(page)) return false;
    return true;
  }
};

/// A counter that all threads add to, at the end of each page.
inline std::atomic<uint64_t>& common(char* base, size_t page) {
  return reinterpret_cast<std::atomic<uint64_t>*>(base + (page + 1) * Lane::kPageBytes)[-1];
}

/// A child sees what this thread has written so far.
inline bool child_agrees(const Lane& lane) {
  const pid_t child = fork();
  if (child < 0) return true;  // no process to be had
  if (child == 0) _exit(lane.all_good() ? 0 : 1);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

/// Writes the thread's part of a page out by a system call and reads it back. Where calls do not work on marked pages
/// they may say so. `ends`: of a pipe of its own.
inline bool call_on(const Lane& lane, size_t page, const int ends[2], bool calls_work) {
  std::atomic<uint64_t>* w = lane.words(page);
  const ssize_t put = write(ends[1], static_cast<void*>(w), 16);
  if (put != 16) return !calls_work && put < 0 && errno == EFAULT;
  if (calls_work) return read(ends[0], static_cast<void*>(w), 16) == 16;
  uint64_t copy[2];
  return read(ends[0], copy, sizeof copy) == sizeof copy && copy[0] == lane.expected[page];
}

}  // namespace bosk::memory::testing
