// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Initial threads, and what the OpenMP layer tells the scheduler once.
#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "base/next_touch_setting.h"
#include "base/settings.h"
#include "context/thread_errno.h"
#include "memory/next_touch/next_touch.h"
#include "omp/allocated_blocks.h"
#include "omp/binding.h"
#include "omp/critical.h"
#include "omp/environment.h"
#include "omp/exception_globals.h"
#include "omp/guest_texts.h"
#include "omp/open_teams.h"
#include "omp/placing.h"
#include "omp/region.h"
#include "omp/report.h"
#include "omp/task_queue.h"
#include "omp/team.h"
#include "omp/worker_homes.h"
#include "sched/configuration.h"
#include "sched/cpu_clock.h"
#include "sched/homes.h"
#include "sched/scheduler.h"

namespace bosk::omp {
namespace {

/// The team of one that an initial thread is in outside of all regions, and its implicit task.
struct Initial {
  Team team;
  ImplicitTask task;
};

void begin_initial_thread(sched::Thread* me) {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignof(Initial), sizeof(Initial)) != 0)
    base::gomp_fatal("Out of memory allocating %zu bytes", sizeof(Initial));
  auto* initial = new (memory) Initial;
  initial->team.icvs = process_icvs().initial;
  initial->team.size = 1;
  initial->team.opener = me;
  initial->task.team = &initial->team;
  initial->task.icvs = &initial->team.icvs;
  initial->task.is_implicit = true;
  me->task = me->member = &initial->task;
  me->bubble = &initial->team;
  me->layer_data = initial;
  sched::begin_cpu_time(me);
}

void end_initial_thread(sched::Thread* me) {
  auto* initial = static_cast<Initial*>(me->layer_data);
  if (initial->task.owns_icvs) free(const_cast<DataIcvs*>(initial->task.icvs));
  if (initial->task.dependences != nullptr) free_dependences(&initial->task);
  workshare_destroy(&initial->team);
  free_loads(&initial->team);
  initial->~Initial();
  free(initial);
}

void end_worker(sched::Worker* w) {
  note_worker_end(w);
  keep_region_counts(w);
  while (sched::Bubble* bubble = w->free_bubbles) {
    w->free_bubbles = bubble->next_free;
    auto* team = static_cast<Team*>(bubble);
    workshare_destroy(team);
    free_loads(team);
    free_guest_texts(team);
    team->~Team();
    free(team);
  }
}

void reset_after_fork() {
  reset_critical_after_fork();
  allocated_blocks_forget_after_fork();
  placing_forget_after_fork();
  sched::stop_metering();
  report_forget_after_fork();
  const sched::Thread* me = context::self();
  Team* team = me != nullptr ? me->member->team : nullptr;
  task_queues_forget_after_fork(team);
  // relaxed: there is nobody else.
  open_teams_forget_after_fork(
      team != nullptr ? root_team(team)->contention.memory.load(std::memory_order_relaxed)
                      : nullptr);
}

void configure_scheduler(sched::Configuration* configuration) {
  const ProcessIcvs& icvs = process_icvs();
  const base::Settings& settings = base::settings();
  configuration->worker_limit = available_processors();
  if (settings.workers != 0) configuration->worker_limit = settings.workers;
  configuration->limit_follows_cpus = settings.workers == 0 && settings.policy.count == 0;
  if (configuration->worker_limit > sched::kMaxWorkers)
    configuration->worker_limit = sched::kMaxWorkers;
  if (icvs.stack_size != 0) configuration->stack_size = icvs.stack_size;
  configuration->preempt_period_us = settings.preempt_period_us;
  const uint64_t microsecond = base::cycles_per_microsecond();
  switch (icvs.wait_policy) {
    case WaitPolicy::kActive:
      configuration->spin_cycles = 1'000'000 * microsecond;
      break;
    case WaitPolicy::kPassive:
      configuration->spin_cycles = 5 * microsecond;
      configuration->wake_window_cycles = 100 * microsecond;
      break;
    case WaitPolicy::kUnset:
      configuration->spin_cycles = 500 * microsecond;
      break;
  }
  if (icvs.spin_count_given) {
    if (__builtin_mul_overflow(icvs.spin_count, base::cycles_per_poll(),
                               &configuration->spin_cycles))
      configuration->spin_cycles = UINT64_MAX;  // infinite
  }
  if (settings.loads.count != 0 || settings.relations.count != 0 || settings.team_size_by_load ||
      base::next_touch_regions())
    expect_loads(LoadsKnown::kEverywhere);
  if (settings.learn_load == base::LearnLoad::kOn) measure_loads_from_now_on();
  start_report();
  prepare_placing();
  configuration->thread_begin_hook = begin_initial_thread;
  configuration->thread_end_hook = end_initial_thread;
  configuration->worker_end_hook = end_worker;
  configuration->child_hook = reset_after_fork;
  configuration->help_hook = help;
  configuration->native_hook = serve_native;
  configuration->place_hook = bind_to_place;
  configuration->home_machine = machine_of_homes;
  memory::next_touch_goes_by(sched::kept_node_of_caller);
}

}  // namespace

sched::Thread* attach_thread() {
  const context::ErrnoKept kept;
  sched::set_configure_hook(configure_scheduler);
  return sched::attach_calling_thread();
}

DataIcvs* own_icvs(Task* task) {
  if (!task->owns_icvs) {
    auto* copy = static_cast<DataIcvs*>(malloc(sizeof(DataIcvs)));
    if (copy == nullptr) base::gomp_fatal("Out of memory allocating %zu bytes", sizeof(DataIcvs));
    *copy = *task->icvs;
    task->icvs = copy;
    task->owns_icvs = true;
  }
  return const_cast<DataIcvs*>(task->icvs);
}

}  // namespace bosk::omp
