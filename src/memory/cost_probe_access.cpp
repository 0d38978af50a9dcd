// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Latency: a closed walk through all lines of a buffer in an order by chance, so that no prefetcher knows the next one.
// A write visits the lines in the same way and dirties each, so that every one also has to go back (2009, table 3,
// tells the two apart). Bandwidth: sums of long words, and stores of them.
#include "memory/cost_probe_access.h"

#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>

#include "base/mapped_array.h"
#include "base/syscalls.h"

namespace bosk::memory {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr uint64_t kWordsPerLine = kLine / sizeof(uint64_t);

struct Line64 {
  Line64* next;
  uint64_t written;
  uint64_t rest[kWordsPerLine - 2];
};
static_assert(sizeof(Line64) == kLine);

/// xorshift64*: the order need not be good, only not guessable by hardware.
uint64_t next_random(uint64_t* state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/// One cycle through all lines (Sattolo's shuffle).
void link_lines(Line64* lines, size_t count) {
  for (size_t i = 0; i < count; ++i) lines[i].next = &lines[i];
  uint64_t state = 88172645463325252U;
  for (size_t i = count - 1; i > 0; --i) {
    const size_t j = next_random(&state) % i;
    Line64* kept = lines[i].next;
    lines[i].next = lines[j].next;
    lines[j].next = kept;
  }
}

Line64* chase(Line64* at, uint64_t count, bool write) {
  if (write) {
    for (uint64_t i = 0; i < count; ++i) {
      at->written = i;
      at = at->next;
    }
  } else {
    for (uint64_t i = 0; i < count; ++i) at = at->next;
  }
  return at;
}

using Words [[gnu::vector_size(32)]] = uint64_t;
constexpr size_t kChunk = size_t{256} << 10;

uint64_t read_chunk(const char* memory) {
  const auto* words = reinterpret_cast<const Words*>(memory);
  Words a{};
  Words b{};
  Words c{};
  Words d{};
  for (size_t i = 0; i < kChunk / sizeof(Words); i += 4) {
    a += words[i];
    b += words[i + 1];
    c += words[i + 2];
    d += words[i + 3];
  }
  a += b + c + d;
  return a[0] + a[1] + a[2] + a[3];
}

/// Plain stores: what a program's are, with the line fetched first.
void write_chunk(char* memory, uint64_t value) {
  auto* words = reinterpret_cast<Words*>(memory);
  const Words filled = Words{} + value;
  for (size_t i = 0; i < kChunk / sizeof(Words); ++i) {
    words[i] = filled;
    asm volatile("" ::: "memory");  // no library call that goes round the caches
  }
}

struct Run {
  ProbeThread* threads;
  size_t bytes;
  double seconds;
  // Release when a thread is ready, acquire by who waits for them; the same for the sign to go. So `failed`, written
  // before the one and read after the other, may be relaxed.
  std::atomic<uint32_t> ready{0};
  std::atomic<uint32_t> go{0};
  std::atomic<bool> failed{false};
};

void wait_until(const std::atomic<uint32_t>& word, uint32_t least) {
  for (;;) {
    const uint32_t seen = word.load(std::memory_order_acquire);
    if (seen >= least) return;
    base::futex_wait(&word, seen);
  }
}

struct OneThread {
  Run* run;
  ProbeThread* thread;
  pthread_t handle;
};

double time_chase(Line64* first, bool write, double seconds) {
  constexpr uint64_t kSteps = 4096;
  Line64* at = chase(first, kSteps, write);
  uint64_t steps = 0;
  const double start = probe_now();
  double now;
  do {
    at = chase(at, kSteps, write);
    steps += kSteps;
    now = probe_now();
  } while (now - start < seconds);
  asm volatile("" ::"r"(at));
  return (now - start) * 1e9 / static_cast<double>(steps);
}

double time_stream(char* memory, size_t bytes, bool write, double seconds) {
  uint64_t sum = 0;
  uint64_t chunks = 0;
  const double start = probe_now();
  double now;
  size_t at = 0;
  do {
    if (write) {
      write_chunk(memory + at, chunks);
    } else {
      sum += read_chunk(memory + at);
    }
    at = at + 2 * kChunk > bytes ? 0 : at + kChunk;
    ++chunks;
    now = probe_now();
  } while (now - start < seconds);
  asm volatile("" ::"r"(sum));
  return static_cast<double>(chunks) * kChunk / ((now - start) * 1e9);
}

void* run_one(void* argument) {
  auto* one = static_cast<OneThread*>(argument);
  Run* run = one->run;
  ProbeThread* thread = one->thread;
  cpu_set_t* set = CPU_ALLOC(65536);
  const size_t set_bytes = CPU_ALLOC_SIZE(65536);
  bool good = set != nullptr;
  if (good) {
    CPU_ZERO_S(set_bytes, set);
    CPU_SET_S(static_cast<size_t>(thread->cpu), set_bytes, set);
    good = sched_setaffinity(0, set_bytes, set) == 0;
    CPU_FREE(set);
  }
  void* memory = good ? map_on_node(run->bytes, thread->kernel_node, true) : nullptr;
  if (memory == nullptr) run->failed.store(true, std::memory_order_relaxed);
  const bool chases = thread->work == ProbeWork::kChase;
  if (memory != nullptr && chases) link_lines(static_cast<Line64*>(memory), run->bytes / kLine);
  run->ready.fetch_add(1, std::memory_order_release);
  base::futex_wake(&run->ready, 1);
  wait_until(run->go, 1);
  if (!run->failed.load(std::memory_order_relaxed)) {
    const bool write = thread->way == Access::kWrite;
    thread->result = chases
                         ? time_chase(static_cast<Line64*>(memory), write, run->seconds)
                         : time_stream(static_cast<char*>(memory), run->bytes, write, run->seconds);
  }
  unmap_from_node(memory, run->bytes);
  return nullptr;
}

}  // namespace

double probe_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void* map_on_node(size_t bytes, int kernel_node, bool huge) {
  const size_t slack = huge ? kHugePage : 0;
  void* made =
      mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  auto* memory = static_cast<char*>(made);
  if (huge) {
    auto* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory) + kHugePage - 1) &
                                            ~(kHugePage - 1));
    if (aligned != memory) munmap(memory, static_cast<size_t>(aligned - memory));
    const auto behind = static_cast<size_t>(memory + slack - aligned);
    if (behind != 0) munmap(aligned + bytes, behind);
    memory = aligned;
  }
  madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  uint64_t mask[1024 / 64] = {};
  mask[kernel_node / 64] = uint64_t{1} << (kernel_node % 64);
  const long bound =
      base::raw_syscall(SYS_mbind, base::address_of(memory), static_cast<long>(bytes), MPOL_BIND,
                        base::address_of(mask), 1025, 0);
  // A kernel without NUMA has one node, and everything is there.
  if (bound != 0 && bound != -ENOSYS && kernel_node != 0) {
    munmap(memory, bytes);
    return nullptr;
  }
  for (size_t at = 0; at < bytes; at += base::kPage) memory[at] = 1;
  return memory;
}

void unmap_from_node(void* memory, size_t bytes) {
  if (memory != nullptr) munmap(memory, bytes);
}

bool run_probe(ProbeThread* threads, uint32_t count, size_t bytes, double seconds) {
  base::MappedArray<OneThread> all;
  if (!all.resize(count)) return false;
  Run run{threads, bytes & ~(kChunk - 1), seconds};
  uint32_t started = 0;
  for (; started < count; ++started) {
    all[started] = {&run, &threads[started], {}};
    if (pthread_create(&all[started].handle, nullptr, run_one, &all[started]) != 0) break;
  }
  if (started != count) run.failed.store(true, std::memory_order_relaxed);
  wait_until(run.ready, started);
  run.go.store(1, std::memory_order_release);
  base::futex_wake(&run.go, INT32_MAX);
  for (uint32_t i = 0; i < started; ++i) pthread_join(all[i].handle, nullptr);
  all.release();
  return started == count && !run.failed.load(std::memory_order_relaxed);
}

}  // namespace bosk::memory
