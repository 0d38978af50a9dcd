// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs explicit threads, and counts who is in which bubble.
#include "threads/run.h"

#include <pthread.h>
#include <setjmp.h>

#include "context/switch.h"
#include "omp/root_team.h"
#include "sched/address_wait.h"
#include "threads/attached.h"
#include "threads/cache_figures.h"
#include "threads/home.h"
#include "threads/sync/keys.h"

namespace bosk::threads {
namespace {

/// On the stack of the carrier, or of the thread that runs another while it joins it.
struct Frame {
  jmp_buf out;
  omp::RootTeam root;
  void* result = nullptr;
};

Frame* frame_of(sched::Thread* me) { return static_cast<Frame*>(me->layer_data); }

void* call(sched::Thread* me, ThreadRecord& thread, Frame& frame) {
  // What is changed after this and read after a jump is in the frame.
  if (_setjmp(frame.out) == 0) {
    me->layer_data = &frame;
    frame.result = thread.function(thread.data);
  }
  return frame.result;
}

/// Preemption is off.
void finish(ThreadRecord& thread, void* result) {
  Home* h = home();
  const uint32_t near = context::self()->worker->index;
  thread.guard.lock();
  h->engine.done(thread);
  BubbleRecord* bubble = leave_bubble(thread);
  thread.context = nullptr;
  thread.result = result;
  thread.life.store(Life::kEnding, std::memory_order_relaxed);
  thread.guard.unlock();
  // Before anybody can learn of the end: who joins the thread and looks at its bubble finds it gone.
  note_gone(bubble, true);
  count_ended(h);
  std::atomic<uint32_t>& ended = thread.ended;
  // Under the guard, which whoever gives the record back has held after that.
  thread.guard.lock();
  const bool detached = thread.detached;
  thread.life.store(detached ? Life::kFree : Life::kEnded, std::memory_order_relaxed);
  if (!detached) ended.store(1, std::memory_order_release);
  thread.guard.unlock();
  if (detached) {
    let_memory_go(thread);
    thread_table.give(&thread, near);
    return;
  }
  // By address only: the record may be another thread's by now.
  sched::wake(ended, UINT32_MAX);
}

}  // namespace

void count_time(ThreadRecord& thread) {
  const Home* h = home();
  if (h == nullptr) return;
  const uint64_t cycles = base::cycles() - thread.since;
  const auto ns =
      static_cast<uint64_t>((static_cast<unsigned __int128>(cycles) * h->ns_per_cycle) >> 32);
  const uint64_t before = thread.figures.cpu_ns.load(std::memory_order_relaxed);
  thread.figures.cpu_ns.store((before == sched::kUnknown64 ? 0 : before) + ns,
                              std::memory_order_relaxed);
  if (BOSK_UNLIKELY(h->counts_caches)) {
    const sched::Thread* me = context::self();
    count_caches(thread, me != nullptr ? me->worker : nullptr);
  }
}

BubbleRecord* leave_bubble(ThreadRecord& thread) {
  BubbleRecord* bubble = bubble_of(thread);
  if (bubble == nullptr) return nullptr;
  if (sched::RunQueue* queue = sched::leave(thread)) announce(home(), queue->domain, 1);
  return bubble;
}

void note_come(BubbleRecord& bubble, bool is_thread) {
  if (is_thread) ++bubble.threads;
  const uint32_t live = bubble.live.load(std::memory_order_relaxed);
  bubble.live.store(live + 1, std::memory_order_relaxed);
  if (live != 0) return;
  if (BubbleRecord* outer = bubble_of(bubble)) {
    base::SpinGuard guard(outer->guard);
    note_come(*outer, false);
  }
}

void note_gone(BubbleRecord* bubble, bool is_thread) {
  while (bubble != nullptr) {
    // Counted in `live` until the end of this, it cannot be destroyed. Waiters are woken without the
    // guard, because theirs are taken then; by address, because it may be destroyed by them.
    bool opens = false;
    bubble->guard.lock();
    if (is_thread) {
      --bubble->threads;
      opens = bubble->arrived != 0 && bubble->arrived >= bubble->threads;
      if (opens) {
        bubble->arrived = 0;
        bubble->epoch.fetch_add(1, std::memory_order_release);
      }
    }
    std::atomic<uint32_t>& live = bubble->live;
    std::atomic<uint32_t>& epoch = bubble->epoch;
    // Read before the count: after it the bubble may be moved, and is counted outside as long as we go on.
    BubbleRecord* outer = bubble_of(*bubble);
    const bool joined = bubble->joined;
    const uint32_t left = live.load(std::memory_order_relaxed) - 1;
    // release: who sees that all have ended, without the guard, comes after what they did.
    live.store(left, std::memory_order_release);
    bubble->guard.unlock();
    if (opens) sched::wake(epoch, UINT32_MAX);
    if (left != 0) return;
    if (joined) sched::wake(live, UINT32_MAX);
    bubble = outer;
    is_thread = false;
  }
}

void run(sched::Thread* me, sched::ExplicitThread* entity) {
  auto& thread = *static_cast<ThreadRecord*>(entity);
  const Home* h = home();
  const uint32_t forks = times_forked();
  // Not null where a thread runs another on its own stack.
  ThreadRecord* const outer = running(me);
  void* const outer_frame = me->layer_data;
  const omp::SavedTeam saved = omp::save_team(me);
  if (outer != nullptr) {
    count_time(*outer);
    // It waits for this one, whatever that waits for in turn: a closing bubble must not wait for it.
    if (sched::RunQueue* queue = sched::note_blocked(*outer)) announce(home(), queue->domain, 1);
  }
  thread.context = me;
  me->entity = &thread;
  me->note(sched::kIsEntity, true);
  the_source.comes(me, me->worker);
  sched::leave(me);
  KeyValues* const outer_values = exchange_key_values(nullptr);
  Frame frame;
  omp::enter_root_team(me, &frame.root);
  if (!context::same_float_control(context::float_control(), h->floats))
    context::set_float_control(h->floats);
  void* const result = call(me, thread, frame);
  // In a forked child this is its only thread, and ends as one.
  if (BOSK_UNLIKELY(forks != times_forked())) pthread_exit(result);
  run_key_destructors();
  exchange_key_values(outer_values);
  omp::leave_root_team(me, &frame.root);
  sched::enter(me);
  count_time(thread);
  me->layer_data = outer_frame;
  me->entity = outer;
  me->note(sched::kIsEntity, outer != nullptr);
  if (outer != nullptr) {
    omp::restore_team(me, saved);
    the_source.comes(me, me->worker);
  }
  finish(thread, result);
}

bool exit_running(sched::Thread* me, void* result) {
  Frame* frame = frame_of(me);
  if (me->bubble != frame->root.team) return false;
  frame->result = result;
  _longjmp(frame->out, 1);
}

}  // namespace bosk::threads
