// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where queued tasks are: members' queues, the team's shared tasks, and how they are found.
#include "omp/task_queue.h"

#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "omp/exception_globals.h"
#include "omp/explicit_task.h"
#include "omp/placing.h"
#include "omp/process_queues.h"
#include "omp/queue_list.h"
#include "omp/task_queue_guard.h"
#include "omp/taskgroup.h"
#include "omp/victims.h"
#include "sched/address_wait.h"
#include "sched/doing.h"
#include "sched/scheduler.h"
#include "sched/task_calls.h"

namespace bosk::omp {

namespace {

using base::StdAtomics;

// ---- the queues of a team

/// So many queued tasks of one member, and it runs new ones itself: enough to keep thieves busy
/// while it runs one, few enough to stay in a cache.
uint32_t queue_limit(const Team* team) {
  const uint32_t per_member = 64 * (team->size < 64 ? team->size : 64);
  return per_member < 512 ? 512 : per_member;
}

/// Puts the queue where thieves find it. False: `spare` must be a larger list first.
bool register_queue(TaskQueueState& state, MemberQueue* queue, QueueList** spare) {
  QuietGuard guard(state.lock);
  QueueList* list = state.queues.load(std::memory_order_relaxed);
  uint32_t count = list == nullptr ? 0 : list->count.load(std::memory_order_relaxed);
  if (list == nullptr || count == list->capacity) {
    if (*spare == nullptr || (*spare)->outgrown != list) return false;
    list = *spare;
    *spare = nullptr;
    // release: thieves that see the list see what is in it.
    state.queues.store(list, std::memory_order_release);
  }
  queue->place = count;
  list->at(count).queue.store(queue, std::memory_order_relaxed);
  list->count.store(count + 1, std::memory_order_release);
  return true;
}

MemberQueue* take_team_queue(TaskQueueState& state) {
  QuietGuard guard(state.lock);
  MemberQueue* queue = state.free_queues;
  if (queue != nullptr) state.free_queues = queue->next_free;
  return queue;
}

// ---- stealing

constexpr int64_t kMostAtOnce = 32;

/// With the first task come more of the same parent, up to half of what is there: a line of the
/// victim's queue then crosses once for many tasks. Only into an empty queue and only brothers, so
/// that whoever waits for them finds them at the top of this queue, one after the other; the oldest on top,
/// because a task that waits for others mostly waits for earlier ones.
void steal_brothers(MemberQueue* victim, MemberQueue* queue, ExplicitTask* first) {
  const uintptr_t parent = first->origin.load(std::memory_order_relaxed);
  int64_t more = victim->deque.size_hint() / 2;
  if (more > kMostAtOnce) more = kMostAtOnce;
  ExplicitTask* brothers[kMostAtOnce];
  int64_t count = 0;
  while (count < more) {
    ExplicitTask* task = victim->deque.steal_if([parent](const ExplicitTask* candidate) {
      return candidate->origin.load(std::memory_order_relaxed) == parent;
    });
    if (task == nullptr) break;
    brothers[count++] = task;
  }
  while (count-- > 0)
    if (!queue->deque.push(brothers[count])) push_shared(first->team, brothers[count]);
  // Between the two queues they were in none: somebody may have found all of them empty and said
  // so.
  tell_team(first->team);
}

ExplicitTask* steal_task(sched::Thread* me, Team* team, MemberQueue* queue,
                         const Eligible& eligible) {
  QueueList* list = team->tasks.queues.load(std::memory_order_acquire);
  if (list == nullptr) return nullptr;
  const uint32_t count = list->count.load(std::memory_order_acquire);
  uint64_t begin = base::cycles();
  if (queue == nullptr && known_distances().machine != nullptr && count > 1) {
    // It is about to need one, and has no place of its own before.
    if (queued_tasks(team, 1) == 0) return nullptr;
    queue = queue_of(me->member);
    list = team->tasks.queues.load(std::memory_order_acquire);
  }
  ThiefPlace place;
  if (queue != nullptr) place = place_of_thief(list, queue, begin);
  const auto pu_of_owner = [list, machine = place.machine](uint32_t i) {
    return machine->pu_of_os(list->at(i).cpu.load(std::memory_order_relaxed));
  };
  Victims victims(count, queue != nullptr ? queue->last_victim : 0, place.pu);
  for (uint32_t index; (index = victims.next(pu_of_owner)) != Victims::kEnd;) {
    MemberQueue* victim = list->queue(index);
    if (victim == queue) continue;
    ExplicitTask* task = victim->deque.steal_if(eligible);
    if (task == nullptr) {
      // Something is to be had from somebody else: what it takes to find out is not its price.
      begin = base::cycles();
      continue;
    }
    if (queue == nullptr) queue = queue_of(me->member);
    const uint64_t price = base::cycles() - begin;
    if (eligible.ancestor == nullptr && victim->deque.size_hint() > 1 &&
        queue->deque.size_hint() == 0)
      steal_brothers(victim, queue, task);
    queue->last_victim = index;
    queue->pace.stole(price, base::cycles(), queue->memory.foreign_tasks());
    return task;
  }
  return nullptr;
}

}  // namespace

MemberQueue* acquire_queue(ImplicitTask* member) {
  Team* team = member->team;
  TaskQueueState& state = team->tasks;
  find_exception_globals();
  MemberQueue* queue = take_team_queue(state);
  if (queue == nullptr) {
    queue = take_queue_of_process();
    queue->team = team;
    queue->last_victim = 0;
    QueueList* spare = nullptr;
    while (!register_queue(state, queue, &spare)) {
      free(spare);
      spare = make_list(state.queues.load(std::memory_order_acquire));
    }
    free(spare);
  }
  note_place(state.queues.load(std::memory_order_acquire), queue);
  queue->limit = queue_limit(team);
  queue->pace = StealPace(base::cycles_per_microsecond());
  member->queue = queue;
  member->dependences = &queue->table;
  return queue;
}

void release_queue(ImplicitTask* member) {
  MemberQueue* queue = member->queue;
  member->queue = nullptr;
  queue->memory.send_home();
  TaskQueueState& state = queue->team->tasks;
  QuietGuard guard(state.lock);
  queue->next_free = state.free_queues;
  state.free_queues = queue;
}

TaskQueueState::~TaskQueueState() {
  QueueList* list = queues.load(std::memory_order_relaxed);
  const uint32_t count = list == nullptr ? 0 : list->count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    MemberQueue* queue = list->queue(i);
    queue->memory.send_home();
    queue->table.clear(queue);
    give_queue_back(queue);
  }
  while (list != nullptr) {
    QueueList* outgrown = list->outgrown;
    free(list);
    list = outgrown;
  }
  free(shared.load(std::memory_order_relaxed));
}

bool Eligible::operator()(ExplicitTask* task) const {
  if (ancestor == nullptr) return true;
  if (not_in != nullptr && group_hint(task) == not_in) return false;
  return is_descendant(task, ancestor, depth);
}

ExplicitTask* take_task(sched::Thread* me, Team* team, MemberQueue* queue,
                        const Eligible& eligible) {
  // relaxed: a guess; those who go to sleep look again after a full fence.
  if (BOSK_UNLIKELY(team->tasks.shared_count.load(std::memory_order_relaxed) != 0))
    if (ExplicitTask* task = take_shared(team, eligible)) return task;
  if (queue != nullptr)
    if (ExplicitTask* task = queue->deque.pop_if(eligible)) return task;
  return steal_task(me, team, queue, eligible);
}

uint32_t queued_tasks(const Team* team, uint32_t most) {
  int64_t found = team->tasks.shared_count.load(std::memory_order_relaxed);
  QueueList* list = team->tasks.queues.load(std::memory_order_acquire);
  const uint32_t count = list == nullptr ? 0 : list->count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && found < most; ++i) found += list->queue(i)->deque.size_hint();
  return found < most ? static_cast<uint32_t>(found) : most;
}

// ---- telling

void poke(MemberQueue* queue) {
  queue->news.fetch_add(1, std::memory_order_seq_cst);
  sched::wake_after_rmw(queue->news, 1);
}

void tell_team_slow(Team* team) {
  if (team->queued_work.load(std::memory_order_relaxed) == 0) {
    sched::Thread* me = context::self();
    if (me != nullptr && me->pool != nullptr) {
      note_team_work(team);
    } else {
      // omp_fulfill_event by a thread that is none of the team's: it has no pool to look for
      // sleepers.
      team->queued_work.store(1, std::memory_order_seq_cst);
      if (team->opened_on() != nullptr && team->opened_on()->pool != nullptr)
        sched::call_for_tasks(team->opened_on()->pool, team, 1);
    }
  }
  if (team->tasks.sleepers.load(std::memory_order_relaxed) == 0) return;
  MemberQueue* sleeper;
  {
    QuietGuard guard(team->tasks.lock);
    sleeper = team->tasks.first_sleeper;
    if (sleeper == nullptr) return;
    team->tasks.first_sleeper = sleeper->next_sleeper;
    sleeper->is_sleeper = false;
    team->tasks.sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
  poke(sleeper);
}

void add_sleeper(Team* team, MemberQueue* queue) {
  QuietGuard guard(team->tasks.lock);
  queue->is_sleeper = true;
  queue->next_sleeper = team->tasks.first_sleeper;
  team->tasks.first_sleeper = queue;
  team->tasks.sleepers.fetch_add(1, std::memory_order_relaxed);
}

void remove_sleeper(Team* team, MemberQueue* queue) {
  QuietGuard guard(team->tasks.lock);
  if (!queue->is_sleeper) return;
  queue->is_sleeper = false;
  MemberQueue** at = &team->tasks.first_sleeper;
  while (*at != queue) at = &(*at)->next_sleeper;
  *at = queue->next_sleeper;
  team->tasks.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

// ---- hooks

/// What else the worker has, perhaps the creator of the tasks, comes first.
static bool may_idle_here(const sched::Thread* me) {
  return me->worker != nullptr && me->worker->ready.empty_hint();
}

static void rest() {
  constexpr int kPolls = 8;
  for (int i = 0; i < kPolls; ++i) base::cpu_pause();
}

/// A thief of tasks that are not worth the way lets some time pass; true: it did.
static bool took_its_time(const sched::Thread* me, const Team* team, MemberQueue* queue) {
  if (queue->deque.size_hint() != 0 ||
      team->tasks.shared_count.load(std::memory_order_relaxed) != 0)
    return false;
  const uint64_t now = base::cycles();
  if (queue->pace.has_to_judge()) queue->pace.judge(now, queue->memory.foreign_tasks());
  if (!queue->pace.pauses() || queue->pace.is_over(now) || !may_idle_here(me)) return false;
  rest();
  return true;
}

/// The caller goes away to run the task that it took. Of those who sleep, as many are woken as there is
/// more to do, two at most, who do the same; if there is nothing more, whoever queues a task wakes one
/// (sched/task_call_protocol.h).
static void see_to_the_rest(sched::Thread* me, Team* team) {
  if (team->opened_on() == nullptr) return;
  sched::Pool* pool = team->opened_on()->pool;
  if (BOSK_LIKELY(!sched::somebody_sleeps_for(pool, team))) return;
  const uint32_t more = queued_tasks(team, 2);
  if (more == 0) {
    clear_work_flag<StdAtomics>(team->queued_work);
    if (queued_tasks(team, 1) != 0) note_team_work(team);
    return;
  }
  sched::enter(me);
  sched::call_for_tasks(pool, team, more);
  sched::leave(me);
}

bool run_one_team_task(sched::Thread* me, Team* team, bool patient) {
  MemberQueue* queue = me->member->queue;
  if (queue != nullptr && (queue->pace.has_to_judge() || queue->pace.pauses()) &&
      took_its_time(me, team, queue))
    return true;
  ExplicitTask* task = take_task(me, team, queue, {});
  if (BOSK_UNLIKELY(task == nullptr)) {
    if (patient && queue != nullptr && may_idle_here(me) &&
        queue->pace.is_patient(base::cycles())) {
      rest();
      return true;
    }
    clear_work_flag<StdAtomics>(team->queued_work);
    task = take_task(me, team, queue, {});
    if (task == nullptr) return false;
    note_team_work(team);
  }
  if (queue != nullptr) queue->pace.found();
  see_to_the_rest(me, team);
  // Not this thread's own wait: with a second context for a member that waits already, two threads
  // would own the member's count of children.
  const sched::DoesMeanwhile computes(me, sched::Does::kComputing);
  run_task(me, queue_of(me->member), task, nullptr, true);
  return true;
}

void free_dependences(Task* task) {
  if (task->is_implicit) {
    auto* member = static_cast<ImplicitTask*>(task);
    member->queue->table.clear(member->queue);
    member->dependences = nullptr;
    release_queue(member);
  }
}

void task_queues_forget_after_fork(Team* team) {
  process_queues_forget_after_fork();
  for (; team != nullptr; team = parent_team(team)) {
    new (&team->tasks.lock) base::SpinLock;
    team->tasks.first_sleeper = nullptr;
    team->tasks.sleepers.store(0, std::memory_order_relaxed);
  }
}

}  // namespace bosk::omp
