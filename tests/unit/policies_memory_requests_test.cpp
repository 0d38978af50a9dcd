// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Requests to look at a bubble's memory: each bubble once, in turn, for the reason that has most done.
#include "policies/memory/requests.h"

#include <gtest/gtest.h>

namespace bosk::policies {
namespace {

MemoryTrigger left_of(MemoryTrigger first, MemoryTrigger second) {
  MemoryRequests requests;
  requests.set_served(true);
  EXPECT_TRUE(requests.put(7, first));
  EXPECT_FALSE(requests.put(7, second));
  MemoryRequest request{};
  EXPECT_TRUE(requests.take(&request));
  EXPECT_EQ(request.name, 7u);
  MemoryRequest other{};
  EXPECT_FALSE(requests.take(&other));
  return request.trigger;
}

TEST(MemoryRequests, OfTwoReasonsTheMoreUrgentOneIsLeft) {
  constexpr MemoryTrigger kLesser[] = {MemoryTrigger::kIdle, MemoryTrigger::kAttached,
                                       MemoryTrigger::kRemote};
  for (const MemoryTrigger lesser : kLesser) {
    for (const MemoryTrigger urgent : {MemoryTrigger::kPlaced, MemoryTrigger::kHint}) {
      EXPECT_EQ(left_of(lesser, urgent), urgent);
      EXPECT_EQ(left_of(urgent, lesser), urgent);
    }
    for (const MemoryTrigger other : kLesser) EXPECT_EQ(left_of(lesser, other), lesser);
  }
  EXPECT_EQ(left_of(MemoryTrigger::kPlaced, MemoryTrigger::kHint), MemoryTrigger::kHint);
  EXPECT_EQ(left_of(MemoryTrigger::kHint, MemoryTrigger::kPlaced), MemoryTrigger::kHint);
}

TEST(MemoryRequests, ComeInTurnAroundTheRing) {
  MemoryRequests requests;
  requests.set_served(true);
  uint64_t put = 1;
  uint64_t taken = 1;
  for (int turn = 0; turn < 100; ++turn) {
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(requests.put(put++, MemoryTrigger::kIdle));
    // The last one again, which lies around the ring's end now and then.
    EXPECT_FALSE(requests.put(put - 1, MemoryTrigger::kPlaced));
    for (int i = 0; i < 40; ++i) {
      MemoryRequest request{};
      ASSERT_TRUE(requests.take(&request));
      EXPECT_EQ(request.name, taken++);
      EXPECT_EQ(request.trigger, i == 39 ? MemoryTrigger::kPlaced : MemoryTrigger::kIdle);
    }
  }
}

TEST(MemoryRequests, ThatFindNoRoomAreLostAndThoseBeforeAreNot) {
  MemoryRequests requests;
  requests.set_served(true);
  for (uint64_t name = 1; name <= MemoryRequests::kRoom; ++name)
    EXPECT_TRUE(requests.put(name, MemoryTrigger::kIdle));
  EXPECT_FALSE(requests.put(1000, MemoryTrigger::kHint));
  EXPECT_FALSE(requests.put(5, MemoryTrigger::kHint));
  MemoryRequest request{};
  for (uint64_t name = 1; name <= MemoryRequests::kRoom; ++name) {
    ASSERT_TRUE(requests.take(&request));
    EXPECT_EQ(request.name, name);
    EXPECT_EQ(request.trigger, name == 5 ? MemoryTrigger::kHint : MemoryTrigger::kIdle);
  }
  EXPECT_FALSE(requests.take(&request));
  EXPECT_TRUE(requests.put(1000, MemoryTrigger::kHint));
  requests.forget();
  EXPECT_FALSE(requests.take(&request));
}

}  // namespace
}  // namespace bosk::policies
