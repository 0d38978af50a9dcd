// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Traits of allocators: their values, and OMP_ALLOCATOR's grammar.
#include "omp/allocator_traits.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace bosk::omp {
namespace {

constexpr uintptr_t kNoValue = 4711;

/// What OMP_ALLOCATOR=text is shown as; "" if it is malformed.
std::string read(const char* text) {
  AllocatorSetting setting;
  setting.predefined = kNoValue;
  if (!parse_allocator(text, &setting)) {
    EXPECT_EQ(setting.predefined, kNoValue) << "a malformed text changed something: " << text;
    return "";
  }
  char shown[kAllocatorText];
  format_allocator(setting, shown);
  return shown;
}

TEST(AllocatorText, PredefinedAllocators) {
  for (AllocatorHandle handle = 1; handle <= kLastPredefined; handle++) {
    const char* name = allocator_name(handle);
    ASSERT_NE(name, nullptr);
    AllocatorSetting setting;
    EXPECT_TRUE(parse_allocator(name, &setting));
    EXPECT_EQ(setting.predefined, handle);
    EXPECT_EQ(read(name), name);
  }
  EXPECT_EQ(allocator_name(0), nullptr);
  EXPECT_EQ(allocator_name(9), nullptr);
  EXPECT_EQ(read(" OMP_Thread_MEM_alloc "), "omp_thread_mem_alloc");
  for (const char* bad :
       {"", " ", "5", "omp_null_allocator", "omp_thread_mem_allocx", "omp_thread_mem_alloc x",
        "omp_thread_mem_alloc:", "omp_thread_mem_alloc:pinned=true"}) {
    EXPECT_EQ(read(bad), "") << bad;
  }
}

TEST(AllocatorText, SpacesAndTraits) {
  for (const char* space :
       {"omp_default_mem_space", "omp_large_cap_mem_space", "omp_const_mem_space",
        "omp_high_bw_mem_space", "omp_low_lat_mem_space"}) {
    EXPECT_EQ(read(space), space);
  }
  const char* all =
      "omp_high_bw_mem_space:sync_hint=private,alignment=64,access=cgroup,pool_size=1048576,"
      "fallback=allocator_fb,fb_data=omp_large_cap_mem_alloc,pinned=true,partition=interleaved";
  EXPECT_EQ(read(all), all);
  EXPECT_EQ(read(" OMP_default_mem_space : Partition = Nearest , pool_size=+5 "),
            "omp_default_mem_space:pool_size=5,partition=nearest");
  EXPECT_EQ(read("omp_default_mem_space:sync_hint=sequential"),
            "omp_default_mem_space:sync_hint=serialized");
  EXPECT_EQ(read("omp_default_mem_space:alignment=8,alignment=32"),
            "omp_default_mem_space:alignment=32");

  AllocatorSetting setting;
  ASSERT_TRUE(parse_allocator(all, &setting));
  EXPECT_EQ(setting.predefined, kNullAllocator);
  EXPECT_EQ(setting.traits.space, kHighBandwidthSpace);
  EXPECT_EQ(setting.traits.alignment, 64u);
  EXPECT_EQ(setting.traits.pool_size, 1048576u);
  EXPECT_EQ(setting.traits.fallback, kAllocatorFallback);
  EXPECT_EQ(setting.traits.fallback_allocator, kLargeCapMemAlloc);
  EXPECT_TRUE(setting.traits.pinned);
  EXPECT_EQ(setting.traits.partition, kInterleaved);
}

TEST(AllocatorText, EveryWordOfEveryTrait) {
  for (const char* trait :
       {"sync_hint=contended", "sync_hint=uncontended", "sync_hint=serialized", "sync_hint=private",
        "access=all", "access=cgroup", "access=pteam", "access=thread", "fallback=default_mem_fb",
        "fallback=null_fb", "fallback=abort_fb", "pinned=true", "pinned=false",
        "partition=environment", "partition=nearest", "partition=blocked",
        "partition=interleaved"}) {
    const std::string text = std::string("omp_const_mem_space:") + trait;
    EXPECT_EQ(read(text.c_str()), text);
  }
}

TEST(AllocatorText, MalformedTraits) {
  for (const char* bad : {"omp_default_mem_space:",
                          "omp_default_mem_space,",
                          "omp_default_mem_space x",
                          "omp_default_mem_spacex",
                          ":pinned=true",
                          "omp_default_mem_space:pinned",
                          "omp_default_mem_space:pinned=",
                          "omp_default_mem_space:pinned=1",
                          "omp_default_mem_space:pinned=true,",
                          "omp_default_mem_space:,pinned=true",
                          "omp_default_mem_space:pinned=true x",
                          "omp_default_mem_space:pinned:true",
                          "omp_default_mem_space:colour=red",
                          "omp_default_mem_space:alignment=24",
                          "omp_default_mem_space:alignment=0",
                          "omp_default_mem_space:alignment=-8",
                          "omp_default_mem_space:pool_size=x",
                          "omp_default_mem_space:pool_size=1k",
                          "omp_default_mem_space:pool_size=99999999999999999999",
                          "omp_default_mem_space:access=private",
                          "omp_default_mem_space:sync_hint=all",
                          "omp_default_mem_space:partition=omp_atv_nearest",
                          "omp_default_mem_space:omp_atk_pinned=true",
                          "omp_default_mem_space:fallback=allocator_fb",
                          "omp_default_mem_space:fb_data=7",
                          "omp_default_mem_space:fb_data=omp_null_allocator",
                          "omp_default_mem_space:fb_data=omp_const_mem_space"}) {
    EXPECT_EQ(read(bad), "") << bad;
  }
}

// What is shown can be read again and is the same; no text crashes the reader.
TEST(AllocatorText, SurvivesRandomText) {
  const char* pieces[] = {"omp_default_mem_space",
                          "omp_high_bw_mem_space",
                          "omp_const_mem_alloc",
                          ":",
                          ",",
                          "=",
                          "pinned",
                          "true",
                          "partition",
                          "blocked",
                          "fallback",
                          "null_fb",
                          "allocator_fb",
                          "fb_data",
                          "pool_size",
                          "17",
                          " ",
                          "access"};
  std::mt19937 random(1);
  int good = 0;
  for (int i = 0; i < 200'000; i++) {
    std::string text = pieces[random() % 3];
    for (unsigned n = random() % 6; n > 0; n--) text += pieces[3 + random() % 15];
    const std::string shown = read(text.c_str());
    if (shown.empty()) continue;
    good++;
    EXPECT_EQ(read(shown.c_str()), shown) << text;
  }
  EXPECT_GT(good, 100);
}

TEST(AllocatorTraits, ValuesAndDefaults) {
  AllocatorTraits traits;
  const struct {
    int32_t key;
    uintptr_t least, most;
  } ranges[] = {{kSyncHint, 3, 6},
                {kAccess, 7, 10},
                {kFallback, 11, 14},
                {kPinned, 0, 1},
                {kPartition, 15, 18}};
  for (const auto& range : ranges) {
    for (uintptr_t value = 0; value < 25; value++) {
      EXPECT_EQ(apply_trait({range.key, value}, &traits),
                value >= range.least && value <= range.most)
          << range.key << "=" << value;
    }
    EXPECT_TRUE(apply_trait({range.key, kDefaultValue}, &traits)) << range.key;
  }
  EXPECT_EQ(traits.sync_hint, kContended);
  EXPECT_EQ(traits.access, kAll);
  EXPECT_EQ(traits.fallback, kDefaultMemFallback);
  EXPECT_EQ(traits.partition, kEnvironment);
  EXPECT_FALSE(traits.pinned);
  EXPECT_FALSE(apply_trait({0, 1}, &traits));
  EXPECT_FALSE(apply_trait({9, 1}, &traits));
  EXPECT_FALSE(apply_trait({-1, 1}, &traits));

  EXPECT_TRUE(traits_fit(traits));
  EXPECT_TRUE(apply_trait({kFallback, kAllocatorFallback}, &traits));
  EXPECT_FALSE(traits_fit(traits));
  EXPECT_TRUE(apply_trait({kFallbackData, 3}, &traits));
  EXPECT_TRUE(traits_fit(traits));
}

}  // namespace
}  // namespace bosk::omp
