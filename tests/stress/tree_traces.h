// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random operations on trees of bubbles as data, and what carries them out on the real thing: by many
// kernel threads at once, or by one.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "../unit/invented_machine.h"
#include "sched/search.h"

namespace bosk::test {

enum class Op : std::uint8_t {
  kTake,     ///< a PU searches; what it finds runs, bursts, descends or serves ghosts
  kRequeue,  ///< a running thread is preempted
  kBlock,
  kWake,
  kClose,
  kWiden,
  kMove,      ///< a running thread goes into another bubble
  kReinsert,  ///< a thread that does not run does
  kEnd,       ///< a running thread ends, and one like it is inserted elsewhere
  kPriority,
  kClaim,  ///< a thief that knows a team from before takes ghosts
  kOps
};

struct Step {
  Op op;
  std::uint32_t a, b, c;
};

/// The steps of one worker.
class Trace {
 public:
  Trace(std::uint32_t seed, std::uint32_t worker) : random_(seed * 1000 + worker) {}
  Step next() {
    static constexpr std::array<Op, 24> kMix = {
        Op::kTake,    Op::kTake,     Op::kTake,    Op::kTake,     Op::kTake,     Op::kTake,
        Op::kTake,    Op::kTake,     Op::kRequeue, Op::kRequeue,  Op::kRequeue,  Op::kRequeue,
        Op::kRequeue, Op::kBlock,    Op::kWake,    Op::kWake,     Op::kClose,    Op::kWiden,
        Op::kMove,    Op::kReinsert, Op::kEnd,     Op::kPriority, Op::kPriority, Op::kClaim};
    const std::uint32_t at = random_() % kMix.size();
    return {kMix[at], static_cast<std::uint32_t>(random_()), static_cast<std::uint32_t>(random_()),
            static_cast<std::uint32_t>(random_())};
  }

 private:
  std::mt19937 random_;
};

/// A shape that both the real tree and the model are built after.
struct Plan {
  std::uint32_t seed;
  std::uint32_t workers;
  std::vector<std::uint32_t> outer;      ///< of bubble i + 1; bubble 0 is outermost
  std::vector<std::uint32_t> ghosts;     ///< of bubble i; 0: no team
  std::vector<std::int32_t> priority;    ///< of bubble i
  std::vector<std::uint32_t> bubble_of;  ///< thread

  Plan(std::uint32_t seed, std::uint32_t workers) : seed(seed), workers(workers) {
    std::mt19937 random(seed);
    const std::uint32_t bubbles = 4 + random() % 12;
    for (std::uint32_t i = 0; i < bubbles; ++i) {
      if (i != 0) outer.push_back(random() % i);
      ghosts.push_back(random() % 3 == 0 ? 1 + random() % 200 : 0);
      priority.push_back(static_cast<std::int32_t>(random() % 3) - 1);
    }
    const std::uint32_t threads = 10 + random() % 50;
    for (std::uint32_t i = 0; i < threads; ++i) bubble_of.push_back(random() % bubbles);
  }
  /// Who may reinsert it; the others move only while they run.
  std::uint32_t reinserter(std::uint32_t thread) const {
    return thread % 2 == 0 ? thread / 2 % workers : UINT32_MAX;
  }
};

struct TraceThread : sched::TreeEntity {
  std::uint32_t number = 0;
  std::atomic<int> runners{0};
  std::uint64_t plain = 0;  ///< written by runners only: locks order them
};

/// What a step did, as far as the model must agree.
struct Did {
  long thread = -1;  ///< taken
  long team = -1;    ///< whose ghosts were found
  std::uint32_t ghosts = 0;
  long domain = -1;
  bool yes = false;
  bool operator==(const Did&) const = default;
};

/// The real thing.
class RealTree {
 public:
  explicit RealTree(const Plan& plan)
      : plan_(plan),
        machine_(symmetric(2, 2, 2, 2)),
        bubbles(plan.ghosts.size()),
        teams_(bubbles.size()),
        threads(plan.bubble_of.size()) {
    if (!queues.build(*machine_)) std::abort();
    for (std::uint32_t i = 0; i < bubbles.size(); ++i) {
      bubbles[i].priority = plan.priority[i];
      if (plan.ghosts[i] != 0) {
        teams_[i].ghosts.open(plan.ghosts[i], 0);
        bubbles[i].team = &teams_[i];
      }
      if (i != 0) sched::insert(bubbles[plan.outer[i - 1]], bubbles[i]);
    }
    for (std::uint32_t i = 0; i < threads.size(); ++i) {
      threads[i].number = i;
      sched::insert(bubbles[plan.bubble_of[i]], threads[i]);
    }
    bubbles[0].home = &queues.of(0);
    sched::requeue(bubbles[0], queues.of(0));
  }
  ~RealTree() {
    for (std::uint32_t d = 0; d < machine_->n_domains; ++d) queues.of(d).first = nullptr;
    queues.release();
  }
  RealTree(const RealTree&) = delete;
  RealTree& operator=(const RealTree&) = delete;

  const Machine& machine() const { return *machine_; }

  /// A worker's own: what it runs, and what has blocked on it.
  struct Worker {
    std::uint32_t number = 0;
    std::vector<TraceThread*> running;
    std::vector<TraceThread*> blocked;
  };

  Did carry_out(Worker& w, const Step& s) {
    Did did;
    switch (s.op) {
      case Op::kTake:
        take(w, s, &did);
        break;
      case Op::kRequeue:
        if (TraceThread* t = pick(w.running, s.a)) {
          t->runners.fetch_sub(1);
          sched::requeue(*t, queue_on_path(s), s.c % 4 == 0);
        }
        break;
      case Op::kBlock:
        if (TraceThread* t = pick(w.running, s.a)) {
          t->runners.fetch_sub(1);
          w.blocked.push_back(t);
          sched::note_blocked(*t);
        }
        break;
      case Op::kWake:
        if (TraceThread* t = pick(w.blocked, s.a)) sched::requeue(*t, queue_on_path(s));
        break;
      case Op::kClose:
        did.yes = sched::close(bubbles[s.a % bubbles.size()],
                               s.c % 4 == 0 ? &queues.of(s.b % machine_->n_domains) : nullptr);
        break;
      case Op::kWiden: {
        sched::NestedBubble& bubble = bubbles[s.a % bubbles.size()];
        {
          base::SpinGuard guard(bubble.lock);
          did.yes = sched::begin_closing_locked(bubble);
        }
        if (did.yes) did.ghosts = sched::widen_begun(bubble, queues.of(s.b % machine_->n_domains));
        break;
      }
      case Op::kMove:
      case Op::kEnd:
        if (TraceThread* t = look(w.running, s.a); t != nullptr && moves_itself(*t)) {
          sched::leave(*t);
          if (s.op == Op::kEnd) {
            pick(w.running, s.a);
            t->runners.fetch_sub(1);
            t->activity.store(sched::Activity::kReady, std::memory_order_relaxed);
          }
          sched::insert(bubbles[s.b % bubbles.size()], *t, s.op == Op::kMove);
        }
        break;
      case Op::kReinsert: {
        TraceThread& t = threads[s.a % threads.size()];
        if (plan_.reinserter(t.number) != w.number) break;
        // Blocked ones are somewhere on a worker's list.
        did.yes = sched::remove(t);
        if (did.yes) sched::insert(bubbles[s.b % bubbles.size()], t);
        break;
      }
      case Op::kPriority:
        if (TraceThread* t = look(w.running, s.a))
          t->priority = static_cast<std::int32_t>(s.b % 4) - 1;
        break;
      case Op::kClaim:
        if (sched::Bubble* team = bubbles[s.a % bubbles.size()].team)
          did.ghosts = claim(*team, 1 + s.b % 3);
        break;
      case Op::kOps:
        break;
    }
    return did;
  }

  std::atomic<int> twice{0};
  std::atomic<std::uint64_t> runs{0};
  std::atomic<std::uint64_t> ghosts_run{0};

 private:
  const Plan& plan_;
  MachinePtr machine_;

 public:
  sched::DomainQueues queues;
  std::deque<sched::NestedBubble> bubbles;

 private:
  std::deque<sched::Bubble> teams_;

 public:
  std::deque<TraceThread> threads;

 private:
  bool moves_itself(const TraceThread& t) const { return plan_.reinserter(t.number) == UINT32_MAX; }
  sched::RunQueue& queue_on_path(const Step& s) const {
    const sched::QueuePath path = queues.path(s.b % machine_->n_pus);
    return *path.queue[s.c / 4 % path.length];
  }
  static TraceThread* look(const std::vector<TraceThread*>& from, std::uint32_t a) {
    return from.empty() ? nullptr : from[a % from.size()];
  }
  static TraceThread* pick(std::vector<TraceThread*>& from, std::uint32_t a) {
    TraceThread* t = look(from, a);
    if (t != nullptr) from.erase(from.begin() + static_cast<std::ptrdiff_t>(a % from.size()));
    return t;
  }
  std::uint32_t claim(sched::Bubble& team, std::uint32_t most) {
    const std::uint32_t count = team.ghosts.claim(most).count;
    ghosts_run += count;
    return count;
  }

  void take(Worker& w, const Step& s, Did* did) {
    const sched::QueuePath path = queues.path(s.a % machine_->n_pus);
    std::uint32_t decision = s.b;
    const sched::Found found =
        sched::find_work(path, [&](sched::NestedBubble& bubble, sched::RunQueue& queue) {
          if (!sched::take_in_hand(bubble)) return sched::Found{};
          decision = decision * 5 + 1;
          const std::uint32_t what = decision >> 8;
          if (what % 3 == 0 && bubble.ghosts_left() != 0) {
            sched::serve_ghosts_from(bubble, queue);
          } else if (what % 3 == 1 && &queue != path.queue[0]) {
            // Some levels down on the way to the PU.
            std::uint32_t at = 0;
            while (path.queue[at] != &queue) ++at;
            sched::put_down(bubble);
            sched::requeue(bubble, *path.queue[what / 3 % at]);
          } else {
            sched::burst(bubble, queue);
          }
          return sched::Found{};
        });
    if (found.queue != nullptr) did->domain = found.queue->domain;
    if (found.ghosts != nullptr) {
      for (std::uint32_t i = 0; i < bubbles.size(); ++i)
        if (bubbles[i].team == found.ghosts) did->team = i;
      did->ghosts = claim(*found.ghosts, 1 + s.c % 3);
    }
    if (found.entity == nullptr) return;
    auto* t = static_cast<TraceThread*>(found.entity);
    did->thread = t->number;
    twice += t->runners.fetch_add(1) != 0;
    ++t->plain;
    ++runs;
    sched::note_running(*t, w.number, found.queue->domain);
    w.running.push_back(t);
  }
};

}  // namespace bosk::test
