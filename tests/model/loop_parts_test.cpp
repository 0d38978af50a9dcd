// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of a dynamic loop under the checker: members take their own chunks and steal each other's.
#include "omp/loop_parts.h"

#include <memory>

#include "checker/expect.h"

namespace {

using A = model::ModelAtomics;

struct Setting {
  std::uint32_t members = 2;
  std::uint32_t chunks = 4;
  std::uint32_t mine = 2;     // of them, in the first member's part; the others have the rest
  bool early_refill = false;  // planted: a member refills a part that is not empty
  bool halves = false;        // as guided loops do
};

struct Loop {
  bosk::omp::LoopPart<A> parts[3];
  A::plain<int> ran[8];  // a chunk that runs twice is a data race, or a 2
};

void run(Loop& loop, std::uint32_t chunk) { loop.ran[chunk] = loop.ran[chunk] + 1; }

void member(Loop& loop, const Setting& s, std::uint32_t index) {
  std::uint32_t chunk;
  for (;;) {
    if (s.halves) {
      std::uint32_t first, end;
      while (loop.parts[index].take_half(&first, &end))
        while (first < end) run(loop, first++);
    } else {
      while (loop.parts[index].take(&chunk)) {
        run(loop, chunk);
        if (s.early_refill) break;
      }
    }
    bool found = false;
    for (std::uint32_t step = 1; step < s.members && !found; ++step) {
      std::uint32_t first, end;
      if (!loop.parts[(index + step) % s.members].steal(&first, &end)) continue;
      found = true;
      const std::uint32_t now = s.halves ? end - (end - first) / 2 : first + 1;
      loop.parts[index].refill(now, end);
      while (first < now) run(loop, first++);
    }
    if (!found) return;
  }
}

std::function<void()> loop_of(const Setting& s) {
  return [s] {
    auto loop = std::make_shared<Loop>();
    loop->parts[0].refill(0, s.mine);
    for (std::uint32_t i = 1; i < s.members; ++i)
      loop->parts[i].refill(i == 1 ? s.mine : s.chunks, s.chunks);
    for (std::uint32_t i = 0; i < s.members; ++i) model::spawn([=] { member(*loop, s, i); });
    model::at_end([=] {
      for (std::uint32_t i = 0; i < s.chunks; ++i) MODEL_ASSERT(loop->ran[i] == 1);
    });
  };
}

TEST(LoopParts, TwoMembers) {
  model::expect_big_proved({}, loop_of({}));
  model::expect_big_proved({}, loop_of({.chunks = 3, .mine = 0}));
}
TEST(LoopParts, TwoMembersTakeHalves) {
  model::expect_big_proved({}, loop_of({.halves = true}));
  model::expect_big_proved({}, loop_of({.chunks = 5, .mine = 1, .halves = true}));
}
TEST(LoopParts, ThreeMembers) {
  model::expect_big_proved({}, loop_of({.members = 3, .chunks = 3, .mine = 3}));
}
TEST(LoopParts, ThreeMembersAtRandom) {
  const model::Result r =
      model::explore({.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 9},
                     loop_of({.members = 3, .chunks = 8, .mine = 5}));
  EXPECT_FALSE(r.failed) << r.failure;
  const model::Result halves =
      model::explore({.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 10},
                     loop_of({.members = 3, .chunks = 8, .mine = 5, .halves = true}));
  EXPECT_FALSE(halves.failed) << halves.failure;
}
TEST(LoopPartsPlanted, RefilledWhileChunksAreLeft) {
  model::expect_failure({}, loop_of({.chunks = 4, .early_refill = true}), "assertion failed");
}

}  // namespace
