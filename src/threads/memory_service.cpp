// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The thread that looks at the memory of bubbles when somebody asks who may not do it himself.
//
// Who owns what: names are in a ring with a lock (the thread itself plays no worker, so it cannot be preempted). "Look at all"
// is a word of bits, so that it can be said with preemption on. `news` grows with each request, after it (release): the thread reads
// it before it looks (acquire), and sleeps only while it is the same.
#include <string.h>

#include <algorithm>

#include "base/memory_watch_setting.h"
#include "base/message.h"
#include "memory/manager.h"
#include "omp/open_teams.h"
#include "omp/settle_memory.h"
#include "sched/clock.h"
#include "sched/homes.h"
#include "sched/service_thread.h"
#include "sched/services.h"
#include "threads/api.h"
#include "threads/book_upkeep.h"
#include "threads/memory_costs.h"
#include "threads/memory_mover.h"
#include "threads/memory_requests.h"
#include "threads/remote_accesses.h"

namespace bosk::threads {
namespace {

using policies::MemoryTrigger;

/// Between two looks at all: a program attaches its arrays in a row.
constexpr uint64_t kLeastPauseNs = 1'000'000;
/// PUs may be idle for ever, and nothing be better elsewhere.
constexpr uint64_t kMostPauseNs = 256'000'000;

struct Service {
  MemoryRequests requests;
  std::atomic<uint32_t> all{0};   ///< bits of triggers
  std::atomic<uint32_t> news{0};  ///< futex
  std::atomic<bool> refused{false};
  std::atomic<bool> teams_refused{false};
  std::atomic<uint64_t> books_told{0};  ///< of omp::books_listed()
  std::atomic<int> tid{0};  ///< written by the thread itself, and looked at for its own number
  sched::ServiceThread thread;
};
constinit Service the_service;

constexpr uint32_t bit(MemoryTrigger trigger) { return 1u << static_cast<unsigned>(trigger); }

void tell() {
  the_service.news.fetch_add(1, std::memory_order_release);
  base::futex_wake(&the_service.news, 1);
}

uint64_t name_of(const sched::NestedBubble& bubble) {
  return BubbleTable::handle_of(static_cast<const BubbleRecord*>(&bubble));
}

void ask(void*, uint64_t name, MemoryTrigger trigger) {
  if (!the_service.thread.runs()) return;
  if (name == 0) {
    // release: with what was attached.
    if ((the_service.all.fetch_or(bit(trigger), std::memory_order_release) & bit(trigger)) == 0)
      tell();
    return;
  }
  if (the_service.requests.put(name, trigger)) tell();
}

void decide(uint64_t name, MemoryTrigger trigger) {
  decide_about_memory(nullptr, reinterpret_cast<bosk_bubble_t>(name), trigger);
}

void look_at_all(MemoryTrigger trigger) {
  bubble_table.for_each([&](uintptr_t handle) {
    // Nobody has handed over this handle. The look-up sees that the one before has ended; acquire: what it was made with.
    const BubbleRecord* record = bubble_table.find(handle);
    if (record != nullptr && record->life.load(std::memory_order_acquire) != Life::kFree)
      decide(handle, trigger);
  });
}

/// When it was looked at all bubbles last, or at one because somebody is idle, and how long ago that should at least be for who is
/// only idle. He may take back at once what goes where its memory is, and threads that wait for each other are idle all the
/// time: less and less often, until something is attached.
struct Pace {
  uint64_t looked_at = 0;
  uint64_t pause = kLeastPauseNs;

  uint64_t next(uint32_t asked) const {
    return looked_at + ((asked & bit(MemoryTrigger::kAttached)) != 0 ? kLeastPauseNs : pause);
  }
  void looked(bool changed) {
    pause = changed ? kLeastPauseNs : std::min(2 * pause, kMostPauseNs);
    looked_at = sched::clock_now();
  }
};

/// True: there was nothing to do, but there will be at `*next`; kForever: when somebody asks.
bool serve_some(Pace* pace, uint64_t* next) {
  bool idle = true;
  for (MemoryRequest request; the_service.requests.take(&request);) {
    const bool only_idle = request.trigger == MemoryTrigger::kIdle;
    if (only_idle && sched::clock_now() < pace->next(bit(MemoryTrigger::kIdle))) {
      // With all others, when it is time.
      the_service.all.fetch_or(bit(MemoryTrigger::kIdle), std::memory_order_relaxed);
      continue;
    }
    decide(request.name, request.trigger);
    if (only_idle) pace->looked(false);
    idle = false;
  }
  uint32_t all = the_service.all.load(std::memory_order_relaxed);
  *next = sched::kForever;
  if (all == 0) return idle;
  *next = pace->next(all);
  if (sched::clock_now() < *next) return idle;
  // acquire: with what was attached.
  all = the_service.all.exchange(0, std::memory_order_acquire);
  const bool changed = (all & bit(MemoryTrigger::kAttached)) != 0;
  const bool remote = (all & bit(MemoryTrigger::kRemote)) != 0;
  look_at_all(changed  ? MemoryTrigger::kAttached
              : remote ? MemoryTrigger::kRemote
                       : MemoryTrigger::kIdle);
  pace->looked(changed);
  return false;
}

void serve(sched::ServiceThread& service) {
  Pace pace;
  the_service.tid.store(base::thread_id(), std::memory_order_relaxed);
  while (!service.is_stopping()) {
    const uint32_t seen = the_service.news.load(std::memory_order_acquire);
    uint64_t next;
    if (!serve_some(&pace, &next)) continue;
    next = std::min({next, watch_remote_accesses(), keep_books()});
    timespec left;
    if (next != sched::kForever && !sched::time_left(next, &left)) continue;
    if (!service.is_stopping())
      base::futex_wait(&the_service.news, seen, next != sched::kForever ? &left : nullptr);
  }
  end_remote_accesses();
  forget_books();
}

void stop_service() { the_service.thread.stop(tell); }

void forget_after_fork() {
  the_service.thread.forget_after_fork();
  forget_deciding_after_fork();
  the_service.requests.forget();
  the_service.tid.store(0, std::memory_order_relaxed);
  the_service.all.store(0, std::memory_order_relaxed);
  forget_remote_accesses();
  forget_books();
}

constexpr sched::OtherService kThisService{stop_service, forget_after_fork};

}  // namespace

bool on_memory_service() {
  return the_service.tid.load(std::memory_order_relaxed) == base::thread_id();
}

policies::MemoryHook memory_hook(Home* h) { return {name_of, ask, h}; }

void ensure_memory_mover(sched::Thread* me, Home* h) {
  // Threads go to their memory, or that to them, by the PUs of the workers.
  if (h->engine.minds_memory() && !h->pool->keeps_nodes.load(std::memory_order_relaxed))
    sched::keep_nodes(h->pool);
  const bool moves = h->engine.moves_data();
  if ((!moves && !books_are_kept()) || the_service.thread.runs() ||
      the_service.refused.load(std::memory_order_relaxed))
    return;
  // Read while there is a thread that may do so.
  int error = moves && memory_costs() == nullptr ? ENOMEM : 0;
  if (error == 0) {
    sched::other_service.store(&kThisService, std::memory_order_release);
    error = the_service.thread.ensure(me, nullptr, serve);
  }
  if (error == 0) return;
  if (moves) h->engine.set_memory_moves(base::MemoryMoves::kThreads);
  if (!the_service.refused.exchange(true, std::memory_order_relaxed) && moves)
    base::say("memory does not follow threads: no thread for that (%s); threads go to their memory",
              strerror(error));
}

void ensure_teams_are_watched(sched::Thread* me) {
  const memory::AreaTable* areas = memory::areas();
  if (areas == nullptr || areas->nodes().count() == 1 || !omp::settles_memory() ||
      base::memory_watch() == base::MemoryWatch::kOff)
    return;
  if (the_service.teams_refused.load(std::memory_order_relaxed)) return;
  // It is decided by where the workers have their seats.
  if (!me->pool->keeps_nodes.load(std::memory_order_relaxed)) sched::keep_nodes(me->pool);
  // release: regions that open, for the thread may have ended in a pause.
  omp::open_team_hook.store(ensure_teams_are_watched, std::memory_order_release);
  int error = 0;
  if (!the_service.thread.runs()) {
    // Read while there is a thread that may do so.
    error = memory_costs() == nullptr ? ENOMEM : 0;
    sched::other_service.store(&kThisService, std::memory_order_release);
    if (error == 0) error = the_service.thread.ensure(me, nullptr, serve);
  }
  if (error != 0) {
    if (!the_service.teams_refused.exchange(true, std::memory_order_relaxed))
      base::say("where memory of teams is nobody looks at: no thread for that (%s)",
                strerror(error));
    return;
  }
  // While there are books it wakes by itself.
  const uint64_t books = omp::books_listed();
  if (the_service.books_told.load(std::memory_order_relaxed) != books &&
      the_service.books_told.exchange(books, std::memory_order_relaxed) != books)
    tell();
}

}  // namespace bosk::threads
