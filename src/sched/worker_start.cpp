// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/worker_start.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sched/configuration.h"
#include "sched/homes.h"
#include "sched/kernel_threads.h"
#include "sched/pool_list.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

struct WorkerStart {
  Worker* worker;
  context::DonorRequest request;
  std::atomic<uint32_t> state{0};  ///< futex: 1 runs, 2 refused
};

/// Where the pool is multiplexed, or is not yet decided about.
int timer_for_worker(const Pool* pool, context::Identity* kernel) {
  if (configuration().preempt_period_us == 0 || on_kernel_threads.load(std::memory_order_relaxed) ||
      pool->threading.load(std::memory_order_relaxed) == Threading::kKernelThreads)
    return 0;
  return make_timer(kernel);
}

bool worker_main(void* argument) {
  auto* start = static_cast<WorkerStart*>(argument);
  Worker* w = start->worker;
  Thread* me = w->native;
  context::Identity* identity = me->own;
  context::adopt_calling_thread(identity);
  me->run_as(identity);
  identity->block->self = me;
  find_stack(me);
  identity->block->preempt_off = 1;
  take_cpus(w->pool->cpus);
  // Before its first ghost, so that nothing can run out later.
  if (const int error = timer_for_worker(w->pool, identity); error != 0) {
    context::disown_calling_thread(identity);
    start->request.error = error;
    start->state.store(2, std::memory_order_release);
    base::futex_wake(&start->state, 1);
    return false;
  }
  base::CpuMask apart;
  if (!begin_at_seat(w)) apart = start_apart(w->pool);
  start->state.store(1, std::memory_order_release);
  base::futex_wake(&start->state, 1);
  // Where others are at work that takes one of their time slices, which the creator need not wait for.
  go_apart(w, apart);
  native_loop(me);
  // The pool ends. A stand-in may still play the role (the last member of a flat team may return from a
  // system call straight to its end): home first, and no tick lends it again.
  enter(me);
  // What this worker holds that others can use goes back.
  Pool* pool = w->pool;
  if (w->inner != nullptr) end_pool(w->inner);
  while (Thread* carrier = w->carriers) {
    w->carriers = carrier->link;
    return_carrier(carrier);
  }
  delete_timer(identity);
  context::disown_calling_thread(identity);
  live_workers.fetch_sub(1, std::memory_order_relaxed);
  const bool joined = w->joined;
  release_pool(pool);
  context::preempt_enable();  // destructors of the program's may open regions
  return joined;
}

void kernel_thread_made(context::DonorRequest* request, context::Identity*) {
  auto* start = static_cast<WorkerStart*>(request->argument);
  start->state.store(2, std::memory_order_release);
  base::futex_wake(&start->state, 1);
}

struct StackBounds {
  char* low = nullptr;
  char* high = nullptr;
};

/// libc would read all of /proc/self/maps, milliseconds in a process of two hundred libraries. The kernel puts the program's path at the
/// very top, and nothing within this distance of it. Null: it is not so here.
StackBounds stack_of_initial_thread() {
  constexpr uintptr_t kKeptFree = uintptr_t{128} << 20;
  const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  rlimit limit{};
  if (path == nullptr || getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > kKeptFree)
    return {};
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t end = reinterpret_cast<uintptr_t>(path) + strlen(path) + 1 + sizeof(void*);
  const uintptr_t high = (end + page - 1) / page * page;
  const uintptr_t low = high - limit.rlim_cur / page * page;
  if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - low >= high - low) return {};
  return {reinterpret_cast<char*>(low), reinterpret_cast<char*>(high)};
}

StackBounds stack_by_libc() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
  }
  return {static_cast<char*>(low), static_cast<char*>(low) + size};
}

}  // namespace

void find_stack(Thread* me) {
  // The initial thread's, which the kernel makes longer as it is used.
  const bool grows = me->thread_kind == ThreadKind::kInitial && me->own->tid == getpid();
  StackBounds stack = grows ? stack_of_initial_thread() : StackBounds{};
  if (stack.high == nullptr) stack = stack_by_libc();
  me->own->stack_low = stack.low;
  me->own->stack_high = stack.high;
  set_serve_floor(me, me->own->stack_low, me->own->stack_high, grows);
}

Worker* make_worker(Pool* pool, uint32_t index) {
  auto* w = make_record<Worker>();
  w->index = index;
  w->pool = pool;
  w->ready.domain = index;
  return w;
}

int start_worker(Pool* pool, uint32_t index) {
  Worker* w = make_worker(pool, index);
  auto* native = make_record<Thread>();
  native->own = native->identity = make_record<context::Identity>();
  native->thread_kind = ThreadKind::kNative;
  native->pool = pool;
  native->pinned = native->worker = native->last_worker = w;
  w->native = native;
  w->kernel.store(native->own, std::memory_order_relaxed);
  w->current = native;
  // Like a pthread that the program made: the stack size that was asked for.
  auto* start = make_record<WorkerStart>();
  start->worker = w;
  start->request.stack_size = configuration().stack_size;
  start->request.thread_main = worker_main;
  start->request.argument = start;
  start->request.mask = pool->base_mask;
  start->request.finished = kernel_thread_made;
  int error = 0;
  note_creators_cpu(pool);
  if (context::request_donor(&start->request)) {
    wait_for_start(start->state, pool->worker_limit > 1);
    if (start->state.load(std::memory_order_relaxed) == 2) error = start->request.error;
  } else {
    error = start->request.error;
  }
  free(start);
  if (error != 0) {
    free(native->own);
    free(native);
    free(w);
    return error;
  }
  live_workers.fetch_add(1, std::memory_order_relaxed);
  pool->workers[index].store(w, std::memory_order_release);
  pool->worker_count.store(index + 1, std::memory_order_release);
  if (index >= pool->worker_limit) base::StdAtomics::use_fences();
  return 0;
}

}  // namespace bosk::sched
