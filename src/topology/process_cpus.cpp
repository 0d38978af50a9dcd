// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Affinity mask of the process, of any size.
#include "topology/process_cpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/observer_messages.h"

namespace bosk::topology {
namespace {

// A raw call: glibc's wrapper may be interposed, and the kernel's return value (bytes written) is
// wanted.
long affinity_call(size_t bytes, uint64_t* words) {
  return syscall(SYS_sched_getaffinity, 0, bytes, words);
}

void count_cpus(ProcessCpus* cpus) {
  cpus->count = 0;
  for (uint32_t i = 0; i < cpus->n_words; i++) {
    cpus->count += static_cast<uint32_t>(__builtin_popcountll(cpus->words()[i]));
  }
}

}  // namespace

uint32_t ProcessCpus::next(uint32_t from) const {
  for (uint32_t word = from / 64; word < n_words; word++) {
    uint64_t bits = words()[word];
    if (word == from / 64) bits &= ~uint64_t{0} << (from % 64);
    if (bits != 0) return word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
  }
  return kNoCpu;
}

bool load_process_cpus(ProcessCpus* cpus, Error* error) {
  const int saved_errno = errno;
  // Who observes us may have narrowed the calling thread.
  base::release_threads_from_observer();
  *cpus = ProcessCpus{};
  uint64_t* words = cpus->inline_words;
  size_t bytes = sizeof cpus->inline_words;
  long got = affinity_call(bytes, words);
  // EINVAL: the kernel's mask is larger than our buffer. Linux never writes more than 8 KiB here.
  while (got < 0 && errno == EINVAL && bytes < kMaxOsIndex / 8) {
    bytes *= 2;
    void* grown = realloc(cpus->heap_words, bytes);
    if (grown == nullptr) {
      free_process_cpus(cpus);
      errno = saved_errno;
      return error->set("out of memory while reading the affinity mask");
    }
    cpus->heap_words = words = static_cast<uint64_t*>(grown);
    got = affinity_call(bytes, words);
  }
  if (got < 0) {
    error->set("cannot read the affinity mask of this process: %s", strerror(errno));
    free_process_cpus(cpus);
    errno = saved_errno;
    return false;
  }
  cpus->n_words = static_cast<uint32_t>((static_cast<size_t>(got) + 7) / 8);
  // The kernel writes whole longs; where long is 4 bytes the upper half of the last word is ours.
  memset(reinterpret_cast<char*>(words) + got, 0, cpus->n_words * 8 - static_cast<size_t>(got));
  count_cpus(cpus);
  errno = saved_errno;
  return true;
}

bool set_process_cpus(ProcessCpus* cpus, const uint32_t* numbers, uint32_t n, Error* error) {
  *cpus = ProcessCpus{};
  uint32_t last = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (numbers[i] >= kMaxOsIndex) {
      return error->set("CPU number %u is too large (the largest accepted is %u)", numbers[i],
                        kMaxOsIndex - 1);
    }
    if (numbers[i] > last) last = numbers[i];
  }
  cpus->n_words = last / 64 + 1;
  uint64_t* words = cpus->inline_words;
  if (last >= ProcessCpus::kInlineCpus) {
    words = cpus->heap_words = static_cast<uint64_t*>(calloc(cpus->n_words, sizeof(uint64_t)));
    if (words == nullptr) {
      cpus->n_words = 0;
      return error->set("out of memory while building a set of CPUs");
    }
  }
  for (uint32_t i = 0; i < n; i++) words[numbers[i] / 64] |= uint64_t{1} << (numbers[i] % 64);
  count_cpus(cpus);
  return true;
}

void free_process_cpus(ProcessCpus* cpus) {
  free(cpus->heap_words);
  *cpus = ProcessCpus{};
}

}  // namespace bosk::topology
