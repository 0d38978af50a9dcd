// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handing out iterations and sections: every schedule, members any number of constructs apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/atomics_policy.h"
#include "omp/loop_parts.h"
#include "omp/sections.h"
#include "omp/several_nodes.h"
#include "omp/single.h"
#include "omp_worksharing_support.h"

#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

namespace bosk::omp {
namespace {

using Ranges = std::vector<Chunk>;

/// Takes everything the members are given, member after member in turns, of one construct.
std::vector<Ranges> take_all(FakeTeam& fake, const LoopBounds& bounds, LoopSchedule schedule,
                             size_t most = SIZE_MAX) {
  std::vector<Ranges> taken(fake.members.size());
  std::vector<bool> started(fake.members.size()), done(fake.members.size());
  for (size_t left = fake.members.size(), total = 0; left > 0;) {
    for (size_t i = 0; i < fake.members.size(); ++i) {
      if (done[i]) continue;
      ImplicitTask* member = fake.members[i].get();
      Chunk chunk;
      const bool any = started[i] ? loop_next(member, &chunk)
                                  : loop_start(member, bounds, schedule, false, &chunk);
      started[i] = true;
      if (any && total++ < most) {
        taken[i].push_back(chunk);
      } else {
        EXPECT_FALSE(any) << "more chunks than there can be";
        done[i] = true;
        --left;
        loop_finish(member);
        EXPECT_FALSE(loop_next(member, &chunk));
      }
    }
  }
  return taken;
}

/// Chunks of a loop that counts up from 0 by 1 must cover [0, count) once.
void expect_cover(const std::vector<Ranges>& taken, uint64_t count) {
  Ranges all;
  for (const Ranges& of_member : taken) all.insert(all.end(), of_member.begin(), of_member.end());
  std::sort(all.begin(), all.end(), [](Chunk a, Chunk b) { return a.begin < b.begin; });
  uint64_t next = 0;
  for (const Chunk chunk : all) {
    ASSERT_EQ(chunk.begin, next);
    ASSERT_GT(chunk.end, chunk.begin);
    next = chunk.end;
  }
  ASSERT_EQ(next, count);
}

/// While it lives, the process is on that many memory nodes.
class OnNodes {
 public:
  explicit OnNodes(detail::Nodes nodes) : before_(detail::nodes.exchange(nodes)) {}
  ~OnNodes() { detail::nodes = before_; }
  OnNodes(const OnNodes&) = delete;
  OnNodes& operator=(const OnNodes&) = delete;

 private:
  detail::Nodes before_;
};

LoopBounds counting_to(uint64_t count) { return bounds_of(true, 0ull, count, 1ull); }

TEST(LoopHandout, EverySchedulesChunksCoverTheLoop) {
  for (const uint32_t size : {1u, 2u, 3u, 8u, 33u})
    for (const uint32_t kind : {kScheduleStatic, kScheduleDynamic, kScheduleGuided})
      for (const uint64_t chunk :
           {uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{1000}, UINT64_MAX})
        for (const uint64_t count : {0, 1, 2, 7, 64, 1000}) {
          FakeTeam fake(size);
          SCOPED_TRACE(testing::Message() << size << " members, kind " << kind << ", chunk "
                                          << chunk << ", count " << count);
          const auto taken = take_all(fake, counting_to(count), {kind, chunk, false});
          expect_cover(taken, count);
        }
}

TEST(LoopHandout, PartsCoverTheLoopInChunksOfTheLoop) {
  for (const uint32_t size : {2u, 3u, 8u, 33u})
    for (const uint64_t chunk : {1, 3, 16})
      for (const uint64_t count : {1000, 1001, 20'000}) {
        FakeTeam fake(size);
        SCOPED_TRACE(testing::Message()
                     << size << " members, chunk " << chunk << ", count " << count);
        const auto taken =
            take_all(fake, counting_to(count), in_any_order({kScheduleDynamic, chunk, false}));
        expect_cover(taken, count);
        for (const Ranges& of_member : taken)
          for (const Chunk& c : of_member) {
            EXPECT_EQ(c.begin % chunk, 0u);
            EXPECT_TRUE(c.end - c.begin == chunk || c.end == count);
          }
      }
}

TEST(LoopHandout, GuidedPartsCoverTheLoop) {
  const OnNodes nodes(detail::Nodes::kSeveral);
  for (const uint32_t size : {2u, 3u, 8u, 33u})
    for (const uint64_t chunk : {1, 3, 16})
      for (const uint64_t count : {1600, 1601, 20'000}) {
        FakeTeam fake(size);
        SCOPED_TRACE(testing::Message()
                     << size << " members, chunk " << chunk << ", count " << count);
        const auto taken =
            take_all(fake, counting_to(count), in_any_order({kScheduleGuided, chunk, false}));
        expect_cover(taken, count);
        for (const Ranges& of_member : taken)
          for (const Chunk& c : of_member)
            EXPECT_TRUE(c.end - c.begin >= chunk || c.end == count) << c.begin << " " << c.end;
      }
}

TEST(LoopHandout, GuidedPartsGetSmallerWithinTheMembersBlock) {
  const OnNodes nodes(detail::Nodes::kSeveral);
  FakeTeam fake(4);
  const auto taken = take_all(fake, counting_to(1025), in_any_order({kScheduleGuided, 1, false}));
  for (uint64_t i = 0; i < 4; ++i) {
    const uint64_t lengths[] = {128, 64, 32, 16, 8, 4, 2, 1, 1};
    uint64_t next = 256 * i;
    ASSERT_GE(taken[i].size(), std::size(lengths));
    for (size_t k = 0; k < std::size(lengths); ++k) {
      EXPECT_EQ(taken[i][k].begin, next);
      next += lengths[k];
      EXPECT_EQ(taken[i][k].end, next);
    }
  }
}

TEST(LoopHandout, PartsOfHugeLoopsDoNotWrap) {
  const OnNodes nodes(detail::Nodes::kSeveral);
  // 2^32 - 1 chunks, the last of which ends at the last number there is.
  const uint64_t chunk = (uint64_t{1} << 32) + 2;
  for (const uint32_t kind : {kScheduleDynamic, kScheduleGuided}) {
    FakeTeam fake(2);
    ImplicitTask* member = fake.members[1].get();
    Chunk c;
    ASSERT_TRUE(
        loop_start(member, counting_to(UINT64_MAX), in_any_order({kind, chunk, false}), false, &c));
    const WorkShare* share = member->workshare;
    ASSERT_TRUE(has_parts(*share));
    ASSERT_EQ(share->chunks, UINT32_MAX);
    uint64_t end = c.end;
    for (int i = 0; i < 40; ++i) {
      if (!loop_next(member, &c)) break;
      if (kind == kScheduleDynamic) {
        EXPECT_EQ(c.begin, end);
        EXPECT_EQ(c.end - c.begin, chunk);
      }
      EXPECT_GT(c.end, c.begin);
      end = c.end;
    }
  }
}

TEST(LoopHandout, MembersOnTheSameNodeAreRobbedFirst) {
  const OnNodes nodes(detail::Nodes::kSeveral);
  for (const uint32_t kind : {kScheduleDynamic, kScheduleGuided}) {
    FakeTeam fake(5);
    const LoopBounds bounds = counting_to(5 * 64 + 1);
    const LoopSchedule schedule = in_any_order({kind, 1, false});
    Chunk chunk;
    for (auto& member : fake.members)
      ASSERT_TRUE(loop_start(member.get(), bounds, schedule, false, &chunk));
    ImplicitTask* thief = fake.members[0].get();
    WorkShare* share = thief->workshare;
    ASSERT_TRUE(share->near_first);
    auto* parts = static_cast<LoopPart<base::StdAtomics>*>(share->parts.at);
    const uint32_t at[] = {7, 3, 3, 7, 7};
    for (uint32_t i = 0; i < 5; ++i) parts[i].set_node(at[i]);
    std::vector<uint64_t> owners;
    while (loop_next(thief, &chunk)) {
      const uint64_t owner = std::min<uint64_t>(chunk.begin / 64, 5);
      if (owners.empty() || owners.back() != owner) owners.push_back(owner);
    }
    // Of others' parts the ones of 3 and 4, to their end, then those of the other node, and the last chunk.
    const auto first_far =
        std::find_if(owners.begin(), owners.end(), [](uint64_t o) { return o == 1 || o == 2; });
    EXPECT_EQ(owners.front(), 0u);
    EXPECT_NE(std::find(owners.begin(), first_far, 3), first_far);
    EXPECT_NE(std::find(owners.begin(), first_far, 4), first_far);
    EXPECT_EQ(std::find(first_far, owners.end(), 3), owners.end());
    EXPECT_EQ(std::find(first_far, owners.end(), 4), owners.end());
    EXPECT_EQ(owners.back(), 5u);
  }
}

TEST(LoopHandout, FewChunksHavePartsWhereThereAreNodes) {
  for (const detail::Nodes nodes : {detail::Nodes::kOne, detail::Nodes::kSeveral})
    for (const uint32_t kind : {kScheduleDynamic, kScheduleGuided})
      for (const bool any_order : {false, true}) {
        const OnNodes on(nodes);
        FakeTeam fake(2);
        Chunk chunk;
        ASSERT_TRUE(loop_start(fake.members[0].get(), counting_to(20), {kind, 2, false, any_order},
                               false, &chunk));
        EXPECT_EQ(has_parts(*fake.members[0]->workshare),
                  any_order && nodes == detail::Nodes::kSeveral);
      }
  EXPECT_TRUE(parts_pay(64, 2, false));
  EXPECT_FALSE(parts_pay(63, 2, false));
  EXPECT_TRUE(parts_pay(6, 2, true));
  EXPECT_FALSE(parts_pay(5, 2, true));
}

TEST(LoopHandout, MemberThatComesAloneTakesAllParts) {
  FakeTeam fake(4);
  const LoopBounds bounds = counting_to(1000);
  ImplicitTask* first = fake.members[2].get();
  Chunk chunk;
  uint64_t total = 0;
  for (bool any =
           loop_start(first, bounds, in_any_order({kScheduleDynamic, 1, false}), false, &chunk);
       any; any = loop_next(first, &chunk))
    total += chunk.end - chunk.begin;
  EXPECT_EQ(total, 1000u);
  loop_finish(first);
  for (const uint32_t late : {0u, 1u, 3u}) {
    EXPECT_FALSE(loop_start(fake.members[late].get(), bounds,
                            in_any_order({kScheduleDynamic, 1, false}), false, &chunk));
    loop_finish(fake.members[late].get());
  }
}

TEST(LoopHandout, LastChunkOfPartsIsItsMembersLast) {
  const OnNodes nodes(detail::Nodes::kSeveral);
  for (const uint32_t size : {2u, 5u, 16u})
    for (const uint32_t kind : {kScheduleDynamic, kScheduleGuided}) {
      FakeTeam fake(size);
      const auto taken = take_all(fake, counting_to(10'000), in_any_order({kind, 3, false}));
      uint32_t owners = 0;
      for (const Ranges& of_member : taken)
        for (size_t i = 0; i < of_member.size(); ++i) {
          if (of_member[i].end != 10'000) continue;
          ++owners;
          EXPECT_EQ(i + 1, of_member.size());
        }
      EXPECT_EQ(owners, 1u);
    }
}

TEST(LoopHandout, PartsFollowEqualWork) {
  // In turns, nobody has to steal: each has its own block, every time.
  FakeTeam fake(4);
  const auto taken = take_all(fake, counting_to(401), in_any_order({kScheduleDynamic, 1, false}));
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_GE(taken[i].size(), 100u);
    EXPECT_EQ(taken[i].front().begin, 100 * i);
    EXPECT_EQ(taken[i][99].end, 100 * (i + 1));
  }
}

TEST(LoopHandout, HugeLoopsDoNotWrap) {
  // So close to 2^64 that one step too far would begin again at 0.
  for (const uint64_t count : {UINT64_MAX, UINT64_MAX - 3, uint64_t{1} << 63})
    for (const uint64_t chunk : {uint64_t{1} << 61, (uint64_t{1} << 62) + 1, uint64_t{1} << 63,
                                 UINT64_MAX - 1, UINT64_MAX})
      for (const uint32_t kind : {kScheduleStatic, kScheduleDynamic, kScheduleGuided})
        for (const uint32_t size : {2u, 5u}) {
          FakeTeam fake(size);
          SCOPED_TRACE(testing::Message() << size << " members, kind " << kind << ", chunk "
                                          << chunk << ", count " << count);
          expect_cover(take_all(fake, counting_to(count), {kind, chunk, false}, 1000), count);
        }
}

TEST(LoopHandout, StaticChunksGoRound) {
  FakeTeam fake(3);
  const auto taken = take_all(fake, counting_to(20), {kScheduleStatic, 2, false});
  for (size_t i = 0; i < 3; ++i)
    for (size_t k = 0; k < taken[i].size(); ++k) EXPECT_EQ(taken[i][k].begin, (k * 3 + i) * 2);
}

TEST(LoopHandout, StaticChunkNumbersDoNotWrap) {
  FakeTeam fake(3);
  ImplicitTask* member = fake.members[2].get();
  Chunk chunk;
  ASSERT_TRUE(
      loop_start(member, counting_to(UINT64_MAX), {kScheduleStatic, 1, false}, false, &chunk));
  // As if all but the member's last chunk had been run.
  member->loop_state[kPosition] = UINT64_MAX - 1;
  ASSERT_TRUE(loop_next(member, &chunk));
  EXPECT_EQ(chunk.begin, UINT64_MAX - 1);
  EXPECT_FALSE(loop_next(member, &chunk));
}

TEST(LoopHandout, StaticBlocksAreBlocksWhetherSharedOrNot) {
  // schedule(runtime) that is static goes through a shared object, schedule(static) does not.
  for (const bool shared : {false, true}) {
    FakeTeam fake(4);
    const auto taken = take_all(fake, counting_to(10), {kScheduleStatic, 0, shared});
    for (uint32_t i = 0; i < 4; ++i) {
      const IterationRange block = block_of(10, 4, i);
      ASSERT_EQ(taken[i].size(), 1u);
      EXPECT_EQ(taken[i][0].begin, block.first);
      EXPECT_EQ(taken[i][0].end, block.last);
    }
    EXPECT_EQ(fake.objects(), shared ? 1u : 0u);
  }
}

TEST(LoopHandout, DynamicChunksHaveTheSizeAskedFor) {
  FakeTeam fake(2);
  for (const Ranges& ranges : take_all(fake, counting_to(50), {kScheduleDynamic, 8, false}))
    for (const Chunk chunk : ranges)
      EXPECT_EQ(chunk.end - chunk.begin, chunk.begin == 48 ? 2u : 8u);
}

TEST(LoopHandout, ATeamOfOneGetsEverythingAtOnce) {
  for (const uint32_t kind : {kScheduleStatic, kScheduleDynamic, kScheduleGuided}) {
    FakeTeam fake(1);
    const auto taken = take_all(fake, bounds_of(10L, -5L, -4L), {kind, 1, false});
    ASSERT_EQ(taken[0].size(), 1u);
    EXPECT_EQ(taken[0][0].begin, 10u);
    EXPECT_EQ(static_cast<long>(taken[0][0].end), -5);
    EXPECT_EQ(fake.objects(), 0u);
  }
}

TEST(LoopHandout, DownwardLoopsGiveValuesOfTheLoop) {
  FakeTeam fake(2);
  std::vector<long> seen;
  for (const Ranges& ranges : take_all(fake, bounds_of(9L, -9L, -4L), {kScheduleDynamic, 2, false}))
    for (const Chunk chunk : ranges)
      for (long i = static_cast<long>(chunk.begin); i > static_cast<long>(chunk.end); i -= 4)
        seen.push_back(i);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<long>{-7, -3, 1, 5, 9}));
}

TEST(LoopHandout, RuntimeSchedulesComeFromTheTask) {
  FakeTeam fake(1);
  const Task* task = fake.members[0].get();
  fake.icvs.run_sched = kScheduleGuided | kScheduleMonotonic;
  fake.icvs.run_sched_chunk = 7;
  EXPECT_EQ(runtime_schedule(task).kind, uint32_t{kScheduleGuided});
  EXPECT_EQ(runtime_schedule(task).chunk, 7u);
  fake.icvs.run_sched = kScheduleAuto;
  EXPECT_EQ(runtime_schedule(task).kind, uint32_t{kScheduleStatic});
  EXPECT_EQ(runtime_schedule(task).chunk, 0u);
  fake.icvs.run_sched = kScheduleDynamic;
  fake.icvs.run_sched_chunk = -3;
  EXPECT_EQ(runtime_schedule(task).chunk, 0u);
  // GCC's codes: 0 and 4 are runtime, bit 31 says monotonic.
  for (const long code : {0L, 4L, 0x80000000L, 0x80000004L})
    EXPECT_EQ(encoded_schedule(task, code, 9).kind, uint32_t{kScheduleDynamic}) << code;
  EXPECT_TRUE(encoded_schedule(task, 2, 9).any_order);
  EXPECT_FALSE(encoded_schedule(task, 0x80000002L, 9).any_order);
  EXPECT_EQ(encoded_schedule(task, 0x80000001L, 9).kind, uint32_t{kScheduleStatic});
  EXPECT_EQ(encoded_schedule(task, 3, 9).chunk, 9u);
}

TEST(LoopHandout, PresetLoopsNeedNoStart) {
  for (const uint32_t size : {1u, 4u})
    for (const uint32_t kind : {kScheduleStatic, kScheduleDynamic, kScheduleGuided}) {
      FakeTeam fake(size);
      for (int region = 0; region < 3; ++region) {
        loop_preset(fake.team.get(), counting_to(100), {kind, 0, false});
        std::vector<Ranges> taken(size);
        for (uint32_t i = 0; i < size; ++i) {
          Chunk chunk;
          while (loop_next(fake.members[i].get(), &chunk)) taken[i].push_back(chunk);
          loop_finish(fake.members[i].get());
        }
        expect_cover(taken, 100);
        // A loop of its own after the preset one.
        expect_cover(take_all(fake, counting_to(10), {kScheduleDynamic, 1, false}), 10);
        fake.end();
      }
      // Without a preset construct, a lost next() gets nothing.
      Chunk chunk;
      EXPECT_FALSE(loop_next(fake.members[0].get(), &chunk));
    }
}

TEST(Sections, EachIsGivenOnce) {
  for (const uint32_t size : {1u, 3u})
    for (const bool preset : {false, true})
      for (const uint32_t count : {0u, 1u, 2u, 9u}) {
        FakeTeam fake(size);
        if (preset) sections_preset(fake.team.get(), count);
        std::vector<int> ran(count + 1);
        for (auto& member : fake.members) {
          uint32_t section =
              preset ? sections_next(member.get()) : sections_start(member.get(), count);
          for (; section != 0; section = sections_next(member.get())) {
            ASSERT_LE(section, count);
            ++ran[section];
          }
          EXPECT_EQ(sections_next(member.get()), 0u);
          loop_finish(member.get());
        }
        for (uint32_t s = 1; s <= count; ++s) EXPECT_EQ(ran[s], 1) << "section " << s;
      }
}

/// One construct of a random program.
struct Construct {
  enum Kind { kLoop, kSections, kSingle } kind;
  LoopSchedule schedule;
  uint64_t count;
};

Construct random_construct(std::mt19937& random) {
  const uint32_t kinds[] = {kScheduleStatic, kScheduleDynamic, kScheduleGuided};
  const uint64_t chunks[] = {0, 1, 2, 5};
  return {static_cast<Construct::Kind>(random() % 3),
          {kinds[random() % 3], chunks[random() % 4], random() % 2 == 0},
          random() % 40};
}

/// Lets members walk through a program of `nowait` constructs in a random interleaving.
void walk(FakeTeam& fake, const std::vector<Construct>& program, std::mt19937& random) {
  const size_t size = fake.members.size();
  std::vector<std::vector<int>> ran(program.size());
  for (size_t c = 0; c < program.size(); ++c) ran[c].resize(program[c].count + 1);
  std::vector<size_t> at(size);
  std::vector<bool> inside(size);
  size_t left = program.empty() ? 0 : size;
  while (left > 0) {
    const size_t i = random() % size;
    if (at[i] == program.size()) continue;
    ImplicitTask* member = fake.members[i].get();
    const Construct& construct = program[at[i]];
    std::vector<int>& hits = ran[at[i]];
    bool over = true;
    if (construct.kind == Construct::kSingle) {
      hits[0] += single_start(member);
    } else if (construct.kind == Construct::kSections) {
      const uint32_t section = inside[i]
                                   ? sections_next(member)
                                   : sections_start(member, static_cast<uint32_t>(construct.count));
      over = section == 0;
      if (!over) ++hits.at(section);
    } else {
      Chunk chunk;
      over = !(inside[i] ? loop_next(member, &chunk)
                         : loop_start(member, counting_to(construct.count), construct.schedule,
                                      false, &chunk));
      if (!over)
        for (uint64_t v = chunk.begin; v < chunk.end; ++v) ++hits.at(v + 1);
    }
    inside[i] = !over;
    if (over) {
      if (construct.kind != Construct::kSingle) loop_finish(member);
      left -= ++at[i] == program.size();
    }
  }
  for (size_t c = 0; c < program.size(); ++c) {
    if (program[c].kind == Construct::kSingle) {
      ASSERT_EQ(ran[c][0], 1) << "single " << c;
      continue;
    }
    for (uint64_t v = 1; v <= program[c].count; ++v)
      ASSERT_EQ(ran[c][v], 1) << "construct " << c << ", iteration " << v;
  }
}

TEST(NowaitChains, RandomWalks) {
  std::mt19937 random(20240817);
  for (const uint32_t size : {2u, 3u, 9u}) {
    FakeTeam fake(size);
    for (int region = 0; region < 30; ++region) {
      std::vector<Construct> program(random() % 60);
      for (Construct& construct : program) construct = random_construct(random);
      walk(fake, program, random);
      if (testing::Test::HasFatalFailure()) return;
      fake.end();
      ASSERT_LE(fake.objects(), 64u);
    }
  }
}

TEST(NowaitChains, OneMemberMayBeFarAhead) {
  FakeTeam fake(2);
  const LoopSchedule dynamic{kScheduleDynamic, 1, false};
  Chunk chunk;
  for (int c = 0; c < 300; ++c) {
    int got = 0;
    for (bool any = loop_start(fake.members[0].get(), counting_to(3), dynamic, false, &chunk); any;
         any = loop_next(fake.members[0].get(), &chunk))
      ++got;
    EXPECT_EQ(got, 3);
    loop_finish(fake.members[0].get());
  }
  EXPECT_EQ(fake.objects(), 300u);
  for (int c = 0; c < 300; ++c) {
    EXPECT_FALSE(loop_start(fake.members[1].get(), counting_to(3), dynamic, false, &chunk));
    loop_finish(fake.members[1].get());
  }
  // All but the last can be used again: the next constructs need no new ones.
  for (int c = 0; c < 299; ++c)
    loop_start(fake.members[0].get(), counting_to(3), dynamic, false, &chunk);
  EXPECT_EQ(fake.objects(), 300u);
  fake.end();
  EXPECT_EQ(fake.objects(), 64u) << "a region's excess is not kept for ever";
}

TEST(NowaitChains, MembersInStepNeedTwoObjects) {
  FakeTeam fake(4);
  for (int c = 0; c < 100; ++c)
    expect_cover(take_all(fake, counting_to(8), {kScheduleDynamic, 1, false}), 8);
  EXPECT_LE(fake.objects(), 2u);
}

TEST(NowaitChains, KernelThreads) {
  constexpr uint32_t kSize = 6;
  constexpr int kConstructs = 400;
  FakeTeam fake(kSize);
  for (int region = 0; region < 5; ++region) {
    std::vector<std::atomic<int>> hits(kConstructs * 17);
    std::vector<std::atomic<int>> singles(kConstructs);
    fake.run([&](ImplicitTask* member) {
      for (int c = 0; c < kConstructs; ++c) {
        if (single_start(member)) singles[c].fetch_add(1);
        Chunk chunk;
        const LoopSchedule schedule{c % 2 == 0 ? kScheduleDynamic : kScheduleGuided, 2, false};
        for (bool any = loop_start(member, counting_to(17), schedule, false, &chunk); any;
             any = loop_next(member, &chunk))
          for (uint64_t v = chunk.begin; v < chunk.end; ++v) hits[c * 17 + v].fetch_add(1);
        loop_finish(member);
      }
    });
    for (auto& hit : hits) ASSERT_EQ(hit.load(), 1);
    for (auto& single : singles) ASSERT_EQ(single.load(), 1);
    fake.end();
  }
}

#ifdef BOSK_HAVE_RAPIDCHECK
RC_GTEST_PROP(LoopHandoutProperty, AnyLoopIsCoveredOnce, (uint64_t count, uint64_t chunk)) {
  // Few chunks even for long loops.
  const uint64_t scaled = std::max(chunk, count / 500 + 1);
  FakeTeam fake(*rc::gen::inRange(1u, 20u));
  const uint32_t kind =
      *rc::gen::element<uint32_t>(kScheduleStatic, kScheduleDynamic, kScheduleGuided);
  expect_cover(
      take_all(fake, counting_to(count), {kind, scaled, *rc::gen::arbitrary<bool>()}, 2000), count);
}
#endif

}  // namespace
}  // namespace bosk::omp
