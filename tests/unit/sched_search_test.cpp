// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hierarchical search against a plain sequential model, on invented machines.
#include "sched/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "invented_machine.h"

#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

namespace {

using namespace bosk;
using sched::DomainQueues;
using sched::Entity;
using sched::kNoEntity;
using sched::RunQueue;
using test::is_below;

struct Counts {
  std::uint32_t looked = 0;
  std::uint32_t locked = 0;
  std::uint32_t missed = 0;
};

struct Counting {
  Counts* counts;
  void looked(const RunQueue&) const { ++counts->looked; }
  void locked(const RunQueue&) const { ++counts->locked; }
  void missed(const RunQueue&) const { ++counts->missed; }
};

/// A machine with its queues.
class Queues {
 public:
  explicit Queues(test::MachinePtr machine) : machine_(std::move(machine)) {
    if (!queues_.build(*machine_)) std::abort();
  }
  ~Queues() {
    // The entities may be gone already.
    for (std::uint32_t d = 0; d < machine_->n_domains; ++d) queues_.of(d).first = nullptr;
    queues_.release();
  }
  const topology::Machine& machine() const { return *machine_; }
  DomainQueues& operator*() { return queues_; }
  DomainQueues* operator->() { return &queues_; }

 private:
  test::MachinePtr machine_;
  DomainQueues queues_;
};

Entity thread_of(std::int32_t priority) {
  Entity entity;
  entity.priority = priority;
  return entity;
}

TEST(DomainQueues, PathsLeadFromThePuToTheMachineAndRanksGrowDownwards) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    Queues queues(test::any_machine(seed));
    const auto& machine = queues.machine();
    for (std::uint32_t pu = 0; pu < machine.n_pus; ++pu) {
      const sched::QueuePath path = queues->path(pu);
      ASSERT_EQ(path.length, machine.pu(pu).depth + 1u);
      EXPECT_EQ(path.queue[0]->domain, machine.pu(pu).id);
      EXPECT_EQ(path.queue[path.length - 1]->domain, 0u);
      for (std::uint32_t i = 1; i < path.length; ++i) {
        EXPECT_EQ(path.queue[i]->domain,
                  machine.domain_array[path.queue[i - 1]->domain].parent->id);
        EXPECT_LT(path.queue[i]->rank, path.queue[i - 1]->rank);
      }
    }
  }
}

TEST(DomainQueues, OfAMachineWithOnePu) {
  Queues queues(test::symmetric(1, 1, 1, 1));
  Entity thread = thread_of(0);
  queues->of(0).enqueue(&thread);
  EXPECT_EQ(sched::take_best(queues->path(0)), &thread);
}

TEST(Search, AGlobalEntityOfHigherPriorityBeatsALocalOne) {
  Queues queues(test::symmetric(2, 2, 2, 2));
  Entity local = thread_of(1);
  Entity global = thread_of(2);
  queues->of(queues.machine().pu(3).id).enqueue(&local);
  queues->of(0).enqueue(&global);
  EXPECT_EQ(sched::take_best(queues->path(3)), &global);
  EXPECT_EQ(sched::take_best(queues->path(3)), &local);
  EXPECT_EQ(sched::take_best(queues->path(3)), nullptr);
}

TEST(Search, TheMoreLocalOneWinsATie) {
  Queues queues(test::symmetric(2, 2, 2, 2));
  const sched::QueuePath path = queues->path(5);
  std::vector<Entity> threads(path.length);
  for (std::uint32_t i = path.length; i-- > 0;) path.queue[i]->enqueue(&threads[i]);
  for (std::uint32_t i = 0; i < path.length; ++i) EXPECT_EQ(sched::take_best(path), &threads[i]);
}

TEST(Search, SeesOnlyQueuesThatCoverThePu) {
  Queues queues(test::symmetric(2, 2, 2, 2));
  Entity elsewhere = thread_of(9);
  queues->of(queues.machine().pu(8).id).enqueue(&elsewhere);
  for (std::uint32_t pu = 0; pu < 8; ++pu) EXPECT_EQ(sched::take_best(queues->path(pu)), nullptr);
  EXPECT_EQ(sched::take_best(queues->path(8)), &elsewhere);
}

TEST(Search, TakesNothingBelowTheAskedPriority) {
  Queues queues(test::symmetric(2, 2, 2, 2));
  Entity thread = thread_of(3);
  queues->of(0).enqueue(&thread);
  EXPECT_EQ(sched::take_best(queues->path(0), 3), nullptr);
  EXPECT_EQ(sched::take_best(queues->path(0), sched::just_below(3)), &thread);
}

TEST(Search, PrioritiesMayBeAsLowAsIntegersGo) {
  Queues queues(test::symmetric(1, 1, 2, 1));
  Entity lowest = thread_of(kNoEntity + 1);
  Entity current = thread_of(kNoEntity + 1);
  RunQueue& home = queues->of(0);
  home.enqueue(&lowest);
  EXPECT_EQ(sched::exchange_best(queues->path(0), &current, home), &lowest);
  EXPECT_EQ(sched::take_best(queues->path(1)), &current);
}

TEST(Search, CostsOneLookPerLevelAndOneLock) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    Queues queues(test::any_machine(seed));
    std::mt19937 random(seed);
    std::vector<Entity> threads(50);
    for (Entity& thread : threads) {
      thread.priority = static_cast<std::int32_t>(random() % 3);
      queues->of(random() % queues.machine().n_domains).enqueue(&thread);
    }
    for (std::uint32_t pu = 0; pu < std::min(queues.machine().n_pus, 64u); ++pu) {
      const sched::QueuePath path = queues->path(pu);
      Counts counts;
      const bool found = sched::take_best(path, kNoEntity, Counting{&counts}) != nullptr;
      EXPECT_EQ(counts.looked, path.length);
      EXPECT_EQ(counts.locked, found ? 1u : 0u);
      EXPECT_EQ(counts.missed, 0u);
    }
  }
}

/// Takes the entity away between the first pass and the second.
struct Thief {
  RunQueue* victim;
  Entity* booty;
  Counts* counts;
  void looked(const RunQueue& queue) const {
    ++counts->looked;
    // The machine's queue is looked at last.
    if (queue.domain == 0 && booty->holder == victim) victim->remove_locked(booty);
  }
  void locked(const RunQueue&) const { ++counts->locked; }
  void missed(const RunQueue&) const { ++counts->missed; }
};

TEST(Search, LooksAgainWhenSomebodyWasFaster) {
  Queues queues(test::symmetric(2, 2, 2, 2));
  Entity first = thread_of(5);
  Entity second = thread_of(4);
  RunQueue& node = queues->of(queues.machine().pu(0).parent->parent->parent->id);
  queues->of(0).enqueue(&second);
  node.enqueue(&first);
  Counts counts;
  EXPECT_EQ(sched::take_best(queues->path(0), kNoEntity, Thief{&node, &first, &counts}), &second);
  EXPECT_EQ(counts.missed, 1u);
  EXPECT_EQ(counts.locked, 2u);
  EXPECT_EQ(first.holder, nullptr);
}

TEST(Search, DoesNotTakeALesserOneFromTheQueueThatWasBest) {
  Queues queues(test::symmetric(2, 2, 2, 2));
  Entity first = thread_of(5);
  Entity lesser = thread_of(1);
  Entity elsewhere = thread_of(4);
  RunQueue& node = queues->of(queues.machine().pu(0).parent->parent->parent->id);
  node.enqueue(&first);
  node.enqueue(&lesser);
  queues->of(0).enqueue(&elsewhere);
  Counts counts;
  EXPECT_EQ(sched::take_best(queues->path(0), kNoEntity, Thief{&node, &first, &counts}),
            &elsewhere);
  EXPECT_EQ(counts.missed, 1u);
}

TEST(FindWork, DoesNotTakeALesserOneFromTheQueueThatWasBest) {
  Queues queues(test::symmetric(2, 2, 2, 2));
  Entity first = thread_of(5);
  Entity lesser = thread_of(1);
  Entity elsewhere = thread_of(4);
  RunQueue& node = queues->of(queues.machine().pu(0).parent->parent->parent->id);
  node.enqueue(&first);
  node.enqueue(&lesser);
  queues->of(0).enqueue(&elsewhere);
  Counts counts;
  const auto no_bubbles = [](sched::NestedBubble&, RunQueue&) { return sched::Found{}; };
  EXPECT_EQ(sched::find_work(queues->path(0), no_bubbles, kNoEntity, Thief{&node, &first, &counts})
                .entity,
            &elsewhere);
}

TEST(Exchange, DoesNotTakeALesserOneFromTheQueueThatWasBest) {
  Queues queues(test::symmetric(2, 2, 2, 2));
  Entity first = thread_of(5);
  Entity lesser = thread_of(1);
  Entity elsewhere = thread_of(4);
  Entity current = thread_of(3);
  RunQueue& node = queues->of(queues.machine().pu(0).parent->parent->parent->id);
  node.enqueue(&first);
  node.enqueue(&lesser);
  queues->of(0).enqueue(&elsewhere);
  Counts counts;
  EXPECT_EQ(sched::exchange_best(queues->path(0), &current, node, Thief{&node, &first, &counts}),
            &elsewhere);
  EXPECT_EQ(node.first, &current);
}

TEST(Search, TakesWhatIsLeftOfTheSamePriorityWhenSomebodyWasFaster) {
  Queues queues(test::symmetric(2, 2, 2, 2));
  Entity first = thread_of(5);
  Entity next = thread_of(5);
  RunQueue& machine = queues->of(0);
  machine.enqueue(&first);
  machine.enqueue(&next);
  Counts counts;
  EXPECT_EQ(sched::take_best(queues->path(0), kNoEntity, Thief{&machine, &first, &counts}), &next);
  EXPECT_EQ(counts.missed, 0u);
}

TEST(Exchange, PutsTheCurrentOneBehindItsEquals) {
  Queues queues(test::symmetric(2, 1, 2, 1));
  RunQueue& home = queues->of(queues.machine().pu(0).id);
  Entity a = thread_of(1);
  Entity b = thread_of(1);
  Entity current = thread_of(1);
  home.enqueue(&a);
  home.enqueue(&b);
  EXPECT_EQ(sched::exchange_best(queues->path(0), &current, home), &a);
  EXPECT_EQ(sched::exchange_best(queues->path(0), &a, home), &b);
  EXPECT_EQ(sched::exchange_best(queues->path(0), &b, home), &current);
  EXPECT_EQ(home.length, 2u);
}

TEST(Exchange, KeepsTheCurrentOneWhenAllOthersHaveLowerPriority) {
  Queues queues(test::symmetric(2, 1, 2, 1));
  Entity low = thread_of(0);
  Entity current = thread_of(1);
  queues->of(0).enqueue(&low);
  EXPECT_EQ(sched::exchange_best(queues->path(0), &current, queues->of(0)), nullptr);
  EXPECT_EQ(current.holder, nullptr);
  EXPECT_EQ(low.holder, &queues->of(0));
}

TEST(Exchange, WorksInBothLockOrders) {
  Queues queues(test::symmetric(2, 1, 2, 1));
  RunQueue& high = queues->of(0);
  RunQueue& low = queues->of(queues.machine().pu(0).id);
  Entity a = thread_of(0);
  Entity b = thread_of(0);
  low.enqueue(&a);
  EXPECT_EQ(sched::exchange_best(queues->path(0), &b, high), &a);  // takes low, puts high
  EXPECT_EQ(b.holder, &high);
  EXPECT_EQ(sched::exchange_best(queues->path(0), &a, low), &b);  // takes high, puts low
  EXPECT_EQ(a.holder, &low);
}

// ---- bubbles on the way

TEST(FindWork, HandsABubbleOverAndLooksAgain) {
  Queues queues(test::symmetric(2, 1, 2, 1));
  sched::NestedBubble bubble;
  sched::TreeEntity thread;
  sched::insert(bubble, thread);
  queues->of(0).enqueue(&bubble);
  int handed = 0;
  const sched::Found found =
      sched::find_work(queues->path(1), [&](sched::NestedBubble& b, RunQueue& queue) {
        ++handed;
        EXPECT_EQ(&b, &bubble);
        EXPECT_EQ(b.holder, nullptr);
        EXPECT_TRUE(sched::take_in_hand(b));
        EXPECT_EQ(sched::burst(b, queue), 1u);
        return sched::Found{};
      });
  EXPECT_EQ(handed, 1);
  EXPECT_EQ(found.entity, &thread);
  EXPECT_EQ(found.queue, &queues->of(0));
  EXPECT_EQ(thread.holder, nullptr);
  sched::leave(thread);
}

TEST(FindWork, ServesGhostsWithoutTakingTheBubbleOffItsQueue) {
  Queues queues(test::symmetric(2, 1, 2, 1));
  sched::Bubble team;
  team.ghosts.open(3, 0);
  sched::NestedBubble bubble;
  bubble.team = &team;
  int handed = 0;
  const auto on_bubble = [&](sched::NestedBubble& b, RunQueue& queue) {
    ++handed;
    if (sched::take_in_hand(b)) sched::burst(b, queue);
    return sched::Found{};
  };
  queues->of(0).enqueue(&bubble);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const sched::Found found = sched::find_work(queues->path(i % 4), on_bubble);
    ASSERT_EQ(found.ghosts, &team);
    EXPECT_EQ(bubble.holder, &queues->of(0));
    const sched::Claim claim = team.ghosts.claim(1);
    EXPECT_EQ(claim.index, i);
  }
  EXPECT_EQ(handed, 1);
  // All ghosts are taken: the bubble is of no more use on the queue, and nobody's to decide about.
  EXPECT_FALSE(sched::find_work(queues->path(0), on_bubble));
  EXPECT_EQ(handed, 1);
  EXPECT_EQ(bubble.holder, nullptr);
}

// ---- random operations against a model

/// Queues as sorted lists; the search as a scan over all of them.
class Model {
 public:
  explicit Model(const topology::Machine& machine) : machine_(machine), lists_(machine.n_domains) {}

  void enqueue(std::uint32_t domain, std::size_t id, std::int32_t priority, bool front) {
    auto& list = lists_[domain];
    auto at = std::find_if(list.begin(), list.end(), [&](const auto& e) {
      return front ? e.priority <= priority : e.priority < priority;
    });
    list.insert(at, {id, priority});
  }
  void remove(std::uint32_t domain, std::size_t id) {
    std::erase_if(lists_[domain], [&](const auto& e) { return e.id == id; });
  }
  /// Id of the best above the floor, or -1; it is removed.
  long take(std::uint32_t pu, std::int32_t above) {
    std::uint32_t best = topology::kNone;
    for (std::uint32_t d = 0; d < machine_.n_domains; ++d) {
      if (!machine_.domain_array[d].contains_pu(pu) || lists_[d].empty()) continue;
      if (lists_[d].front().priority <= above) continue;
      // Numbers grow downwards: of equals the one with the larger number is more local.
      if (best == topology::kNone || lists_[d].front().priority >= lists_[best].front().priority)
        best = d;
    }
    if (best == topology::kNone) return -1;
    const auto id = static_cast<long>(lists_[best].front().id);
    lists_[best].erase(lists_[best].begin());
    return id;
  }
  std::size_t size(std::uint32_t domain) const { return lists_[domain].size(); }
  std::vector<std::size_t> ids(std::uint32_t domain) const {
    std::vector<std::size_t> ids;
    for (const auto& e : lists_[domain]) ids.push_back(e.id);
    return ids;
  }

 private:
  struct Entry {
    std::size_t id;
    std::int32_t priority;
  };
  const topology::Machine& machine_;
  std::vector<std::vector<Entry>> lists_;
};

void run_random_operations(std::uint32_t seed, int operations) {
  Queues queues(test::any_machine(seed));
  const auto& machine = queues.machine();
  Model model(machine);
  std::mt19937 random(seed * 7919 + 1);
  std::vector<Entity> entities(64);
  const auto id_of = [&](const Entity* e) { return e == nullptr ? -1L : e - entities.data(); };
  for (int i = 0; i < operations; ++i) {
    const std::size_t id = random() % entities.size();
    Entity& entity = entities[id];
    // Often on one path, so that searches meet something.
    const std::uint32_t pu = random() % 4 != 0 ? 0 : random() % machine.n_pus;
    const sched::QueuePath path = queues->path(pu);
    RunQueue& queue = *path.queue[random() % path.length];
    const bool front = random() % 4 == 0;
    switch (random() % 5) {
      case 0:
      case 1:  // enqueue, or move
        if (entity.holder != nullptr) {
          auto* from = static_cast<RunQueue*>(entity.holder);
          from->remove_locked(&entity);
          model.remove(from->domain, id);
        }
        entity.priority = static_cast<std::int32_t>(random() % 5) - 2;
        queue.enqueue(&entity, front);
        model.enqueue(queue.domain, id, entity.priority, front);
        break;
      case 2:
        ASSERT_EQ(id_of(sched::take_best(path)), model.take(pu, kNoEntity));
        break;
      case 3: {
        const auto above = static_cast<std::int32_t>(random() % 5) - 3;
        ASSERT_EQ(id_of(sched::take_best(path, above)), model.take(pu, above));
        break;
      }
      case 4: {
        if (entity.holder != nullptr) break;
        const long expected = model.take(pu, sched::just_below(entity.priority));
        if (expected >= 0) model.enqueue(queue.domain, id, entity.priority, false);
        ASSERT_EQ(id_of(sched::exchange_best(path, &entity, queue)), expected);
        break;
      }
    }
  }
  for (std::uint32_t d = 0; d < machine.n_domains; ++d) {
    const RunQueue& queue = queues->of(d);
    const std::vector<std::size_t> expected = model.ids(d);
    ASSERT_EQ(queue.length, expected.size());
    std::size_t at = 0;
    for (const Entity* e = queue.first; e != nullptr; e = e->next, ++at)
      ASSERT_EQ(static_cast<std::size_t>(id_of(e)), expected[at]);
    ASSERT_EQ(queue.best.load(), queue.first != nullptr ? queue.first->priority : kNoEntity);
  }
}

TEST(Search, DoesWhatThePlainModelDoes) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(run_random_operations(seed, 400));
  }
}

#ifdef BOSK_HAVE_RAPIDCHECK
RC_GTEST_PROP(SearchProperty, DoesWhatThePlainModelDoes, ()) {
  const auto seed = *rc::gen::inRange<std::uint32_t>(0, 1u << 20);
  const int operations = *rc::gen::inRange(1, 300);
  run_random_operations(seed, operations);
  RC_ASSERT(!testing::Test::HasFatalFailure());
}
#endif

}  // namespace
