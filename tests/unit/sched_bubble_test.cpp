// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Explicit bubbles: membership, bursting, regeneration and sums, alone and in random sequences.
#include "sched/bubble_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

namespace {

using namespace bosk::sched;

std::vector<const Entity*> on(const RunQueue& queue) {
  std::vector<const Entity*> entities;
  for (const Entity* e = queue.first; e != nullptr; e = e->next) entities.push_back(e);
  return entities;
}

/// As a worker's search does.
void take(RunQueue& queue, Entity& entity) {
  ASSERT_EQ(entity.holder, &queue);
  queue.remove_locked(&entity);
}

using List = std::vector<const Entity*>;

TEST(Bubble, HoldsWhatIsInsertedUntilItBursts) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity a, b;
  insert(bubble, a);
  insert(bubble, b);
  EXPECT_EQ(a.holder, &bubble);
  EXPECT_EQ(bubble.member_count, 2u);
  requeue(bubble, queue);
  EXPECT_EQ(on(queue), List{&bubble});
  take(queue, bubble);
  ASSERT_TRUE(take_in_hand(bubble));
  EXPECT_EQ(burst(bubble, queue), 2u);
  EXPECT_EQ(on(queue), (List{&a, &b}));  // in the order of insertion
  EXPECT_EQ(bubble.holder, nullptr);
  EXPECT_EQ(bubble.member_count, 2u);  // it remembers them
}

TEST(Bubble, WhatIsInsertedAfterTheBurstComesOutThere) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity late;
  ASSERT_TRUE(take_in_hand(bubble));
  burst(bubble, queue);
  insert(bubble, late);
  EXPECT_EQ(late.holder, &queue);
}

TEST(Bubble, InsertSaysWhereSomethingCameOut) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity early;
  TreeEntity late;
  TreeEntity self;
  EXPECT_EQ(insert(bubble, early), nullptr);
  ASSERT_TRUE(take_in_hand(bubble));
  burst(bubble, queue);
  EXPECT_EQ(insert(bubble, late), &queue);
  EXPECT_EQ(insert(bubble, self, true), nullptr);
}

TEST(Bubble, OneThatIsOpenAndEmptyRetires) {
  RunQueue queue;
  NestedBubble outer;
  NestedBubble inner;
  TreeEntity thread;
  insert(inner, thread);
  insert(outer, inner);
  EXPECT_FALSE(retire(inner));  // closed
  ASSERT_TRUE(take_in_hand(outer));
  burst(outer, queue);
  take(queue, inner);
  ASSERT_TRUE(take_in_hand(inner));
  burst(inner, queue);
  EXPECT_FALSE(retire(inner));  // not empty
  take(queue, thread);
  leave(thread);
  ASSERT_TRUE(retire(inner));
  EXPECT_EQ(inner.state, BubbleState::kClosed);
  EXPECT_EQ(inner.bubble, nullptr);
  EXPECT_EQ(inner.holder, nullptr);
  EXPECT_EQ(outer.member_count, 0u);
  EXPECT_FALSE(retire(inner));
  // It can be used as a fresh one.
  insert(inner, thread);
  EXPECT_EQ(insert(outer, inner), &queue);
  ASSERT_TRUE(inner.holder == &queue);
  take(queue, inner);
  ASSERT_TRUE(take_in_hand(inner));
  EXPECT_EQ(burst(inner, queue), 1u);
}

TEST(Bubble, ItDoesNotRetireFromUnderWhoClosesOrDecidesAboutTheOneAround) {
  RunQueue queue;
  NestedBubble outer;
  NestedBubble inner;
  insert(outer, inner);
  ASSERT_TRUE(take_in_hand(outer));
  burst(outer, queue);
  take(queue, inner);
  ASSERT_TRUE(take_in_hand(inner));
  // Somebody closes the outer one while a worker has the inner one in hand: it waits for it.
  EXPECT_FALSE(close(outer));
  EXPECT_FALSE(retire(inner));
  burst(inner, queue);
  EXPECT_EQ(outer.state, BubbleState::kClosed);
  ASSERT_TRUE(take_in_hand(outer));
  EXPECT_FALSE(retire(inner));
  put_down(outer);
  EXPECT_TRUE(retire(inner));  // held, and empty
  EXPECT_EQ(inner.holder, nullptr);
  EXPECT_EQ(outer.member_count, 0u);
}

TEST(Lend, AThreadComesAndGoesWhileItsBubbleLiesClosed) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity thread, rest;
  insert(bubble, thread);
  insert(bubble, rest);
  requeue(bubble, queue);
  ASSERT_TRUE(lend(thread));
  EXPECT_FALSE(lend(thread));  // it is out
  EXPECT_EQ(thread.holder, nullptr);
  EXPECT_EQ(on(queue), List{&bubble});
  EXPECT_EQ(bubble.state, BubbleState::kClosed);
  // Preempted, or woken: ready beside the bubble and not in it.
  EXPECT_EQ(requeue(thread, queue), &queue);
  EXPECT_EQ(on(queue), (List{&bubble, &thread}));
  take(queue, thread);
  // The rest comes out when somebody finds the bubble, and this one is not let out twice.
  take(queue, bubble);
  ASSERT_TRUE(take_in_hand(bubble));
  EXPECT_EQ(burst(bubble, queue), 1u);
  EXPECT_EQ(on(queue), List{&rest});
  EXPECT_EQ(requeue(thread, queue), &queue);
  take(queue, thread);
  EXPECT_EQ(leave(thread), nullptr);
  EXPECT_EQ(bubble.member_count, 1u);
  take(queue, rest);
}

TEST(Lend, NothingThatIsDecidedAboutOrWasOpenOrIsASequence) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity thread;
  insert(bubble, thread);
  bubble.relation = Relation::kSequence;
  EXPECT_FALSE(lend(thread));
  bubble.relation = Relation::kNone;
  ASSERT_TRUE(take_in_hand(bubble));
  EXPECT_FALSE(lend(thread));
  burst(bubble, queue);
  EXPECT_FALSE(lend(thread));
  EXPECT_TRUE(close(bubble, &queue));
  EXPECT_EQ(thread.holder, &bubble);
  EXPECT_FALSE(lend(thread));  // regenerated: it is the policy's when it opens again
  take(queue, bubble);
}

TEST(Lend, WhatIsLentGoesBackWhenTheBubbleCloses) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity running, blocked;
  insert(bubble, running);
  insert(bubble, blocked);
  for (TreeEntity* thread : {&running, &blocked}) {
    ASSERT_TRUE(lend(*thread));
    note_running(*thread, 0, 0);
  }
  EXPECT_EQ(note_blocked(blocked), nullptr);
  ASSERT_TRUE(take_in_hand(bubble));
  EXPECT_EQ(burst(bubble, queue), 0u);
  EXPECT_FALSE(close(bubble, &queue));  // one runs
  EXPECT_EQ(requeue(running, queue), &queue);
  EXPECT_EQ(running.holder, &bubble);
  EXPECT_EQ(on(queue), List{&bubble});
  // Woken, it is no longer lent: the bubble has it.
  EXPECT_EQ(requeue(blocked, queue), nullptr);
  EXPECT_EQ(blocked.holder, &bubble);
  take(queue, bubble);
}

TEST(Lend, WhoIsWokenWhileAWorkerHasTheBubbleInHandComesOutWithTheRest) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity thread;
  insert(bubble, thread);
  ASSERT_TRUE(lend(thread));
  ASSERT_TRUE(take_in_hand(bubble));
  EXPECT_EQ(requeue(thread, queue), nullptr);
  EXPECT_EQ(thread.holder, &bubble);
  EXPECT_EQ(burst(bubble, queue), 1u);
  EXPECT_EQ(on(queue), List{&thread});
  take(queue, thread);
}

TEST(Bubble, ARunningThreadMovesItselfInAndStaysOut) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity self;
  insert(bubble, self, true);
  EXPECT_EQ(self.holder, nullptr);
  // Closed: when it stops running it waits in the bubble.
  EXPECT_EQ(requeue(self, queue), nullptr);
  EXPECT_EQ(self.holder, &bubble);
}

TEST(Bubble, RemoveTakesOffTheBubbleOrTheQueueButNotFromARunner) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity held, queued, running;
  insert(bubble, queued);
  insert(bubble, running);
  ASSERT_TRUE(take_in_hand(bubble));
  burst(bubble, queue);
  take(queue, running);
  EXPECT_FALSE(remove(running));
  EXPECT_TRUE(remove(queued));
  EXPECT_TRUE(on(queue).empty());
  EXPECT_EQ(queued.bubble, nullptr);
  EXPECT_EQ(queued.holder, nullptr);
  leave(running);
  EXPECT_EQ(bubble.member_count, 0u);

  NestedBubble closed;
  insert(closed, held);
  EXPECT_TRUE(remove(held));
  EXPECT_EQ(held.holder, nullptr);
  EXPECT_EQ(closed.member_count, 0u);
}

TEST(Close, TakesQueuedMembersBackAtOnce) {
  RunQueue high, low;
  NestedBubble bubble;
  TreeEntity a, b;
  insert(bubble, a);
  insert(bubble, b);
  requeue(bubble, high);
  bubble.home = &high;
  take(high, bubble);
  ASSERT_TRUE(take_in_hand(bubble));
  burst(bubble, low);
  EXPECT_TRUE(close(bubble));
  EXPECT_EQ(on(high), List{&bubble});  // where it was released first, not where it burst
  EXPECT_TRUE(on(low).empty());
  EXPECT_EQ(a.holder, &bubble);
  EXPECT_EQ(b.holder, &bubble);
  EXPECT_FALSE(close(bubble));  // it is closed
}

TEST(Close, TheLastRunningMemberClosesIt) {
  RunQueue queue, other;
  NestedBubble bubble;
  TreeEntity a, b, c;
  for (TreeEntity* e : {&a, &b, &c}) insert(bubble, *e);
  ASSERT_TRUE(take_in_hand(bubble));
  burst(bubble, queue);
  take(queue, a);
  take(queue, b);
  EXPECT_FALSE(close(bubble, &other));
  EXPECT_TRUE(on(queue).empty());
  EXPECT_TRUE(on(other).empty());
  EXPECT_EQ(requeue(a, queue), nullptr);  // goes back into the bubble, not on the queue
  EXPECT_TRUE(on(other).empty());
  EXPECT_EQ(requeue(b, queue), &other);
  EXPECT_EQ(on(other), List{&bubble});
  EXPECT_EQ(bubble.state, BubbleState::kClosed);
  for (TreeEntity* e : {&a, &b, &c}) EXPECT_EQ(e->holder, &bubble);
}

TEST(Close, AMemberThatEndsIsNotWaitedFor) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity a, b;
  insert(bubble, a);
  insert(bubble, b);
  bubble.home = &queue;
  ASSERT_TRUE(take_in_hand(bubble));
  burst(bubble, queue);
  take(queue, a);
  EXPECT_FALSE(close(bubble));
  leave(a);
  EXPECT_EQ(on(queue), List{&bubble});
  EXPECT_EQ(bubble.member_count, 1u);
}

TEST(Close, InsertedMeanwhileIsHeld) {
  RunQueue queue;
  NestedBubble bubble;
  TreeEntity running, late;
  insert(bubble, running);
  ASSERT_TRUE(take_in_hand(bubble));
  burst(bubble, queue);
  take(queue, running);
  EXPECT_FALSE(close(bubble));
  insert(bubble, late);
  EXPECT_EQ(late.holder, &bubble);
  requeue(running, queue);
  EXPECT_EQ(bubble.state, BubbleState::kClosed);
}

TEST(Close, ClosesWhatHasBurstInside) {
  RunQueue queue, deep;
  NestedBubble outer, inner;
  TreeEntity a, b, c;
  insert(inner, a);
  insert(inner, b);
  insert(outer, inner);
  insert(outer, c);
  outer.home = &queue;
  ASSERT_TRUE(take_in_hand(outer));
  burst(outer, queue);
  take(queue, inner);
  ASSERT_TRUE(take_in_hand(inner));
  burst(inner, deep);
  take(deep, b);  // runs
  EXPECT_FALSE(close(outer));
  EXPECT_TRUE(on(queue).empty());
  EXPECT_TRUE(on(deep).empty());
  EXPECT_EQ(c.holder, &outer);
  EXPECT_EQ(inner.state, BubbleState::kClosing);
  EXPECT_EQ(requeue(b, deep), &queue);  // closes inner, which closes outer
  EXPECT_EQ(on(queue), List{&outer});
  EXPECT_EQ(inner.holder, &outer);
  EXPECT_EQ(inner.state, BubbleState::kClosed);
  EXPECT_EQ(a.holder, &inner);
}

TEST(Close, ABubbleThatAWorkerThinksAboutComesBackWhateverItDecides) {
  for (const bool bursts : {true, false}) {
    RunQueue queue, low;
    NestedBubble outer, inner;
    TreeEntity a;
    insert(inner, a);
    insert(outer, inner);
    outer.home = &queue;
    ASSERT_TRUE(take_in_hand(outer));
    burst(outer, queue);
    take(queue, inner);
    ASSERT_TRUE(take_in_hand(inner));
    EXPECT_FALSE(close(outer));
    if (bursts) {
      burst(inner, low);
    } else {
      put_down(inner);
      requeue(inner, low);
    }
    EXPECT_TRUE(on(low).empty());
    EXPECT_EQ(inner.holder, &outer);
    EXPECT_EQ(a.holder, &inner);
    EXPECT_EQ(on(queue), List{&outer});
  }
}

TEST(Close, ABubbleThatIsClosingAlreadyIsAwaited) {
  RunQueue queue;
  NestedBubble outer, inner;
  TreeEntity a;
  insert(inner, a);
  insert(outer, inner);
  outer.home = &queue;
  ASSERT_TRUE(take_in_hand(outer));
  burst(outer, queue);
  take(queue, inner);
  ASSERT_TRUE(take_in_hand(inner));
  burst(inner, queue);
  take(queue, a);
  EXPECT_FALSE(close(inner));
  EXPECT_FALSE(close(outer));
  EXPECT_EQ(requeue(a, queue), &queue);
  EXPECT_EQ(on(queue), List{&outer});
}

TEST(Ghosts, AnOpenBubbleServesThemInFrontAndClosingTakesItOff) {
  RunQueue queue;
  Bubble team;
  team.ghosts.open(4, 0);
  NestedBubble bubble;
  bubble.team = &team;
  TreeEntity a;
  insert(bubble, a);
  bubble.home = &queue;
  ASSERT_TRUE(take_in_hand(bubble));
  burst(bubble, queue);
  EXPECT_EQ(on(queue), (List{&bubble, &a}));
  EXPECT_TRUE(bubble.serving);
  EXPECT_TRUE(close(bubble));
  EXPECT_EQ(on(queue), List{&bubble});
  EXPECT_FALSE(bubble.serving);
  EXPECT_EQ(bubble.ghosts_left(), 4u);
}

TEST(Ghosts, ClosingTheBubbleAroundTakesAServingOneBack) {
  RunQueue queue;
  Bubble team;
  team.ghosts.open(4, 0);
  NestedBubble outer, inner;
  inner.team = &team;
  insert(outer, inner);
  outer.home = &queue;
  ASSERT_TRUE(take_in_hand(outer));
  burst(outer, queue);
  take(queue, inner);
  ASSERT_TRUE(take_in_hand(inner));
  burst(inner, queue);
  EXPECT_EQ(on(queue), List{&inner});
  EXPECT_TRUE(close(outer));
  EXPECT_EQ(on(queue), List{&outer});
  EXPECT_EQ(inner.holder, &outer);
  EXPECT_EQ(inner.state, BubbleState::kClosed);
}

TEST(Ghosts, ClosingTheBubbleAroundWaitsForRunnersOfAServingOne) {
  RunQueue queue;
  Bubble team;
  team.ghosts.open(4, 0);
  NestedBubble outer, inner;
  TreeEntity a;
  inner.team = &team;
  insert(inner, a);
  insert(outer, inner);
  outer.home = &queue;
  ASSERT_TRUE(take_in_hand(outer));
  burst(outer, queue);
  take(queue, inner);
  ASSERT_TRUE(take_in_hand(inner));
  burst(inner, queue);
  take(queue, a);
  EXPECT_FALSE(close(outer));
  EXPECT_TRUE(on(queue).empty());
  EXPECT_EQ(inner.whereabouts, Whereabouts::kAwaited);
  EXPECT_EQ(requeue(a, queue), &queue);
  EXPECT_EQ(on(queue), List{&outer});
}

TEST(Summary, AddsUpTheTree) {
  Bubble team;
  team.ghosts.open(10, 0);
  NestedBubble outer, inner, loaded;
  inner.team = &team;
  TreeEntity a, b, c, d;
  insert(outer, inner);
  insert(inner, a);
  insert(outer, loaded);
  insert(loaded, b);
  insert(loaded, c);
  insert(outer, d);
  a.figures.load = 5;
  b.figures.load = 100;  // inside a bubble whose load was told: does not count
  loaded.figures.load = 7;
  a.figures.cpu_ns = 30;
  d.figures.cpu_ns = 12;
  note_running(a, 3, 8);
  note_blocked(d);
  const Summary sum = summarize(outer);
  EXPECT_EQ(sum.threads, 4u);
  EXPECT_EQ(sum.bubbles, 3u);
  EXPECT_EQ(sum.ghosts, 10u);
  EXPECT_EQ(sum.running, 1u);
  EXPECT_EQ(sum.blocked, 1u);
  EXPECT_EQ(sum.ready, 2u);
  EXPECT_EQ(sum.load, 10u + 5u + 7u + 1u);
  EXPECT_EQ(sum.cpu_ns, 42u);
  EXPECT_EQ(sum.cpu_unknown, 2u);
  EXPECT_EQ(a.figures.last_worker, 3u);
  EXPECT_EQ(a.figures.last_domain, 8u);
  EXPECT_EQ(summarize(d).threads, 1u);
}

TEST(Summary, OfFootprintsSaysHowManyAreKnown) {
  NestedBubble outer, inner;
  TreeEntity a, b;
  insert(outer, inner);
  insert(inner, a);
  insert(outer, b);
  const std::array<std::atomic<std::uint64_t>, 2> of_a{{100, 1}};
  const std::array<std::atomic<std::uint64_t>, 2> of_inner{{0, 50}};
  a.figures.footprint = of_a.data();
  inner.figures.footprint = of_inner.data();
  std::array<std::uint64_t, 2> bytes{};
  EXPECT_EQ(add_footprint(outer, bytes.data(), 2), 2u);
  EXPECT_EQ(bytes, (std::array<std::uint64_t, 2>{100, 51}));
  EXPECT_EQ(add_footprint(b, bytes.data(), 2), 0u);
}

// ---- random sequences: what must hold after every step

/// A tree of bubbles, some queues, and a set of running entities, driven at random by one thread.
class Forest {
 public:
  Forest(std::uint32_t seed, std::uint32_t n_bubbles, std::uint32_t n_threads)
      : random_(seed), bubbles_(n_bubbles), teams_(n_bubbles), threads_(n_threads), queues_(5) {
    for (std::uint32_t i = 0; i < n_bubbles; ++i) {
      if (pick(3) != 0) continue;
      teams_[i].ghosts.open(1 + pick(20), 0);
      bubbles_[i].team = &teams_[i];
    }
    for (std::uint32_t i = 1; i < n_bubbles; ++i) insert(bubbles_[pick(i)], bubbles_[i]);
    for (TreeEntity& thread : threads_) insert(bubbles_[pick(n_bubbles)], thread);
    bubbles_[0].home = &queues_[0];
    requeue(bubbles_[0], queues_[0]);
  }

  void step() {
    RunQueue& queue = queues_[pick(queues_.size())];
    switch (pick(9)) {
      case 0:
      case 1:
      case 2: {  // a worker takes what is first
        if (queue.first == nullptr) break;
        auto* entity = static_cast<TreeEntity*>(queue.first);
        NestedBubble* bubble = as_bubble(entity);
        if (bubble != nullptr && bubble->serving && bubble->ghosts_left() != 0) {
          ASSERT_TRUE(bubble->team->ghosts.claim(1));
          break;
        }
        queue.remove_locked(entity);
        if (bubble != nullptr) {
          const bool open = bubble->state == BubbleState::kBurst;
          ASSERT_EQ(take_in_hand(*bubble), !open);
          if (open) {
            ASSERT_EQ(bubble->ghosts_left(), 0u);  // it was there for them only
          } else if (pick(3) == 0 && bubble->ghosts_left() != 0) {
            serve_ghosts_from(*bubble, queue);
          } else if (pick(2) == 0) {
            burst(*bubble, queue);
          } else {
            in_hand_.push_back(bubble);
          }
        } else {
          running_.push_back(entity);
        }
        break;
      }
      case 3:
      case 4: {  // a thread stops running
        if (running_.empty()) break;
        TreeEntity* thread = take_one(running_);
        requeue(*thread, queue, pick(3) == 0);
        break;
      }
      case 5: {  // a decision falls
        if (in_hand_.empty()) break;
        NestedBubble* bubble = take_one(in_hand_);
        if (pick(2) == 0) {
          burst(*bubble, queue);
        } else {
          put_down(*bubble);
          requeue(*bubble, queue);
        }
        break;
      }
      case 6: {  // somebody regenerates a bubble
        NestedBubble& bubble = bubbles_[pick(bubbles_.size())];
        const bool was_open = bubble.state == BubbleState::kBurst;
        close(bubble);
        if (!was_open) break;
        ASSERT_TRUE(bubble.state == BubbleState::kClosed || bubble.state == BubbleState::kClosing);
        break;
      }
      case 7: {  // a thread moves to another bubble
        TreeEntity& thread = threads_[pick(threads_.size())];
        const NestedBubble* from = thread.bubble;
        if (from->state == BubbleState::kInHand) break;  // remove() would wait for ever
        const bool runs = std::count(running_.begin(), running_.end(), &thread) != 0;
        if (runs)
          leave(thread);
        else
          ASSERT_TRUE(remove(thread));
        insert(bubbles_[pick(bubbles_.size())], thread, runs);
        break;
      }
      case 8: {  // somebody waits for a thread
        TreeEntity& thread = threads_[pick(threads_.size())];
        const bool held = thread.holder == thread.bubble;
        const NestedBubble& bubble = *thread.bubble;
        const bool may = held && bubble.state == BubbleState::kClosed && bubble.burst_on == nullptr;
        ASSERT_EQ(lend(thread), may);
        if (may) running_.push_back(&thread);
        break;
      }
    }
  }

  /// Every entity is in exactly one place, and that place knows it.
  void check() {
    std::vector<std::uint32_t> seen(bubbles_.size() + threads_.size(), 0);
    const auto number = [&](const Entity* entity) {
      for (std::size_t i = 0; i < bubbles_.size(); ++i)
        if (&bubbles_[i] == entity) return i;
      for (std::size_t i = 0; i < threads_.size(); ++i)
        if (&threads_[i] == entity) return bubbles_.size() + i;
      ADD_FAILURE() << "a stranger";
      return std::size_t{0};
    };
    for (RunQueue& queue : queues_) {
      std::uint32_t length = 0;
      for (const Entity* e : on(queue)) {
        ++seen[number(e)];
        ++length;
        ASSERT_EQ(e->holder, &queue);
        const auto* t = static_cast<const TreeEntity*>(e);
        ASSERT_EQ(t->last_queue, &queue);
        // On a queue only if no bubble around it is closed, but for what was lent before that was ever open.
        ASSERT_TRUE(t->bubble == nullptr || t->bubble->state == BubbleState::kBurst ||
                    t->bubble->state == BubbleState::kInHand ||
                    (t->lent && t->bubble->burst_on == nullptr));
      }
      ASSERT_EQ(queue.length, length);
    }
    for (NestedBubble& bubble : bubbles_) {
      std::uint32_t members = 0;
      std::uint32_t awaited = 0;
      for (TreeEntity* m = bubble.first_member; m != nullptr; m = m->next_member) {
        ++members;
        ASSERT_EQ(m->bubble, &bubble);
        if (m->whereabouts == Whereabouts::kHeld) {
          ++seen[number(m)];
          ASSERT_EQ(m->holder, &bubble);
          const NestedBubble* inner = as_bubble(m);
          ASSERT_TRUE(inner == nullptr || inner->state == BubbleState::kClosed);
        }
        awaited += m->whereabouts == Whereabouts::kAwaited;
      }
      ASSERT_EQ(bubble.member_count, members);
      ASSERT_EQ(bubble.awaited, awaited);
      ASSERT_EQ(bubble.state == BubbleState::kClosing, awaited != 0);
    }
    for (TreeEntity* thread : running_) {
      ++seen[number(thread)];
      ASSERT_EQ(thread->holder, nullptr);
    }
    for (NestedBubble* bubble : in_hand_) {
      ++seen[number(bubble)];
      ASSERT_EQ(bubble->holder, nullptr);
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const bool open = i < bubbles_.size() && (bubbles_[i].state == BubbleState::kBurst ||
                                                bubbles_[i].state == BubbleState::kClosing);
      const bool serves = open && bubbles_[i].holder != nullptr;
      ASSERT_TRUE(!serves || bubbles_[i].serving);
      ASSERT_EQ(seen[i], open && !serves ? 0u : 1u) << "entity " << i;
    }
    const Summary sum = summarize(bubbles_[0]);
    ASSERT_EQ(sum.threads, threads_.size());
    ASSERT_EQ(sum.bubbles, bubbles_.size());
  }

  /// Everything goes back into the outermost bubble, but for what closed ones in it have lent.
  void close_all() {
    for (int round = 0; round < 100; ++round) {
      while (!in_hand_.empty()) {
        NestedBubble* bubble = take_one(in_hand_);
        put_down(*bubble);
        requeue(*bubble, queues_[0]);
      }
      while (!running_.empty()) requeue(*take_one(running_), queues_[1]);
      close(bubbles_[0]);
    }
    ASSERT_EQ(bubbles_[0].state, BubbleState::kClosed);
    std::uint32_t queued = 0;
    for (RunQueue& queue : queues_) queued += queue.length;
    const auto is_lent = [](const TreeEntity& thread) {
      return thread.lent && thread.whereabouts == Whereabouts::kOut &&
             thread.bubble->burst_on == nullptr;
    };
    // Wherever it went before it was found closed.
    ASSERT_EQ(queued, 1u + std::count_if(threads_.begin(), threads_.end(), is_lent));
    ASSERT_EQ(bubbles_[0].holder, bubbles_[0].last_queue);
    for (std::size_t i = 1; i < bubbles_.size(); ++i) {
      ASSERT_EQ(bubbles_[i].holder, bubbles_[i].bubble);
      ASSERT_EQ(bubbles_[i].state, BubbleState::kClosed);
    }
    for (TreeEntity& thread : threads_)
      ASSERT_EQ(thread.holder,
                is_lent(thread) ? static_cast<Holder*>(thread.last_queue) : thread.bubble);
  }

 private:
  std::uint32_t pick(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }
  template <class T>
  T take_one(std::vector<T>& from) {
    const std::size_t at = pick(from.size());
    T taken = from[at];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
    return taken;
  }

  std::mt19937 random_;
  std::deque<NestedBubble> bubbles_;
  std::deque<Bubble> teams_;  // of some of them
  std::deque<TreeEntity> threads_;
  std::deque<RunQueue> queues_;
  std::vector<TreeEntity*> running_;
  std::vector<NestedBubble*> in_hand_;
};

void run_random(std::uint32_t seed, std::uint32_t bubbles, std::uint32_t threads, int steps) {
  Forest forest(seed, bubbles, threads);
  for (int i = 0; i < steps; ++i) {
    ASSERT_NO_FATAL_FAILURE(forest.step()) << "step " << i;
    ASSERT_NO_FATAL_FAILURE(forest.check()) << "after step " << i;
  }
  ASSERT_NO_FATAL_FAILURE(forest.close_all());
}

TEST(Bubble, NothingIsLostInRandomSequences) {
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(run_random(seed, 1 + seed % 9, 1 + seed % 17, 400));
  }
}

#ifdef BOSK_HAVE_RAPIDCHECK
RC_GTEST_PROP(BubbleProperty, NothingIsLostInRandomSequences, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const auto bubbles = *rc::gen::inRange<std::uint32_t>(1, 12);
  const auto threads = *rc::gen::inRange<std::uint32_t>(1, 20);
  const int steps = *rc::gen::inRange(1, 300);
  run_random(seed, bubbles, threads, steps);
  RC_ASSERT(!testing::Test::HasFatalFailure());
}
#endif

}  // namespace
