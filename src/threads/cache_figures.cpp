// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Figures by place, in chunks that are made when a thread in them is first counted.
#include "threads/cache_figures.h"

#include <new>

#include "base/counters_setting.h"
#include "base/message.h"
#include "base/publish_once.h"
#include "base/syscalls.h"
#include "sched/worker_caches.h"

namespace bosk::threads {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

struct CacheFigures {
  // The runner's.
  uint32_t counting = 0;  ///< generation of the thread that has begun; 0: none has
  uint32_t worker = 0;    ///< that it has begun on
  base::CacheCount begun;
  // Anybody's.
  std::atomic<uint32_t> known{0};  ///< generation of the thread that the sums are of
  std::atomic<uint64_t> accesses{0};
  std::atomic<uint64_t> misses{0};
};

constexpr uint32_t kChunk = 4096;
constexpr uint32_t kChunks = 4096;

struct Chunk {
  CacheFigures of[kChunk];
};
constinit base::PublishOnce<Chunk> chunks[kChunks]{};

/// Null: nobody there has been counted, or there are too many threads.
CacheFigures* find(const ThreadRecord& thread) {
  if (thread.place / kChunk >= kChunks) return nullptr;
  const Chunk* chunk = chunks[thread.place / kChunk].get();
  return chunk != nullptr ? const_cast<CacheFigures*>(&chunk->of[thread.place % kChunk]) : nullptr;
}

/// Null: no memory either.
CacheFigures* make(const ThreadRecord& thread) {
  if (CacheFigures* found = find(thread)) return found;
  if (thread.place / kChunk >= kChunks) return nullptr;
  void* memory = base::map_pages(sizeof(Chunk));
  if (memory == nullptr) return nullptr;
  if (!chunks[thread.place / kChunk].publish(new (memory) Chunk))
    base::unmap_pages(memory, sizeof(Chunk));
  return find(thread);
}

}  // namespace

bool start_counting_caches() {
  if (!base::counters_wanted()) return false;
  if (sched::can_read_caches()) return true;
  base::say(
      "BOSK_COUNTERS=on: there are no counters of cache misses here (many virtual machines have none, and "
      "/proc/sys/kernel/perf_event_paranoid may forbid them); not counting");
  return false;
}

void begin_counting(const ThreadRecord& thread, const sched::Worker* w) {
  CacheFigures* its = make(thread);
  if (its == nullptr) return;
  its->worker = w->index;
  its->counting = sched::read_worker_caches(w, &its->begun) ? thread.generation.load(kRelaxed) : 0;
}

void count_caches(const ThreadRecord& thread, const sched::Worker* w) {
  CacheFigures* its = find(thread);
  const uint32_t generation = thread.generation.load(kRelaxed);
  base::CacheCount now;
  if (its == nullptr || its->counting != generation) return;
  if (w == nullptr || w->index != its->worker || !sched::read_worker_caches(w, &now)) {
    its->counting = 0;
    return;
  }
  const bool first = its->known.load(kRelaxed) != generation;
  const auto add = [first](std::atomic<uint64_t>& sum, uint64_t more) {
    sum.store((first ? 0 : sum.load(kRelaxed)) + more, kRelaxed);
  };
  add(its->accesses, now.accesses - its->begun.accesses);
  add(its->misses, now.misses - its->begun.misses);
  // release: who sees the number sees sums of this thread.
  its->known.store(generation, std::memory_order_release);
  its->begun = now;
}

void add_caches(const ThreadRecord& thread, CacheSums* sums) {
  const CacheFigures* its = find(thread);
  if (its == nullptr ||
      its->known.load(std::memory_order_acquire) != thread.generation.load(kRelaxed))
    return;
  sums->accesses += its->accesses.load(kRelaxed);
  sums->misses += its->misses.load(kRelaxed);
  sums->known = true;
}

}  // namespace bosk::threads
