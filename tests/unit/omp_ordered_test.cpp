// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ordered and doacross loops on kernel threads.
#include "omp/ordered.h"

#include <gtest/gtest.h>

#include "omp/doacross.h"
#include "omp_worksharing_support.h"

namespace bosk::omp {
namespace {

LoopBounds counting_to(uint64_t count) { return bounds_of(true, 0ull, count, 1ull); }

/// Runs an ordered loop; iterations for which `skip` holds meet no ordered region.
template <typename Skip>
void run_ordered(uint32_t size, LoopSchedule schedule, uint64_t count, Skip skip) {
  FakeTeam fake(size);
  for (int region = 0; region < 3; ++region) {
    std::vector<uint64_t> order;  // written inside ordered regions only: a race would show here
    fake.run([&](ImplicitTask* member) {
      Chunk chunk;
      for (bool any = loop_start(member, counting_to(count), schedule, true, &chunk); any;
           any = loop_next(member, &chunk)) {
        for (uint64_t v = chunk.begin; v < chunk.end; ++v) {
          if (skip(v)) continue;
          ordered_enter(member);
          order.push_back(v);
          ordered_leave(member);
        }
      }
      loop_finish(member);
    });
    std::vector<uint64_t> expected;
    for (uint64_t v = 0; v < count; ++v)
      if (!skip(v)) expected.push_back(v);
    ASSERT_EQ(order, expected) << size << " members, kind " << schedule.kind << ", chunk "
                               << schedule.chunk;
    fake.end();
  }
}

TEST(Ordered, RunsInOrder) {
  for (const uint32_t size : {1u, 2u, 5u})
    for (const uint32_t kind : {kScheduleStatic, kScheduleDynamic, kScheduleGuided})
      for (const uint64_t chunk : {0, 1, 4})
        for (const uint64_t count : {0, 1, 3, 100})
          run_ordered(size, {kind, chunk, false}, count, [](uint64_t) { return false; });
}

TEST(Ordered, IterationsWithoutAnOrderedRegionBlockNobody) {
  for (const uint32_t kind : {kScheduleStatic, kScheduleDynamic, kScheduleGuided})
    for (const uint64_t chunk : {0, 1, 3}) {
      run_ordered(4, {kind, chunk, false}, 60, [](uint64_t v) { return v % 3 != 0; });
      run_ordered(4, {kind, chunk, false}, 60, [](uint64_t) { return true; });
    }
}

TEST(Ordered, OutsideOfAnOrderedLoopNothingHappens) {
  FakeTeam fake(2);
  ImplicitTask* member = fake.members[0].get();
  ordered_enter(member);
  ordered_leave(member);
  Chunk chunk;
  ASSERT_TRUE(loop_start(member, counting_to(8), {kScheduleDynamic, 1, false}, false, &chunk));
  ordered_enter(member);
  ordered_leave(member);
  loop_finish(member);
}

TEST(Ordered, LoopsFollowOneAnotherWithoutABarrier) {
  FakeTeam fake(3);
  constexpr int kLoops = 50;
  std::vector<std::vector<uint64_t>> order(kLoops);
  fake.run([&](ImplicitTask* member) {
    for (int l = 0; l < kLoops; ++l) {
      Chunk chunk;
      for (bool any =
               loop_start(member, counting_to(10), {kScheduleDynamic, 1, false}, true, &chunk);
           any; any = loop_next(member, &chunk)) {
        ordered_enter(member);
        order[l].push_back(chunk.begin);
        ordered_leave(member);
      }
      loop_finish(member);
    }
  });
  for (const auto& of_loop : order) {
    ASSERT_EQ(of_loop.size(), 10u);
    for (uint64_t v = 0; v < 10; ++v) EXPECT_EQ(of_loop[v], v);
  }
  EXPECT_LE(fake.objects(), uint32_t{kLoops});
}

/// Every iteration (i, j) waits for (i - 1, j) and (i - 1, j + 1) and (i, j - 1), and checks that
/// they are complete.
void run_wave(uint32_t size, LoopSchedule schedule, uint64_t rows, uint64_t columns,
              uint64_t told_columns) {
  FakeTeam fake(size);
  // Not atomic: the waits must order the accesses.
  std::vector<uint64_t> done(rows * columns);
  std::atomic<uint64_t> iterations{0};
  fake.run([&](ImplicitTask* member) {
    const uint64_t counts[] = {rows, told_columns};
    Chunk chunk;
    for (bool any = doacross_start(member, 2, counts, schedule, {}, &chunk); any;
         any = loop_next(member, &chunk)) {
      for (uint64_t i = chunk.begin; i < chunk.end; ++i)
        for (uint64_t j = 0; j < columns; ++j) {
          const auto sink = [&](uint64_t a, uint64_t b) {
            const uint64_t vector[] = {a, b};
            doacross_wait(member, vector);
            EXPECT_EQ(done[a * columns + b], 1 + a * columns + b);
          };
          if (i > 0) sink(i - 1, j);
          if (i > 0 && j + 1 < columns) sink(i - 1, j + 1);
          if (j > 0) sink(i, j - 1);
          done[i * columns + j] = 1 + i * columns + j;
          iterations.fetch_add(1);
          const uint64_t vector[] = {i, j};
          doacross_post(member, vector);
        }
    }
    loop_finish(member);
  });
  EXPECT_EQ(iterations.load(), rows * columns);
}

TEST(Doacross, WaveFrontsOfEverySchedule) {
  for (const uint32_t size : {1u, 2u, 5u})
    for (const uint32_t kind : {kScheduleStatic, kScheduleDynamic, kScheduleGuided})
      for (const uint64_t chunk : {0, 1, 3}) {
        SCOPED_TRACE(testing::Message()
                     << size << " members, kind " << kind << ", chunk " << chunk);
        run_wave(size, {kind, chunk, false}, 90, 7, 7);
      }
}

TEST(Doacross, NestsTooLargeToNumberStillWait) {
  for (const uint32_t kind : {kScheduleStatic, kScheduleDynamic, kScheduleGuided})
    run_wave(3, {kind, 2, false}, 40, 5, uint64_t{1} << 62);
}

TEST(Doacross, AMemberFarAheadWaitsForItsSlot) {
  // No sinks at all: only the ring holds the fast member back from lapping the slow one, which stays
  // in chunk 0 until the other can only be waiting, or gone too far.
  FakeTeam fake(2);
  std::atomic<uint64_t> complete{0};
  std::atomic<bool> first_complete{false};
  uint64_t ring = 0;
  fake.run([&](ImplicitTask* member) {
    const uint64_t counts[] = {500};
    Chunk chunk;
    for (bool any = doacross_start(member, 1, counts, {kScheduleDynamic, 1, false}, {}, &chunk);
         any; any = loop_next(member, &chunk)) {
      if (chunk.begin == 0) {
        ring = member->workshare->slots_mask + 1;
        while (complete.load() < ring - 1) std::this_thread::yield();
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        first_complete.store(true);
      } else if (chunk.begin >= 16) {
        EXPECT_TRUE(first_complete.load()) << "chunk " << chunk.begin;
      }
      doacross_post(member, &chunk.begin);
      complete.fetch_add(1);
    }
    loop_finish(member);
  });
  EXPECT_LE(ring, 16u);
  EXPECT_EQ(complete.load(), 500u);
}

TEST(Doacross, ChunkOfAnIteration) {
  for (const uint32_t kind : {kScheduleStatic, kScheduleDynamic, kScheduleGuided})
    for (const uint64_t chunk : {0, 1, 6})
      for (const uint64_t count : {1, 5, 100}) {
        WorkShare share;
        share.size = 4;
        build_loop(share, counting_to(count), {kind, chunk, false}, true);
        const uint64_t chunks = share.handout == Handout::kBlock ? 4 : share.chunks;
        uint64_t before = 0;
        for (uint64_t v = 0; v < count; ++v) {
          const uint64_t k = chunk_with(share, v);
          EXPECT_LT(k, chunks);
          EXPECT_TRUE(k == before || k == before + 1);
          before = k;
        }
        free(share.table.at);
      }
}

}  // namespace
}  // namespace bosk::omp
