// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that are ready on other workers: finding them, and taking one, or all of a team.
#include "sched/gangs.h"
#include "sched/scheduler.h"
#include "sched/team_events.h"

namespace bosk::sched {
namespace {

bool may_take_thread(Worker* w, const Thread* thread) {
  return thread->pinned == nullptr && may_help(w, thread->bubble) &&
         in_reach(w, with_reach(thread->bubble));
}

/// A thread stays where its team is, at home or with those who have taken it there: others leave it to these as they leave ghosts.
bool is_thread_near(const Worker* w, const Worker* owner, const Bubble* team) {
  if (team == nullptr) return true;
  if (is_at_home(owner, team)) return is_near(w, team);
  return node_of_worker(owner) == node_of_worker(w) || is_adopter(w, team);
}

/// Teams of other nodes with threads that wait there, and which of them to take. Of more than there is room for some are not seen.
class FarTeams {
 public:
  void add(Bubble* team) {
    for (uint32_t i = 0; i < count_; ++i)
      if (seen_[i].team == team) {
        ++seen_[i].threads;
        return;
      }
    if (count_ < kMost) seen_[count_++] = {team, 1, team->adoption.is_known()};
  }
  /// The one with most, of those that nobody has adopted first; of equals the nearest; null: there is none.
  Bubble* best() const {
    const Seen* found = nullptr;
    for (uint32_t i = 0; i < count_; ++i)
      if (found == nullptr || seen_[i].is_better_than(*found)) found = &seen_[i];
    return found != nullptr ? found->team : nullptr;
  }

 private:
  static constexpr uint32_t kMost = 16;
  struct Seen {
    bool is_better_than(const Seen& other) const {
      return is_adopted != other.is_adopted ? other.is_adopted : threads > other.threads;
    }
    Bubble* team;
    uint32_t threads;
    bool is_adopted;
  };
  Seen seen_[kMost];
  uint32_t count_ = 0;
};

/// The first thread on the victim's queue, which is locked, that `w` may run and that is near; null: none. Those that are not go to
/// `others`, if that is not null. A mere look begins no gang's turn.
Thread* near_thread_of(Worker* w, Worker* victim, bool take, bool placed, FarTeams* others) {
  for (Entity* entity = victim->ready.first; entity != nullptr; entity = entity->next) {
    auto* thread = static_cast<Thread*>(entity);
    if (!may_take_thread(w, thread)) continue;
    if (BOSK_UNLIKELY(placed)) {
      auto* team = const_cast<Bubble*>(with_reach(thread->bubble));
      if (!is_thread_near(w, victim, team)) {
        if (others != nullptr) others->add(team);
        continue;
      }
    }
    if (!take || may_run(w, thread)) return thread;
  }
  return nullptr;
}

/// All that waits of the team, but no more than has a PU each on the worker's node: the first one, and the others are queued here, for
/// the worker's neighbours. What runs of it follows at a tick (worker_with_team()). Null: others were faster.
Thread* take_team(Worker* w, Bubble* team) {
  Pool* pool = w->pool;
  // Who polls for others calls workers for them, one by one (spins/).
  const bool whole = team->together.load(std::memory_order_relaxed) == Together::kNo;
  const uint32_t most = whole ? pus_of_node(w) : 1;
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  WorkerOrder order = order_from(w, w->index, workers);
  Thread* taken = nullptr;
  Thread** end = &taken;
  uint32_t count = 0;
  uint64_t left_node = kReachNobody;
  for (uint32_t victim; count < most && (victim = order.next()) != WorkerOrder::kEnd;) {
    Worker* v = pool->worker(victim);
    if (v == nullptr || v == w || v->ready.empty_hint() || !v->ready.lock.try_lock()) continue;
    for (Entity* entity = v->ready.first; entity != nullptr && count < most;) {
      auto* thread = static_cast<Thread*>(entity);
      entity = entity->next;
      if (with_reach(thread->bubble) != team || !may_take_thread(w, thread) || !may_run(w, thread))
        continue;
      v->ready.remove_locked(thread);
      *end = thread;
      end = &thread->link;
      ++count;
      left_node = node_of_worker(v);
    }
    v->ready.lock.unlock();
  }
  if (taken == nullptr) return nullptr;
  *end = nullptr;
  for (Thread* other = taken->link; other != nullptr;) {
    Thread* next = other->link;
    w->ready.enqueue(other);
    other = next;
  }
  // The region cannot end while one of its threads is ours.
  if (whole && is_at_home(w, team))
    team->adoption.forget();
  else if (whole)
    adopt(w, team, left_node, count);
  return taken;
}

struct Found {
  Thread* near = nullptr;  ///< taken, if that was asked for
  Bubble* far = nullptr;   ///< else, of another node: the team to take threads of
};

Found look_for_ready_thread(Worker* w, Far far, bool take) {
  Pool* pool = w->pool;
  Found found;
  // Native threads are pinned.
  if (BOSK_UNLIKELY(!pool->has_had_ghosts.load(std::memory_order_relaxed))) return found;
  // relaxed: is_near() looks again.
  const bool placed = pool->machine.load(std::memory_order_relaxed) != nullptr;
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  WorkerOrder order = order_from(w, w->index, workers);
  FarTeams others;
  const bool may_go = BOSK_UNLIKELY(placed) && (far == Far::kEver || may_go_far(w));
  for (uint32_t victim; (victim = order.next()) != WorkerOrder::kEnd;) {
    Worker* v = pool->worker(victim);
    if (v == nullptr || v == w || v->ready.empty_hint() || !v->ready.lock.try_lock()) continue;
    found.near = near_thread_of(w, v, take, placed, may_go ? &others : nullptr);
    if (take && found.near != nullptr) v->ready.remove_locked(found.near);
    v->ready.lock.unlock();
    if (found.near != nullptr) return found;
  }
  found.far = others.best();
  return found;
}

}  // namespace

bool others_have_ready_thread(Worker* w, Far far, bool* is_far) {
  const Found found = look_for_ready_thread(w, far, false);
  *is_far = found.far != nullptr;
  return found.near != nullptr || found.far != nullptr;
}

Thread* steal_ready_thread(Worker* w) {
  const Found found = look_for_ready_thread(w, Far::kIfItIsTime, true);
  Thread* thread = found.near;
  if (found.far != nullptr) {
    thread = take_team(w, found.far);
    w->far_wait.taken();
  }
  if (thread != nullptr) add_seen(&w->counts.threads_stolen);
  return thread;
}

Thread* steal_from_longer_queue(Worker* w) {
  constexpr uint32_t kMostVictims = 4;
  const uint32_t mine = w->ready.length.load(std::memory_order_relaxed);
  const uint32_t workers = w->pool->worker_count.load(std::memory_order_acquire);
  const bool placed = w->pool->machine.load(std::memory_order_relaxed) != nullptr;
  WorkerOrder order = order_from(w, w->index, workers);
  uint32_t looked_at = 0;
  for (uint32_t victim; looked_at < kMostVictims && (victim = order.next()) != WorkerOrder::kEnd;) {
    Worker* v = w->pool->worker(victim);
    if (v == nullptr || v == w) continue;
    ++looked_at;
    if (v->ready.length.load(std::memory_order_relaxed) < mine + 2 || !v->ready.lock.try_lock())
      continue;
    Thread* thread = near_thread_of(w, v, true, placed, nullptr);
    if (thread != nullptr) v->ready.remove_locked(thread);
    v->ready.lock.unlock();
    if (thread == nullptr) continue;
    add_seen(&w->counts.threads_stolen);
    return thread;
  }
  return nullptr;
}

void adopt(Worker* w, Bubble* team, uint64_t left_node, uint32_t taken) {
  team->adoption.adopted_by(node_of_worker(w));
  add_seen(&w->counts.teams_taken);
  note_team_event(team, TeamEvent::kTaken);
  // But for its opener; some of these may have ended.
  const uint32_t others = team->size > taken + 1 ? team->size - 1 - taken : 0;
  call_mates(w, taken - 1, others);
  if (others == 0) return;
  // They follow at a tick (worker_with_team()).
  Pool* pool = w->pool;
  const topology::Machine* machine = pool->machine.load(std::memory_order_acquire);
  const auto first_pu = static_cast<uint32_t>(left_node);
  WorkerOrder order(*machine, machine->pu(first_pu),
                    pool->worker_count.load(std::memory_order_acquire), seated_workers(pool));
  for (uint32_t at; (at = order.next()) != WorkerOrder::kEnd;) {
    if (!reaches(left_node, pu_of(pool, *machine, at))) return;
    if (Worker* v = pool->worker(at)) note_ready(v);
  }
}

Worker* worker_with_team(Worker* w, const Thread* thread) {
  const topology::Machine* machine = w->pool->machine.load(std::memory_order_acquire);
  const Bubble* team = machine != nullptr ? with_reach(thread->bubble) : nullptr;
  if (team == nullptr || thread->pinned != nullptr || thread->is_entity() ||
      team->together.load(std::memory_order_relaxed) != Together::kNo)
    return w;
  const uint64_t node = team->adoption.adopter();
  if (BOSK_LIKELY(node == kReachNobody) || reaches(node, pu_of(w->pool, *machine, w->index)))
    return w;
  WorkerOrder order(*machine, machine->pu(static_cast<uint32_t>(node)),
                    w->pool->worker_count.load(std::memory_order_acquire), seated_workers(w->pool));
  Worker* best = w;
  // There it is to have fewer beside it than here, or nobody.
  const uint32_t here = w->ready.length.load(std::memory_order_relaxed);
  uint32_t fewest = here > 1 ? here : 1;
  for (uint32_t at; (at = order.next()) != WorkerOrder::kEnd;) {
    Worker* other = w->pool->worker(at);
    if (other == nullptr) continue;
    if (!reaches(node, pu_of(w->pool, *machine, at))) break;
    const uint32_t runs = other->idle.load(std::memory_order_relaxed) != 0 ? 0 : 1;
    const uint32_t threads = other->ready.length.load(std::memory_order_relaxed) + runs;
    if (threads >= fewest || !may_take(other, team)) continue;
    best = other;
    fewest = threads;
  }
  return best;
}

}  // namespace bosk::sched
