// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reduction array: layout, zeroed memory, finding a member's copy.
#include "omp/reduction.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "omp/taskgroup.h"
#include "omp_worksharing_support.h"

namespace bosk::omp {
namespace {

struct Entry {
  void* original;
  uintptr_t offset;
};

/// An array as the compiled code makes it.
std::vector<uintptr_t> array_of(uintptr_t part, uintptr_t alignment, std::vector<Entry> entries,
                                uintptr_t* next = nullptr) {
  std::vector<uintptr_t> words = {entries.size(),
                                  part,
                                  alignment,
                                  static_cast<uintptr_t>(-1),
                                  reinterpret_cast<uintptr_t>(next),
                                  0xdead,
                                  0xdead};
  for (const Entry entry : entries) {
    words.push_back(reinterpret_cast<uintptr_t>(entry.original));
    words.push_back(entry.offset);
    words.push_back(0xdead);
  }
  return words;
}

void* at(uintptr_t address) { return reinterpret_cast<void*>(address); }

TEST(ReductionArray, MemoryIsAlignedZeroedAndPerMember) {
  int x;
  double y;
  auto second = array_of(256, 256, {{&y, 0}});
  auto first = array_of(64, 64, {{&x, 8}}, second.data());
  reduction_allocate(first.data(), 5);
  EXPECT_EQ(first[kReductionMemory] % 64, 0u);
  EXPECT_EQ(second[kReductionMemory] % 256, 0u);
  EXPECT_EQ(first[kReductionEnd], first[kReductionMemory] + 5 * 64);
  EXPECT_EQ(second[kReductionEnd], second[kReductionMemory] + 5 * 256);
  EXPECT_TRUE(first[kReductionEnd] <= second[kReductionMemory] ||
              second[kReductionEnd] <= first[kReductionMemory]);
  for (const auto* words : {&first, &second})
    for (uintptr_t byte = (*words)[kReductionMemory]; byte < (*words)[kReductionEnd]; ++byte)
      ASSERT_EQ(*static_cast<unsigned char*>(at(byte)), 0);
  reduction_unregister(first.data());
}

TEST(ReductionArray, RemapsOriginalsAndCopies) {
  int variables[3];
  // Originals in neither rising nor falling order of their addresses.
  auto words = array_of(64, 64, {{&variables[1], 0}, {&variables[2], 16}, {&variables[0], 32}});
  FakeTeam fake(4);
  Task& task = *fake.members[0];
  TaskGroup group{};
  task.group = &group;
  reduction_register(&task, words.data());
  const uintptr_t base = words[kReductionMemory];
  const std::pair<int, uintptr_t> places[] = {{1, 0}, {2, 16}, {0, 32}};
  for (uint32_t member = 0; member < 4; ++member)
    for (const auto& [variable, offset] : places) {
      // From the original, and from every member's copy of it.
      std::vector<void*> from = {&variables[variable]};
      for (uint32_t m = 0; m < 4; ++m) from.push_back(at(base + m * 64 + offset));
      for (void* address : from) {
        void* pointers[2] = {address, nullptr};
        reduction_remap(&task, member, 1, 1, pointers);
        EXPECT_EQ(pointers[0], at(base + member * 64 + offset));
        EXPECT_EQ(pointers[1], &variables[variable]);
      }
    }
  // Inside a copy, where nobody asks for the original.
  void* inside[1] = {at(base + 2 * 64 + 20)};
  reduction_remap(&task, 3, 1, 0, inside);
  EXPECT_EQ(inside[0], at(base + 3 * 64 + 20));
  reduction_unregister(words.data());
}

TEST(ReductionArray, InnerGroupsComeFirstAndOuterOnesAreFound) {
  int inner_and_outer;
  int outer_only;
  auto outer = array_of(64, 64, {{&inner_and_outer, 0}, {&outer_only, 8}});
  auto inner = array_of(64, 64, {{&inner_and_outer, 4}});
  FakeTeam fake(2);
  Task& task = *fake.members[0];
  TaskGroup outer_group{};
  TaskGroup middle_group{};
  TaskGroup inner_group{};
  middle_group.outer = &outer_group;
  inner_group.outer = &middle_group;
  task.group = &outer_group;
  reduction_register(&task, outer.data());
  task.group = &inner_group;
  reduction_register(&task, inner.data());
  void* pointers[4] = {&inner_and_outer, &outer_only};
  reduction_remap(&task, 1, 2, 2, pointers);
  EXPECT_EQ(pointers[0], at(inner[kReductionMemory] + 64 + 4));
  EXPECT_EQ(pointers[1], at(outer[kReductionMemory] + 64 + 8));
  EXPECT_EQ(pointers[2], &inner_and_outer);
  EXPECT_EQ(pointers[3], &outer_only);
  // Back outside.
  task.group = &middle_group;
  void* again[1] = {&inner_and_outer};
  reduction_remap(&task, 0, 1, 0, again);
  EXPECT_EQ(again[0], at(outer[kReductionMemory]));
  reduction_unregister(inner.data());
  reduction_unregister(outer.data());
}

TEST(ReductionArray, AnUnknownVariableIsFatal) {
  int known;
  int unknown;
  auto words = array_of(64, 64, {{&known, 0}});
  FakeTeam fake(1);
  TaskGroup group{};
  fake.members[0]->group = &group;
  reduction_register(fake.members[0].get(), words.data());
  void* pointers[1] = {&unknown};
  EXPECT_EXIT(reduction_remap(fake.members[0].get(), 0, 1, 0, pointers), testing::ExitedWithCode(1),
              "libgomp: .*reduction");
  reduction_unregister(words.data());
}

TEST(ConstructMemory, IsSharedZeroedAndUsedAgain) {
  FakeTeam fake(3);
  for (int construct = 0; construct < 5; ++construct) {
    std::vector<void*> given;
    for (auto& member : fake.members) {
      void* memory = at(200);
      Chunk chunk;
      ASSERT_TRUE(loop_start_with_extras(member.get(), bounds_of(0L, 1L, 1L), {}, false,
                                         {nullptr, &memory}, nullptr));
      given.push_back(memory);
      // Nothing to hand out: the compiler's own loop runs now.
      EXPECT_FALSE(loop_next(member.get(), &chunk));
      loop_finish(member.get());
    }
    EXPECT_EQ(reinterpret_cast<uintptr_t>(given[0]) % 64, 0u);
    for (void* memory : given) EXPECT_EQ(memory, given[0]);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(static_cast<char*>(given[0])[i], 0) << construct;
    memset(given[0], 0x77, 200);
  }
  EXPECT_LE(fake.objects(), 2u);
}

}  // namespace
}  // namespace bosk::omp
