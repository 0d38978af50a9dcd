// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the home's workers look at: the hierarchical search, with what bubbles ask for themselves.
#include <algorithm>
#include <utility>

#include "omp/root_team.h"
#include "sched/preemption.h"
#include "sched/search.h"
#include "threads/api.h"
#include "threads/cache_figures.h"
#include "threads/home.h"
#include "threads/records.h"
#include "threads/run.h"

namespace bosk::threads {

void leave_home(sched::Thread* me);

namespace {

using sched::ExplicitThread;
using sched::RunQueue;
using sched::Worker;

/// Null: the worker's pool is not the home (any more).
Home* home_of(const Worker* w) {
  Home* h = home();
  return h != nullptr && h->pool == w->pool ? h : nullptr;
}

ThreadRecord& record_of(const sched::Thread* context) {
  return *static_cast<ThreadRecord*>(context->entity);
}

/// How many PUs the worker plays: its own, and where workers are fewer than PUs those that nobody has else.
uint32_t count_pus_of(const Home* h, const Worker* w) {
  const uint32_t pus = h->machine->n_pus;
  const uint32_t workers = w->pool->worker_count.load(std::memory_order_relaxed);
  return BOSK_LIKELY(workers >= pus) ? 1 : (pus - 1 - w->index) / workers + 1;
}

/// Calls f(pu) for each of them until it says true; `from`: another number, another one first.
template <class F>
bool for_pus_of(const Home* h, const Worker* w, F&& f, uint32_t from = 0) {
  const uint32_t count = count_pus_of(h, w);
  if (BOSK_LIKELY(count == 1)) return f(sched::pu_of_worker(*h->machine, w->index));
  const uint32_t workers = w->pool->worker_count.load(std::memory_order_relaxed);
  from %= count;
  for (uint32_t i = 0; i < count; ++i, from = from + 1 == count ? 0 : from + 1)
    if (f(w->index + from * workers)) return true;
  return false;
}

/// A bubble that was taken off `queue`: its own wishes first, then the policy's.
void found_bubble(Home* h, BubbleRecord& bubble, RunQueue& queue, uint32_t pu) {
  const topology::Machine& machine = *h->machine;
  take_wanted_priority(bubble, bubble.wanted_priority);
  const uint8_t level = std::atomic_ref(bubble.burst_level).load(std::memory_order_relaxed);
  if (level != 0) {
    const topology::Domain& at = machine.domain_array[queue.domain];
    const topology::Domain& to = machine.domain_array[machine.level_array[level - 1].of_pu[pu]];
    if (at.depth < to.depth) {
      if (RunQueue* there = sched::requeue(bubble, h->queues.of(to.id)))
        announce(h, there->domain, 1);
      return;
    }
    if (!sched::take_in_hand(bubble)) return;
    h->engine.note_burst(bubble, queue.domain);
    const uint32_t released = sched::burst(bubble, queue, std::exchange(bubble.in_front, false));
    if (released != 0) announce(h, queue.domain, released);
    return;
  }
  h->engine.handle(bubble, queue, pu);
}

bool has_work(const Worker* w, int32_t above) {
  Home* h = home_of(w);
  return h != nullptr && for_pus_of(h, w, [&](uint32_t pu) {
           return sched::look(h->queues.path(pu), above, sched::NoObserver{}).queue != nullptr;
         });
}

sched::Found search(Home* h, uint32_t pu, const sched::QueuePath& path, int32_t above) {
  return sched::find_work(
      path,
      [&](sched::NestedBubble& bubble, RunQueue& queue) {
        found_bubble(h, static_cast<BubbleRecord&>(bubble), queue, pu);
        return sched::Found{};
      },
      above);
}

/// Of what is most urgent, something on one of the higher levels, with another `number` another one.
[[gnu::noinline]] sched::Found search_farther(Home* h, const Worker* w, int32_t above,
                                              uint32_t number) {
  constexpr uint32_t kMostLevels = 8;  // of the path; those above come with the highest of these
  const uint32_t pus = count_pus_of(h, w);
  const uint32_t round = BOSK_LIKELY(pus == 1) ? number : number / pus;
  sched::Found found;
  for_pus_of(
      h, w,
      [&](uint32_t pu) {
        const sched::QueuePath path = h->queues.path(pu);
        const sched::Candidate best = sched::look(path, above, sched::NoObserver{});
        if (best.queue == nullptr || path.length == 1) return false;
        const uint32_t level = std::min(1 + round % kMostLevels, path.length - 1);
        found = search(h, pu, {path.queue + level, path.length - level},
                       sched::just_below(best.priority));
        return static_cast<bool>(found);
      },
      number);
  return found;
}

ExplicitThread* take(Worker* w, int32_t above) {
  // Of equals the nearest comes first: two threads that give way to each other, by themselves or at ticks, would
  // keep those farther away from running for ever, if no other worker came for them. So each time another PU of
  // the worker's is asked first, and every eighth time the higher levels.
  constexpr uint32_t kNearTurns = 8;
  Home* h = home_of(w);
  if (h == nullptr) return nullptr;
  sched::Found found;
  const uint32_t turn = above != sched::kNoEntity ? ++w->turns_given : 0;
  if (BOSK_UNLIKELY(turn % kNearTurns == kNearTurns - 1))
    found = search_farther(h, w, above, turn / kNearTurns);
  if (!found)
    for_pus_of(
        h, w,
        [&](uint32_t pu) {
          found = search(h, pu, h->queues.path(pu), above);
          return static_cast<bool>(found);
        },
        turn);
  if (!found) return nullptr;
  auto* thread = static_cast<ThreadRecord*>(found.entity);
  thread->domain = found.queue->domain;
  return thread;
}

ExplicitThread* take_started(Worker* w) {
  Home* h = home_of(w);
  if (h == nullptr) return nullptr;
  ThreadRecord* found = nullptr;
  for_pus_of(h, w, [&](uint32_t pu) {
    const sched::QueuePath path = h->queues.path(pu);
    for (uint32_t level = 0; level < path.length && found == nullptr; ++level) {
      RunQueue& queue = *path.queue[level];
      base::SpinGuard lock(queue.lock);
      for (sched::Entity* entity = queue.first; entity != nullptr; entity = entity->next) {
        if (entity->kind != sched::EntityKind::kThread) continue;
        auto* thread = static_cast<ThreadRecord*>(entity);
        if (thread->context == nullptr) continue;
        queue.remove_locked(thread);
        thread->domain = queue.domain;
        found = thread;
        break;
      }
    }
    return found != nullptr;
  });
  return found;
}

void put_back(Worker*, ExplicitThread* entity) {
  Home* h = home();
  auto* thread = static_cast<ThreadRecord*>(entity);
  base::SpinGuard guard(thread->guard);
  sched::requeue(*thread, h->queues.of(thread->domain), true);
}

void arm_all(const Home* h) {
  // A thread that is to come back into its bubble may run where nothing else would make a timer tick.
  const uint32_t workers = h->pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < workers; ++i)
    if (Worker* w = h->pool->worker(i)) sched::note_ready(w);
}

bool idle(Worker* w) {
  Home* h = home_of(w);
  if (h == nullptr || h->live.load(std::memory_order_relaxed) == 0) return false;
  const bool changed = for_pus_of(h, w, [&](uint32_t pu) { return h->engine.idle(pu); });
  if (changed) arm_all(h);
  return changed;
}

/// Some worker that plays a PU of the domain idles: it finds what is there.
bool is_attended(void* home, const topology::Domain& domain) {
  const auto* h = static_cast<const Home*>(home);
  const uint32_t workers = h->pool->worker_count.load(std::memory_order_acquire);
  const uint32_t stride = std::min(workers, h->machine->n_pus);
  for (uint32_t pu = domain.first_pu; pu <= domain.last_pu; ++pu)
    for (uint32_t at = pu % stride; at < workers; at += stride) {
      const Worker* w = h->pool->worker(at);
      if (w != nullptr && w->idle.load(std::memory_order_relaxed) != 0) return true;
    }
  return false;
}

sched::Rescue rescue(Worker* w) {
  // As long as who was called may take to come, and some ticks, if there were any.
  constexpr uint64_t kPatienceUs = 20'000;
  Home* h = home_of(w);
  const auto for_mine = [&](bool look) {
    return for_pus_of(h, w,
                      [&](uint32_t pu) { return h->engine.rescue(pu, is_attended, h, look); });
  };
  if (h == nullptr || h->live.load(std::memory_order_relaxed) == 0 || !for_mine(true)) {
    w->stranded_since = 0;
    return sched::Rescue::kNothing;
  }
  const uint64_t now = base::cycles();
  if (w->stranded_since == 0) w->stranded_since = now;
  if (now - w->stranded_since < kPatienceUs * base::cycles_per_microsecond())
    return sched::Rescue::kSoon;
  return for_mine(false) ? sched::Rescue::kDone : sched::Rescue::kSoon;
}

void ready(sched::Thread* context, Worker*, bool front) {
  Home* h = home();
  ThreadRecord& thread = record_of(context);
  uint32_t domain = thread.domain;
  if (thread.affinity != 0) {
    // The smallest around where it ran last that the program named.
    const uint32_t last = thread.figures.last_domain.load(std::memory_order_relaxed);
    if (last != sched::kUnknown32)
      domain = h->machine->level_array[thread.affinity - 1]
                   .of_pu[h->machine->domain_array[last].first_pu];
  }
  RunQueue* queue;
  {
    base::SpinGuard guard(thread.guard);
    const uint32_t decided = h->engine.take_wake_domain(thread);
    if (decided != topology::kNone && thread.affinity == 0) domain = decided;
    thread.domain = domain;
    take_wanted_priority(thread, thread.wanted_priority);
    queue = sched::requeue(thread, h->queues.of(domain), front);
  }
  // From here on it may run, end and be gone.
  if (queue != nullptr) announce(h, queue->domain, 1);
}

void comes(sched::Thread* context, const Worker* w) {
  const Home* h = home();
  ThreadRecord& thread = record_of(context);
  if (h != nullptr) {
    sched::note_running(thread, w->index,
                        h->machine->pu(sched::pu_of_worker(*h->machine, w->index)).id);
    if (BOSK_UNLIKELY(h->counts_caches)) begin_counting(thread, w);
  }
  thread.since = base::cycles();
}

void left(sched::Thread* context) {
  ThreadRecord& thread = record_of(context);
  count_time(thread);
  // A bubble that waited for this thread alone goes home now: it may only wake when others of it ran.
  if (RunQueue* queue = sched::note_blocked(thread)) announce(home(), queue->domain, 1);
}

bool is_recalled(const sched::Thread* context) {
  const ThreadRecord& thread = record_of(context);
  sched::NestedBubble* bubble = thread.bubble;
  if (bubble == nullptr) return false;
  base::SpinGuard guard(bubble->lock);
  return thread.whereabouts == sched::Whereabouts::kAwaited;
}

sched::TickVerdict tick(sched::Thread* context) {
  Home* h = home();
  ThreadRecord& thread = record_of(context);
  take_wanted_priority(thread, thread.wanted_priority);
  if (h == nullptr || thread.bubble == nullptr) return sched::TickVerdict::kNothing;
  // Time slices, redistribution phases, what policies ask for. Those that must come back are to tick, too.
  bool slice_runs = false;
  if (h->engine.tick_thread(thread, &slice_runs)) arm_all(h);
  if (is_recalled(context) || h->engine.is_told_elsewhere(thread))
    return sched::TickVerdict::kLeave;
  return slice_runs ? sched::TickVerdict::kSliceRuns : sched::TickVerdict::kNothing;
}

bool preemptible(const sched::Thread* context) { return record_of(context).preemptible; }

bool is_busy(const sched::Pool* pool) {
  const Home* h = home();
  return h != nullptr && h->pool == pool && h->live.load(std::memory_order_seq_cst) != 0;
}

}  // namespace

void recall(void* argument, sched::TreeEntity& running) {
  const auto* h = static_cast<const Home*>(argument);
  const uint32_t last = running.figures.last_worker.load(std::memory_order_relaxed);
  if (last >= h->pool->worker_count.load(std::memory_order_acquire)) return;
  Worker* w = h->pool->worker(last);
  if (w == nullptr) return;
  // The caller's own thread leaves when its tick is over; a second one would hit whoever comes then.
  if (w == worker_at(h))
    sched::note_ready(w);
  else
    sched::tick_soon(w);
}

constinit const sched::EntitySource the_source = {
    has_work, take, take_started, put_back,    idle,        rescue,  run,       ready,
    comes,    left, tick,         is_recalled, preemptible, is_busy, leave_home};

}  // namespace bosk::threads
