// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who is in which bubble: insertion, removal, moves. Guards and their order: records.h.
#include "sched/search.h"
#include "threads/api.h"
#include "threads/attached.h"
#include "threads/lending.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

/// The thread, whose guard is held and which is in no bubble, is the caller's to put somewhere: it is off
/// its queue, or the caller itself (*runs).
int take_up(sched::Thread* me, ThreadRecord& thread, bool* runs) {
  *runs = &thread == running(me);
  const Life life = thread.life.load(std::memory_order_relaxed);
  if (life == Life::kEnding || life == Life::kEnded) return BOSK_ESTATE;
  if (*runs || life == Life::kAsleep) return BOSK_OK;
  return take_off(thread) ? BOSK_OK : BOSK_EBUSY;
}

/// Out of the bubble that it is in: its guard is held. *from has still to be told by note_gone().
int take_out(sched::Thread* me, ThreadRecord& thread, BubbleRecord** from, bool* runs) {
  *runs = &thread == running(me);
  *from = bubble_of(thread);
  if (*from == nullptr) return BOSK_ESTATE;
  if (*runs) {
    leave_bubble(thread);
    return BOSK_OK;
  }
  return sched::remove(thread) ? BOSK_OK : BOSK_EBUSY;
}

void put_in(Home* h, BubbleRecord& bubble, ThreadRecord& thread, bool runs) {
  thread.life.store(Life::kAwake, std::memory_order_relaxed);
  put_into(h, bubble, thread, runs);
}

bool is_inside(const BubbleRecord* bubble, const BubbleRecord* of) {
  while (bubble != nullptr && bubble != of) bubble = bubble_of(*bubble);
  return bubble == of;
}

/// Closed and nobody's, out of the queue it may have been on. Its guard is held.
bool take_up_closed(BubbleRecord& bubble) {
  if (bubble.life.load(std::memory_order_relaxed) == Life::kAsleep) return true;
  if (!take_off(bubble)) return false;
  base::SpinGuard lock(bubble.lock);
  BOSK_ASSERT(bubble.state == sched::BubbleState::kClosed);
  return true;
}

}  // namespace

int insert_thread(bosk_bubble_t into, bosk_thread_t handle) {
  sched::Thread* me = omp::current_thread();
  int error = BOSK_OK;
  Home* h = home_for(me, &error);
  if (h == nullptr) return error;
  Inside inside(me);
  HeldThread thread(handle);
  if (!thread) return BOSK_ESTALE;
  if (thread->bubble != nullptr) return BOSK_ESTATE;
  HeldBubble bubble(into);
  if (!bubble) return BOSK_ESTALE;
  bool runs;
  if ((error = take_up(me, *thread, &runs)) != BOSK_OK) return error;
  put_in(h, *bubble, *thread, runs);
  return BOSK_OK;
}

int remove_thread(bosk_thread_t handle) {
  sched::Thread* me = omp::current_thread();
  Inside inside(me);
  BubbleRecord* from;
  {
    HeldThread thread(handle);
    if (!thread) return BOSK_ESTALE;
    bool runs;
    if (const int error = take_out(me, *thread, &from, &runs)) return error;
    if (!runs) thread->life.store(Life::kAsleep, std::memory_order_relaxed);
  }
  note_gone(from, true);
  return BOSK_OK;
}

int move_thread(bosk_bubble_t to, bosk_thread_t handle) {
  sched::Thread* me = omp::current_thread();
  int error = BOSK_OK;
  Home* h = home_for(me, &error);
  if (h == nullptr) return error;
  Inside inside(me);
  BubbleRecord* from;
  {
    HeldThread thread(handle);
    if (!thread) return BOSK_ESTALE;
    HeldBubble bubble(to);
    if (!bubble) return BOSK_ESTALE;
    bool runs;
    if ((error = take_out(me, *thread, &from, &runs)) != BOSK_OK) return error;
    put_in(h, *bubble, *thread, runs);
  }
  note_gone(from, true);
  return BOSK_OK;
}

/// Both guards are held, and the inner one is in no bubble and asleep, or closed and off its queue.
static void put_bubble_into(Home* h, BubbleRecord& outer, BubbleRecord& inner) {
  inner.life.store(Life::kAwake, std::memory_order_relaxed);
  outer.nests = true;
  if (inner.live.load(std::memory_order_relaxed) != 0) note_come(outer, false);
  if (const sched::RunQueue* queue = sched::insert(outer, inner))
    announce(h, queue->domain, 1);
  else
    announce_held(h, outer);
}

/// A bubble that no bubble was ever inserted into, and nobody has woken: see records.h. False: it is not such a
/// one, or somebody else has the outer one; nothing was done.
static bool insert_leaf(Home* h, bosk_bubble_t into, bosk_bubble_t handle) {
  if (into == handle) return false;
  HeldBubble inner(handle);
  if (!inner || inner->bubble != nullptr || inner->nests ||
      inner->life.load(std::memory_order_relaxed) != Life::kAsleep)
    return false;
  HeldBubble outer(into, true);
  if (!outer) return false;
  put_bubble_into(h, *outer, *inner);
  return true;
}

int insert_bubble(bosk_bubble_t into, bosk_bubble_t handle) {
  sched::Thread* me = omp::current_thread();
  int error = BOSK_OK;
  Home* h = home_for(me, &error);
  if (h == nullptr) return error;
  Inside inside(me);
  if (insert_leaf(h, into, handle)) return BOSK_OK;
  base::SpinGuard nesting(h->nesting);
  HeldBubble inner(handle);
  if (!inner) return BOSK_ESTALE;
  if (inner->bubble != nullptr) return BOSK_ESTATE;
  if (into == handle) return BOSK_ELOOP;
  HeldBubble outer(into);
  if (!outer) return BOSK_ESTALE;
  if (is_inside(outer.get(), inner.get())) return BOSK_ELOOP;
  if (!take_up_closed(*inner)) return BOSK_EBUSY;
  put_bubble_into(h, *outer, *inner);
  return BOSK_OK;
}

int remove_bubble(bosk_bubble_t handle) {
  sched::Thread* me = omp::current_thread();
  int error = BOSK_OK;
  Home* h = home_for(me, &error);
  if (h == nullptr) return error;
  Inside inside(me);
  BubbleRecord* outer;
  {
    base::SpinGuard nesting(h->nesting);
    HeldBubble inner(handle);
    if (!inner) return BOSK_ESTALE;
    outer = bubble_of(*inner);
    if (outer == nullptr) return BOSK_ESTATE;
    if (!sched::remove(*inner)) return BOSK_EBUSY;
    inner->life.store(Life::kAsleep, std::memory_order_relaxed);
    if (inner->live.load(std::memory_order_relaxed) == 0) outer = nullptr;
  }
  if (outer != nullptr) note_gone(outer, false);
  return BOSK_OK;
}

int wake_bubble(bosk_bubble_t handle, const char* level_name) {
  sched::Thread* me = omp::current_thread();
  int error = BOSK_OK;
  Home* h = home_for(me, &error);
  if (h == nullptr) return error;
  uint8_t level;
  if (!find_level(h, level_name, &level)) return BOSK_ENOENT;
  Inside inside(me);
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  if (bubble->life.load(std::memory_order_relaxed) != Life::kAsleep) return BOSK_ESTATE;
  bubble->life.store(Life::kAwake, std::memory_order_relaxed);
  h->engine.wake(*bubble, domain_here(h, level));
  return BOSK_OK;
}

/// Nothing is in it, it is in no bubble and on no queue.
static void give_back(Home* h, HeldBubble& bubble, uint32_t near) {
  h->engine.done(*bubble);
  BubbleRecord* record = bubble.get();
  record->life.store(Life::kFree, std::memory_order_relaxed);
  bubble.let_go();
  let_memory_go(*record);
  bubble_table.give(record, near);
}

/// It waits in a queue, nothing is in it, and it belongs to another: true, it is off that and in no bubble. Nobody looks
/// for a circle through what is empty (records.h). The guard is held.
static bool lies_empty(BubbleRecord& bubble) {
  if (bubble.bubble == nullptr) return false;
  {
    base::SpinGuard lock(bubble.lock);
    if (bubble.first_member != nullptr || bubble.state != sched::BubbleState::kClosed) return false;
  }
  return sched::remove(bubble);
}

int destroy_bubble(bosk_bubble_t handle) {
  sched::Thread* me = omp::current_thread();
  int error = BOSK_OK;
  Home* h = home_for(me, &error);
  if (h == nullptr) return error;
  {
    // As most are: all that was in it has ended where it burst. Nobody inserts anything while we have the guard.
    Inside inside(me);
    HeldBubble bubble(handle);
    if (!bubble) return BOSK_ESTALE;
    if (bubble->live.load(std::memory_order_acquire) == 0 &&
        (sched::retire(*bubble) || lies_empty(*bubble))) {
      give_back(h, bubble, me->worker->index);
      return BOSK_OK;
    }
  }
  for (;;) {
    Inside inside(me);
    base::SpinGuard nesting(h->nesting);
    HeldBubble bubble(handle);
    if (!bubble) return BOSK_ESTALE;
    bool open;
    {
      base::SpinGuard lock(bubble->lock);
      if (bubble->first_member != nullptr) return BOSK_EBUSY;
      open = bubble->state != sched::BubbleState::kClosed;
    }
    if (bubble->live.load(std::memory_order_acquire) != 0) return BOSK_EBUSY;
    // Open and empty it is nowhere; closed it can be found, and taken off.
    if (open) sched::close(*bubble);
    if (bubble->life.load(std::memory_order_relaxed) == Life::kAwake && !take_off(*bubble)) {
      base::cpu_pause();
      continue;  // a worker has just found it
    }
    give_back(h, bubble, me->worker->index);
    return BOSK_OK;
  }
}

}  // namespace bosk::threads
