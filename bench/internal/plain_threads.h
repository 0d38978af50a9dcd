// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that belong to no bubble: a stack and an identity from the factory, a place on the worker's
// run queue, and a creator that waits for them. What sched/carriers.cpp does for carriers, without
// the scheduler's loop on top.
#pragma once

#include "core.h"

namespace bench {

using Join = sched::JoinCount<base::StdAtomics>;

// One that is alive. The creator's unit of `pending` counts until it has left its stack, as in
// sched::join_bubble().
struct PlainThread {
  void (*body)() = nullptr;
  sched::Thread* creator = nullptr;
  Join pending;
};

struct PlainPool {
  sched::Thread* free = nullptr;
  std::atomic<uint32_t> made{0};
  context::Identity* made_identity = nullptr;
  context::DonorRequest request;
};
inline PlainPool plain_pool;

inline void plain_left(void* argument, sched::Worker* w) {
  auto* thread = static_cast<sched::Thread*>(argument);
  auto* plain = static_cast<PlainThread*>(thread->layer_data);
  thread->link = plain_pool.free;
  plain_pool.free = thread;
  if (plain->pending.finish(1)) sched::make_ready(plain->creator, w, true);
}

inline void creator_left(void* argument, sched::Worker* w) {
  auto* plain = static_cast<PlainThread*>(argument);
  if (plain->pending.suspend(1)) sched::make_ready(plain->creator, w, true);
}

inline void plain_main(void* identity) {
  auto* me = static_cast<sched::Thread*>(static_cast<context::Identity*>(identity)->records);
  sched::after_switch(me);
  for (;;) {
    sched::leave(me);
    static_cast<PlainThread*>(me->layer_data)->body();
    sched::Worker* w = sched::enter(me);
    sched::Thread* next = sched::next_thread(w);
    w->post = {plain_left, me};
    sched::switch_to(w, me, next);
  }
}

inline void donor_made(context::DonorRequest*, context::Identity* identity) {
  plain_pool.made_identity = identity;
  plain_pool.made.store(1, std::memory_order_release);
  base::futex_wake(&plain_pool.made, 1);
}

// Called with preemption on: the factory may need a lock of libc.
inline void make_plain_thread() {
  context::DonorRequest& request = plain_pool.request;
  request.stack_size = sched::configuration().stack_size;
  request.entry = plain_main;
  request.finished = donor_made;
  plain_pool.made.store(0, std::memory_order_relaxed);
  if (!context::request_donor(&request)) bench_fail("no factory");
  while (plain_pool.made.load(std::memory_order_acquire) == 0)
    base::futex_wait(&plain_pool.made, 0);
  context::Identity* identity = plain_pool.made_identity;
  if (identity == nullptr) bench_fail("no thread could be made");
  auto* thread = new (identity->records) sched::Thread;
  thread->sp = request.initial_sp;
  thread->own = identity;
  thread->run_as(identity);
  identity->block->self = thread;
  sched::set_serve_floor(thread, identity->stack_low, identity->stack_high);
  thread->link = plain_pool.free;
  plain_pool.free = thread;
}

// Creates a thread, lets it run, and waits until it has left its stack and can be created again.
inline void run_plain_thread(sched::Thread* me, void (*body)()) {
  sched::Worker* w = sched::enter(me);
  PlainThread plain;
  plain.body = body;
  plain.creator = me;
  plain.pending.open(2);
  sched::Thread* thread = plain_pool.free;
  plain_pool.free = thread->link;
  thread->pool = w->pool;
  thread->bubble = nullptr;
  thread->layer_data = &plain;
  sched::make_ready(thread, w, false);
  sched::arm_timer(w);
  if (!plain.pending.try_last(1)) sched::block(me, {creator_left, &plain});
  sched::leave(me);
}

}  // namespace bench
