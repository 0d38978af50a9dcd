// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/cpu_clock.h"

#include <time.h>

#include "sched/scheduler.h"
#include "sched/thread_clock.h"

namespace bosk::sched {
namespace {

constinit std::atomic<bool> expected{false};

uint64_t of_this_kernel_thread() {
  timespec t{};
  base::raw_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, base::address_of(&t));
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

/// What the kernel says is its own, so far.
void begin_on(Thread* me, int tid) {
  me->cpu_time = {0, 0, tid};
  me->note(kAsksCpuTime, true);
}

}  // namespace

// relaxed, both: who asks and who makes initial threads of it later is the same thread, or does not care.
void expect_questions_for_cpu_time() {
  if (!expected.load(std::memory_order_relaxed)) expected.store(true, std::memory_order_relaxed);
}

void begin_cpu_time(Thread* me) {
  if (expected.load(std::memory_order_relaxed)) begin_on(me, kernel_of(me)->tid);
}

bool ask_cpu_time(Thread* me, uint64_t* ns) {
  context::preempt_disable();
  const int tid = kernel_of(me)->tid;
  const bool is_there = base::thread_id() == tid;
  if (is_there) {
    if (!asks_cpu_time(me)) begin_on(me, tid);
    *ns = me->cpu_time.base + of_this_kernel_thread();
  }
  context::preempt_enable();
  return is_there;
}

uint64_t begin_excluding(Thread* me) {
  context::preempt_disable();
  const uint64_t now = me->cpu_time.base + of_this_kernel_thread();
  context::preempt_enable();
  return now;
}

void exclude(Thread* me, uint64_t since) {
  context::preempt_disable();
  me->cpu_time.base = since - of_this_kernel_thread();
  context::preempt_enable();
}

void forget_cpu_time(Thread* carrier) { carrier->note(kAsksCpuTime, false); }

static void leave_at(Thread* thread, uint64_t now) {
  CpuTime& its = thread->cpu_time;
  its.value = its.base + now;
  its.tid = 0;
}

/// A native thread whose role was lent has been on its own kernel thread all the time.
static bool is_to_resume(const Thread* thread) {
  return asks_cpu_time(thread) && thread->cpu_time.tid == 0;
}

static void resume_at(Thread* thread, int tid, uint64_t now) {
  CpuTime& its = thread->cpu_time;
  its.base = its.value - now;
  its.tid = tid;
}

void leave_cpu_time(Thread* thread) {
  if (asks_cpu_time(thread)) leave_at(thread, of_this_kernel_thread());
}

void resume_cpu_time(Thread* thread, const context::Identity* kernel) {
  if (is_to_resume(thread)) resume_at(thread, kernel->tid, thread_clock_now(kernel->tid));
}

void switch_cpu_time(const Worker* w, Thread* from, Thread* to) {
  const context::Identity* kernel = w->kernel.load(std::memory_order_relaxed);
  if (to->pinned != nullptr && to->own != kernel) {
    leave_cpu_time(from);
    resume_cpu_time(to, to->own);
    return;
  }
  const uint64_t now = of_this_kernel_thread();
  if (asks_cpu_time(from)) leave_at(from, now);
  if (is_to_resume(to)) resume_at(to, kernel->tid, now);
}

void cpu_time_forget_after_fork() {
  Thread* me = context::self();
  if (me == nullptr || !asks_cpu_time(me)) return;
  me->note(kAsksCpuTime, false);
  me->cpu_time = {};
}

}  // namespace bosk::sched
