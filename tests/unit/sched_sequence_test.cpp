// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sequences: one member after another, whatever is put in, taken out or regenerated meanwhile.
#include "sched/sequence.h"

#include <gtest/gtest.h>

#include <deque>

namespace {

using namespace bosk::sched;

class Sequence : public testing::Test {
 protected:
  Sequence() : threads_(5) {
    bubble_.relation = Relation::kSequence;
    for (TreeEntity& thread : threads_) insert(bubble_, thread);
  }
  ~Sequence() override { queue_.first = nullptr; }

  void open() {
    ASSERT_TRUE(take_in_hand(bubble_));
    burst(bubble_, queue_);
  }
  TreeEntity* only() const {
    return queue_.length == 1 ? static_cast<TreeEntity*>(queue_.first) : nullptr;
  }
  /// Takes what is on the queue, as a worker does.
  TreeEntity* take() {
    TreeEntity* taken = only();
    if (taken != nullptr) queue_.remove_locked(taken);
    return taken;
  }

  RunQueue queue_;
  NestedBubble bubble_;
  std::deque<TreeEntity> threads_;
};

TEST_F(Sequence, OneComesOutWhenTheOneBeforeHasEnded) {
  ASSERT_NO_FATAL_FAILURE(open());
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    ASSERT_EQ(take(), &threads_[i]);
    EXPECT_EQ(queue_.length, 0u);
    EXPECT_EQ(leave(threads_[i]), i + 1 < threads_.size() ? &queue_ : nullptr);
  }
  EXPECT_EQ(bubble_.member_count, 0u);
}

TEST_F(Sequence, APreemptedOneGoesOnBeforeTheNext) {
  ASSERT_NO_FATAL_FAILURE(open());
  TreeEntity* first = take();
  EXPECT_EQ(requeue(*first, queue_), &queue_);
  EXPECT_EQ(take(), first);
}

TEST_F(Sequence, WhatIsPutInLaterWaitsForItsTurn) {
  ASSERT_NO_FATAL_FAILURE(open());
  TreeEntity late;
  insert(bubble_, late);
  EXPECT_EQ(late.whereabouts, Whereabouts::kHeld);
  for (TreeEntity& thread : threads_) {
    ASSERT_EQ(take(), &thread);
    leave(thread);
  }
  EXPECT_EQ(take(), &late);
  leave(late);
  TreeEntity later;  // into an open and empty one
  insert(bubble_, later);
  EXPECT_EQ(take(), &later);
}

TEST_F(Sequence, TheNextMayBeTakenOutOfIt) {
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_TRUE(remove(threads_[1]));
  EXPECT_EQ(only(), &threads_[0]);
  EXPECT_TRUE(remove(threads_[0]));
  EXPECT_EQ(only(), &threads_[2]);
}

TEST_F(Sequence, ClosesAndGoesOnWhereItWas) {
  ASSERT_NO_FATAL_FAILURE(open());
  leave(*take());
  TreeEntity* running = take();
  EXPECT_EQ(running, &threads_[1]);
  EXPECT_FALSE(close(bubble_));  // awaits the one that runs
  requeue(*running, queue_);
  EXPECT_EQ(bubble_.state, BubbleState::kClosed);
  EXPECT_EQ(take(), &bubble_);
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(take(), &threads_[1]);
}

TEST_F(Sequence, ABubbleInsideHasEndedWhenAllInItHas) {
  NestedBubble outer;
  outer.relation = Relation::kSequence;
  NestedBubble phase[3];
  TreeEntity work[3];
  for (int i = 0; i < 3; ++i) {
    insert(outer, phase[i]);
    if (i != 1) insert(phase[i], work[i]);  // the one in the middle is empty
  }
  ASSERT_TRUE(take_in_hand(outer));
  burst(outer, queue_);
  ASSERT_EQ(take(), &phase[0]);
  ASSERT_TRUE(take_in_hand(phase[0]));
  burst(phase[0], queue_);
  ASSERT_EQ(take(), &work[0]);
  EXPECT_EQ(leave(work[0]), &queue_);
  ASSERT_EQ(take(), &phase[1]);
  ASSERT_TRUE(take_in_hand(phase[1]));
  burst(phase[1], queue_);
  ASSERT_EQ(take(), &phase[2]);
}

}  // namespace
