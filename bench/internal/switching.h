// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two threads on one worker, each with its own stack and identity, that switch to one another.
#pragma once

#include <limits.h>

#include "core.h"
#include "sched/domain_queues.h"
#include "sched/search.h"
#include "topology/raw_machine.h"

namespace bench {

// A machine of four levels (machine, nodes, cores, PUs), two of each below the other.
class FourLevels {
 public:
  FourLevels() {
    using topology::Kind;
    topology::RawMachine raw;
    raw.reader = "invented";
    uint32_t pus = 0;
    const uint32_t root = raw.add(Kind::kMachine, topology::kNone, topology::kNone);
    for (uint32_t n = 0; n < 2; ++n) {
      const uint32_t node = raw.add(Kind::kNode, root, topology::kNone);
      if (!raw.nodes.push({node, n, uint64_t{1} << 30, true, ""})) bench_fail("out of memory");
      for (int c = 0; c < 2; ++c) {
        const uint32_t core = raw.add(Kind::kCore, node, topology::kNone);
        for (int p = 0; p < 2; ++p) raw.add(Kind::kPu, core, pus++);
      }
    }
    topology::Error error;
    machine_ = topology::build_machine(raw, nullptr, &error);
    if (machine_ == nullptr || !queues_.build(*machine_)) bench_fail("no machine of four levels");
    if (path().length != 4) bench_fail("the machine has not four levels");
  }
  ~FourLevels() {
    queues_.release();
    topology::free_machine(machine_);
  }
  FourLevels(const FourLevels&) = delete;
  FourLevels& operator=(const FourLevels&) = delete;

  sched::QueuePath path() const { return queues_.path(0); }
  sched::RunQueue& top() const { return queues_.of(0); }

 private:
  topology::Machine* machine_ = nullptr;
  sched::DomainQueues queues_;
};

inline sched::Found search(const sched::QueuePath& path) {
  return sched::find_work(path, [](sched::NestedBubble&, sched::RunQueue&) {
    bench_fail("there is no bubble on these queues");
    return sched::Found{};
  });
}

struct Pair {
  const FourLevels* levels = nullptr;  // null: the two know each other, no queue is touched
  sched::Thread* first = nullptr;
  sched::Thread* second = nullptr;
  bool stop = false;
  double ns = 0;  // of one hop there and back
};

inline void queue_on_top(void* argument, sched::Worker*) {
  auto* thread = static_cast<sched::Thread*>(argument);
  const auto* pair = static_cast<const Pair*>(static_cast<Region*>(thread->bubble)->data);
  pair->levels->top().enqueue(thread);
}

inline void leave_stack(void*, sched::Worker*) {}

template <bool kSearch>
inline void hop(Pair* pair, sched::Thread* me, sched::Thread* partner) {
  sched::Worker* w = me->worker;
  if constexpr (kSearch) {
    partner = static_cast<sched::Thread*>(search(pair->levels->path()).entity);
    w->post = {queue_on_top, me};
  }
  sched::switch_to(w, me, partner);
}

// Both run the same loop, as the members of a team do that wait in the same barrier.
template <bool kSearch>
[[gnu::noinline]] void hop_many(Pair* pair, sched::Thread* me, sched::Thread* partner, long count) {
  for (long i = 0; i < count && !pair->stop; ++i) hop<kSearch>(pair, me, partner);
}

template <bool kSearch>
inline void pair_body(Region* region, sched::Thread* me) {
  auto* pair = static_cast<Pair*>(region->data);
  sched::enter(me);
  if (pair->first == nullptr) {
    pair->first = me;
    sched::block(me, {kSearch ? queue_on_top : leave_stack, me});
    hop_many<kSearch>(pair, me, pair->second, LONG_MAX);
    if (kSearch) search(pair->levels->path());  // the second goes on through the worker's queue
    sched::make_ready(pair->second, me->worker, false);
  } else {
    pair->second = me;
    const BenchRun run = [](void* context, long count) {
      auto* p = static_cast<Pair*>(context);
      const double start = now_ns();
      hop_many<kSearch>(p, p->second, p->first, count);
      return now_ns() - start;
    };
    pair->ns = measure_short(run, pair);
    pair->stop = true;
    hop<kSearch>(pair, me, pair->first);
  }
  sched::leave(me);
}

// ns to switch to another thread and back.
inline double round_trip_ns(sched::Thread* me) {
  Pair pair;
  run_region(me, Ghosts::kOwnStacks, 2, pair_body<false>, &pair);
  return pair.ns;
}

// ns of one yield: search on four levels, switch, requeue.
inline double yield_and_switch_ns(sched::Thread* me, const FourLevels& levels) {
  Pair pair;
  pair.levels = &levels;
  run_region(me, Ghosts::kOwnStacks, 2, pair_body<true>, &pair);
  return pair.ns / 2;
}

// ns of the search alone, both passes: threads wait on every level, one after the other is found and
// taken off its queue. Putting them there is not counted.
inline double search_ns(sched::Thread* me, const FourLevels& levels) {
  struct Context {
    const FourLevels* levels;
    sched::Entity threads[64];
  } context{&levels, {}};
  sched::enter(me);
  const double ns = measure_short(
      [](void* argument, long count) {
        auto* c = static_cast<Context*>(argument);
        const sched::QueuePath path = c->levels->path();
        uint64_t spent = 0;
        long found = 0;
        while (found < count) {
          uint32_t level = 0;
          for (sched::Entity& thread : c->threads) path.queue[level++ % 4]->enqueue(&thread);
          const uint64_t start = base::cycles();
          while (search(path)) ++found;
          spent += base::cycles() - start;
        }
        return ns_of_cycles(spent) * static_cast<double>(count) / static_cast<double>(found);
      },
      &context);
  sched::leave(me);
  return ns;
}

}  // namespace bench
