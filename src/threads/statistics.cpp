// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statistics by call: what is known of a thread, or summed over a bubble.
#include <stddef.h>
#include <string.h>

#include "threads/api.h"
#include "threads/attached.h"
#include "threads/cache_figures.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

/// Callers that know no more than this are answered as much.
constexpr size_t kFirstVersion = offsetof(bosk_stats_t, steals);

bool is_sound(const bosk_stats_t* stats) {
  return stats != nullptr && stats->size >= kFirstVersion && stats->size <= 4096;
}

void answer(const sched::Summary& sum, sched::TreeEntity& entity, bosk_stats_t* stats) {
  bosk_stats_t all = {};
  all.size = stats->size;
  all.cpu_ns = sum.cpu_ns;
  all.load = sum.load;
  all.threads = sum.threads;
  all.bubbles = sum.bubbles;
  all.not_started = sum.cpu_unknown;
  all.ready = sum.ready;
  all.running = sum.running;
  all.blocked = sum.blocked;
  all.last_worker = entity.figures.last_worker.load(std::memory_order_relaxed);
  all.last_domain = entity.figures.last_domain.load(std::memory_order_relaxed);
  all.footprint = sched::total_footprint(entity, home()->machine->n_nodes);
  all.steals = sum.steals;
  all.steal_levels = sum.steal_levels;
  CacheSums caches;
  sched::visit(
      entity,
      [](void* sums, sched::TreeEntity& each) {
        if (each.kind == sched::EntityKind::kThread)
          add_caches(static_cast<ThreadRecord&>(each), static_cast<CacheSums*>(sums));
      },
      &caches);
  all.cache_accesses = caches.known ? caches.accesses : sched::kUnknown64;
  all.cache_misses = caches.known ? caches.misses : sched::kUnknown64;
  // Of a later version: what this one does not know is 0.
  memset(stats, 0, all.size);
  memcpy(stats, &all, all.size < sizeof all ? all.size : sizeof all);
}

}  // namespace

int thread_stats(bosk_thread_t handle, bosk_stats_t* stats) {
  if (!is_sound(stats)) return BOSK_EINVAL;
  bring_books_up_to_date();
  sched::Thread* me = omp::current_thread();
  Inside inside(me);
  HeldThread thread(handle);
  if (!thread) return BOSK_ESTALE;
  // Of one that runs elsewhere, up to its last switch.
  if (thread.get() == running(me)) {
    count_time(*thread);
    thread->since = base::cycles();
  }
  answer(sched::summarize(*thread), *thread, stats);
  const Life life = thread->life.load(std::memory_order_relaxed);
  if (life == Life::kEnding || life == Life::kEnded)
    stats->threads = stats->ready = stats->running = stats->blocked = 0;
  return BOSK_OK;
}

int bubble_stats(bosk_bubble_t handle, bosk_stats_t* stats) {
  if (!is_sound(stats)) return BOSK_EINVAL;
  bring_books_up_to_date();
  Inside inside(omp::current_thread());
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  answer(sched::summarize(*bubble), *bubble, stats);
  --stats->bubbles;
  return BOSK_OK;
}

}  // namespace bosk::threads
