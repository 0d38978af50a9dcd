// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of areas against a plain model, on an invented machine.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <bosk/error.h>
#include "base/sanitizers.h"
#include "invented_machine.h"
#include "memory/area_table.h"
#include "memory/node_stats.h"
#include "memory/page_nodes.h"

namespace bosk::memory {
namespace {

constexpr uint32_t kNodes = 4;
constexpr size_t kGranule = 4096;

struct Machine4 {
  test::MachinePtr machine = test::symmetric(kNodes, 1, 1, 2);
  AreaTable table;
  Machine4() { EXPECT_TRUE(table.prepare(*machine)); }
};

NewArea range(uintptr_t begin, size_t bytes, const uint64_t* on = nullptr) {
  NewArea area{begin, bytes};
  area.bytes_on = on;
  return area;
}

TEST(MemoryAreas, OverlapsAreRefused) {
  Machine4 m;
  EXPECT_EQ(m.table.add(range(1000, 100)), BOSK_OK);
  EXPECT_EQ(m.table.add(range(1099, 1)), BOSK_EOVERLAP);
  EXPECT_EQ(m.table.add(range(900, 101)), BOSK_EOVERLAP);
  EXPECT_EQ(m.table.add(range(900, 1000)), BOSK_EOVERLAP);
  EXPECT_EQ(m.table.add(range(1010, 10)), BOSK_EOVERLAP);
  EXPECT_EQ(m.table.add(range(1000, 100)), BOSK_EOVERLAP);
  EXPECT_EQ(m.table.add(range(1100, 1)), BOSK_OK);
  EXPECT_EQ(m.table.add(range(900, 100)), BOSK_OK);
  EXPECT_EQ(m.table.add(range(5000, 0)), BOSK_EINVAL);
  EXPECT_EQ(m.table.add(range(UINTPTR_MAX - 5, 10)), BOSK_EINVAL);
  AreaInfo info;
  EXPECT_TRUE(m.table.look_up(1099, &info));
  EXPECT_EQ(info.begin, 1000u);
  EXPECT_FALSE(m.table.look_up(1101, &info));
  EXPECT_FALSE(m.table.look_up(899, &info));
  EXPECT_EQ(m.table.remove(1001, Origin::kForeign, &info), BOSK_ENOAREA);
  EXPECT_EQ(m.table.remove(1000, Origin::kPages, &info), BOSK_ENOAREA);
  EXPECT_EQ(m.table.remove(1000, Origin::kForeign, &info), BOSK_OK);
  EXPECT_EQ(m.table.remove(1000, Origin::kForeign, &info), BOSK_ENOAREA);
  EXPECT_FALSE(m.table.look_up(1000, &info));
}

TEST(MemoryAreas, PagesOfOurOwnAreAdoptedWhole) {
  Machine4 m;
  const size_t page = page_size();
  const uintptr_t begin = 16 * page;
  NewArea block{begin, 4 * page, Origin::kPages};
  ASSERT_EQ(m.table.add(block), BOSK_OK);
  ASSERT_EQ(m.table.add(range(40 * page, page)), BOSK_OK);
  AreaInfo info;
  EXPECT_EQ(m.table.disown(begin, &info), BOSK_ENOAREA);
  EXPECT_EQ(m.table.adopt(begin + page, 3 * page, &info), BOSK_ENOAREA);
  EXPECT_EQ(m.table.adopt(40 * page, page, &info), BOSK_ENOAREA);
  EXPECT_EQ(m.table.adopt(begin, 3 * page, &info), BOSK_EOVERLAP);
  EXPECT_EQ(m.table.adopt(begin, 4 * page + 1, &info), BOSK_EOVERLAP);
  EXPECT_EQ(m.table.adopt(begin, SIZE_MAX, &info), BOSK_EOVERLAP);
  ASSERT_EQ(m.table.adopt(begin, 3 * page + 1, &info), BOSK_OK);
  EXPECT_EQ(info.origin, Origin::kAdopted);
  EXPECT_EQ(m.table.adopt(begin, 4 * page, &info), BOSK_EOVERLAP);
  ASSERT_EQ(m.table.attach(begin, 7, kReads, 1, nullptr, nullptr), BOSK_OK);
  AreaInfo before;
  ASSERT_TRUE(m.table.look_up(begin, &before));
  ASSERT_EQ(m.table.disown(begin, &info), BOSK_OK);
  EXPECT_EQ(info.attachments, 1u);
  EXPECT_FALSE(m.table.is_same(before));
  ASSERT_TRUE(m.table.look_up(begin, &info));
  EXPECT_EQ(info.origin, Origin::kPages);
  EXPECT_EQ(info.attachments, 0u);
  // A huge page at a time, where it consists of them.
  block.begin = 1u << 30;
  block.bytes = 4u << 20;
  block.huge_page = 2u << 20;
  ASSERT_EQ(m.table.add(block), BOSK_OK);
  EXPECT_EQ(m.table.adopt(block.begin, 2u << 20, &info), BOSK_EOVERLAP);
  ASSERT_EQ(m.table.adopt(block.begin, (2u << 20) + 1, &info), BOSK_OK);
  EXPECT_EQ(m.table.remove(block.begin, Origin::kForeign, &info), BOSK_ENOAREA);
  EXPECT_EQ(m.table.remove(block.begin, Origin::kPages, &info), BOSK_OK);
}

/// Look-ups read what is known from the index, lists from the areas: both tell the same, whatever it is.
void expect_told_alike(const NewArea& wanted, uint32_t attachments, AreaTable& table) {
  AreaInfo found;
  AreaInfo listed;
  ASSERT_TRUE(table.look_up(wanted.begin + wanted.bytes - 1, &found));
  ASSERT_EQ(table.list(wanted.begin, &listed, 1), 1u);
  for (const AreaInfo& info : {found, listed}) {
    EXPECT_EQ(info.begin, wanted.begin);
    EXPECT_EQ(info.end, wanted.begin + wanted.bytes);
    EXPECT_EQ(info.origin, wanted.origin);
    EXPECT_EQ(info.placement, wanted.placement);
    EXPECT_EQ(info.node, wanted.node);
    EXPECT_EQ(info.huge_page, wanted.huge_page);
    EXPECT_EQ(info.attachments, attachments);
  }
  EXPECT_EQ(found.serial, listed.serial);
}

TEST(MemoryAreas, WhatIsKnownOfOneIsToldWhole) {
  Machine4 m;
  std::vector<NewArea> areas;
  uintptr_t at = kGranule;
  for (const Origin origin : {Origin::kForeign, Origin::kPages, Origin::kHinted, Origin::kAdopted})
    for (const Placement placement :
         {Placement::kDefault, Placement::kWeighted, Placement::kNextTouch})
      for (const NodeIndex node : {kNone, 0u, 1u, 1023u})
        for (const uint32_t huge_page : {0u, 64u << 10, 2u << 20, 1u << 30, 1u << 31})
          areas.push_back({at += 2 * kGranule, kGranule, origin, placement, node, huge_page});
  for (const NewArea& area : areas) ASSERT_EQ(m.table.add(area), BOSK_OK);
  for (const NewArea& area : areas) expect_told_alike(area, 0, m.table);
  for (OwnerId owner = 1; owner <= 3; ++owner)
    for (const NewArea& area : areas)
      ASSERT_EQ(m.table.attach(area.begin, owner, kReads, 1, nullptr, nullptr), BOSK_OK);
  for (const NewArea& area : areas) expect_told_alike(area, 3, m.table);
  m.table.detach_all(2);
  for (const NewArea& area : areas) expect_told_alike(area, 2, m.table);
  const uint64_t on[kNodes] = {};
  for (NewArea& area : areas) {
    ASSERT_EQ(m.table.detach(area.begin, 1), BOSK_OK);
    AreaInfo info;
    ASSERT_TRUE(m.table.look_up(area.begin, &info));
    area.node = area.node == 3 ? kNone : 3;
    area.placement = Placement::kOnNode;
    m.table.set_pages(info, on, area.node, area.placement);
    expect_told_alike(area, 1, m.table);
    constexpr size_t kParts = 8;
    ASSERT_EQ(m.table.split(area.begin, kParts, 64, nullptr), BOSK_OK);
    NewArea part = area;
    part.bytes = kGranule / kParts;
    for (size_t i = 0; i < kParts; ++i, part.begin += part.bytes) {
      expect_told_alike(part, 1, m.table);
      ASSERT_EQ(m.table.detach_all_of_area(part.begin), BOSK_OK);
      expect_told_alike(part, 0, m.table);
    }
  }
}

/// A model that is slow and plain: areas by begin, who uses which, and where their bytes lie.
struct Model {
  struct ModelArea {
    uintptr_t end;
    uint64_t on[kNodes];
    std::set<OwnerId> owners;
    bool coming = false;  // footprints leave it out
    bool listed = false;
  };
  std::map<uintptr_t, ModelArea> areas;

  auto find(uintptr_t address) {
    auto at = areas.upper_bound(address);
    if (at == areas.begin()) return areas.end();
    --at;
    return address < at->second.end ? at : areas.end();
  }
  bool overlaps(uintptr_t begin, uintptr_t end) {
    auto at = areas.lower_bound(begin);
    if (at != areas.end() && at->first < end) return true;
    return find(begin) != areas.end();
  }
  void footprint(OwnerId owner, uint64_t* bytes) {
    for (uint32_t i = 0; i < kNodes; ++i) bytes[i] = 0;
    for (auto& [begin, area] : areas)
      if (area.owners.count(owner) != 0 && !area.coming)
        for (uint32_t i = 0; i < kNodes; ++i) bytes[i] += area.on[i];
  }
};

void compare(Model& model, AreaTable& table, OwnerId owners) {
  AreaInfo all[64];
  uintptr_t from = 0;
  auto at = model.areas.begin();
  for (;;) {
    const uint32_t n = table.list(from, all, 64);
    for (uint32_t i = 0; i < n; ++i, ++at) {
      ASSERT_NE(at, model.areas.end());
      ASSERT_EQ(all[i].begin, at->first);
      ASSERT_EQ(all[i].end, at->second.end);
      ASSERT_EQ(all[i].attachments, at->second.owners.size());
    }
    if (n < 64) break;
    from = all[n - 1].begin + 1;
  }
  ASSERT_EQ(at, model.areas.end());
  for (OwnerId owner = 1; owner <= owners; ++owner) {
    uint64_t expected[kNodes], found[kNodes];
    model.footprint(owner, expected);
    table.footprint(owner, found);
    for (uint32_t i = 0; i < kNodes; ++i) ASSERT_EQ(found[i], expected[i]) << "owner " << owner;
  }
  uint64_t sums[kNodes] = {};
  std::set<uintptr_t> coming;
  for (auto& [begin, area] : model.areas) {
    for (uint32_t i = 0; i < kNodes; ++i) sums[i] += area.on[i];
    if (area.listed) coming.insert(begin);
  }
  for (uint32_t i = 0; i < kNodes; ++i) ASSERT_EQ(table.bytes_on(i), sums[i]);
  // In as many calls as it takes, each of them once.
  ASSERT_EQ(table.coming(), coming.size());
  std::multiset<uintptr_t> listed;
  while (listed.size() < coming.size()) {
    const auto left = static_cast<uint32_t>(coming.size() - listed.size());
    const uint32_t n = table.list_coming(all, std::min(left, 5U));
    ASSERT_NE(n, 0U);
    for (uint32_t i = 0; i < n; ++i) listed.insert(all[i].begin);
  }
  ASSERT_TRUE(std::equal(listed.begin(), listed.end(), coming.begin(), coming.end()));
}

/// Random operations; `span` addresses decide how often areas meet.
void run_random(uint32_t seed, int operations, uintptr_t span, int add_weight) {
  Machine4 m;
  Model model;
  std::mt19937 random(seed);
  constexpr OwnerId kOwners = 7;
  const auto pick = [&](uint64_t n) {
    return std::uniform_int_distribution<uint64_t>(0, n - 1)(random);
  };
  for (int i = 0; i < operations; ++i) {
    const uintptr_t begin = 1 + pick(span);
    switch (pick(7 + static_cast<uint64_t>(add_weight))) {
      case 0: {
        AreaInfo info;
        const auto at = model.find(begin);
        const bool is_begin = at != model.areas.end();
        const uintptr_t address = is_begin ? at->first : begin;
        ASSERT_EQ(m.table.remove(address, Origin::kForeign, &info),
                  is_begin ? BOSK_OK : BOSK_ENOAREA);
        if (is_begin) model.areas.erase(at);
        break;
      }
      case 1: {
        const OwnerId owner = 1 + pick(kOwners);
        const auto at = model.find(begin);
        const int expected = at == model.areas.end() ? BOSK_ENOAREA : BOSK_OK;
        ASSERT_EQ(m.table.attach(begin, owner, kReads, 1, nullptr, nullptr), expected);
        if (expected == BOSK_OK) at->second.owners.insert(owner);
        break;
      }
      case 2: {
        const OwnerId owner = 1 + pick(kOwners);
        const auto at = model.find(begin);
        const int expected = at == model.areas.end()               ? BOSK_ENOAREA
                             : at->second.owners.erase(owner) != 0 ? BOSK_OK
                                                                   : BOSK_ENOENT;
        ASSERT_EQ(m.table.detach(begin, owner), expected);
        break;
      }
      case 3: {
        const auto at = model.find(begin);
        if (at == model.areas.end()) break;
        AreaInfo info;
        ASSERT_TRUE(m.table.look_up(begin, &info));
        uint64_t on[kNodes];
        for (uint32_t node = 0; node < kNodes; ++node) on[node] = at->second.on[node] = pick(1000);
        m.table.set_pages(info, on, kNone, Placement::kDefault);
        break;
      }
      case 4: {
        if (pick(20) != 0) break;
        const OwnerId owner = 1 + pick(kOwners);
        m.table.detach_all(owner);
        for (auto& [unused, area] : model.areas) area.owners.erase(owner);
        break;
      }
      case 5: {
        AreaInfo info;
        const auto at = model.find(begin);
        ASSERT_EQ(m.table.look_up(begin, &info), at != model.areas.end());
        if (at != model.areas.end()) {
          ASSERT_EQ(info.begin, at->first);
        }
        break;
      }
      case 6: {
        const auto at = model.find(begin);
        if (at == model.areas.end()) break;
        AreaInfo info;
        ASSERT_TRUE(m.table.look_up(begin, &info));
        constexpr Coming kStates[] = {Coming::kNo, Coming::kMostly, Coming::kPartly,
                                      Coming::kEnded};
        const Coming state = kStates[pick(4)];
        at->second.coming = state == Coming::kMostly;
        at->second.listed = state != Coming::kNo;
        m.table.set_coming(info, state);
        ASSERT_EQ(m.table.coming_of(info), state);
        break;
      }
      default: {
        const size_t bytes = 1 + pick(30);
        uint64_t on[kNodes];
        for (uint64_t& each : on) each = pick(bytes);
        const bool overlaps = model.overlaps(begin, begin + bytes);
        ASSERT_EQ(m.table.add(range(begin, bytes, on)), overlaps ? BOSK_EOVERLAP : BOSK_OK);
        if (!overlaps) {
          Model::ModelArea& area = model.areas[begin];
          area.end = begin + bytes;
          for (uint32_t node = 0; node < kNodes; ++node) area.on[node] = on[node];
        }
        break;
      }
    }
    if (i % 997 == 0) compare(model, m.table, kOwners);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", operation " << i;
  }
  compare(model, m.table, kOwners);
}

TEST(MemoryAreas, RandomOperationsFollowAPlainModel) {
#if defined(BOSK_TSAN)
  constexpr uint32_t kSeeds = 1;  // one thread: it sees nothing here that it does not see once
#else
  constexpr uint32_t kSeeds = 5;
#endif
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    run_random(seed, 20000, 5000, 2);      // crowded
    run_random(seed, 20000, 1000000, 12);  // thousands of areas, many chunks
  }
}

TEST(MemoryAreas, HundredThousandInAnyOrder) {
  Machine4 m;
  constexpr uintptr_t kCount = 100000;
  std::vector<uintptr_t> order(kCount);
  for (uintptr_t i = 0; i < kCount; ++i) order[i] = i;
  std::mt19937 random(7);
  std::shuffle(order.begin(), order.end(), random);
  for (const uintptr_t i : order) ASSERT_EQ(m.table.add(range((i + 1) * 64, 48)), BOSK_OK);
  AreaInfo info;
  for (const uintptr_t i : order) {
    ASSERT_TRUE(m.table.look_up((i + 1) * 64 + 47, &info));
    ASSERT_EQ(info.begin, (i + 1) * 64);
    ASSERT_FALSE(m.table.look_up((i + 1) * 64 + 48, &info));
  }
  std::shuffle(order.begin(), order.end(), random);
  for (const uintptr_t i : order)
    ASSERT_EQ(m.table.remove((i + 1) * 64, Origin::kForeign, &info), BOSK_OK);
  EXPECT_EQ(m.table.list(0, &info, 1), 0u);
}

// The index guesses where areas of about one size are; of these it guesses wrong, on both sides.
TEST(MemoryAreas, SizesOfAllMagnitudesAreFound) {
  Machine4 m;
  std::mt19937 random(11);
  std::vector<NewArea> areas;
  uintptr_t at = kGranule;
  for (int i = 0; i < 5000; ++i) {
    const size_t bytes = size_t{1} << random() % (i % 700 < 350 ? 30 : 13);
    areas.push_back(range(at, bytes));
    at += bytes + random() % 3 * (size_t{1} << random() % 30);
  }
  std::vector<NewArea> shuffled = areas;
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  for (const NewArea& area : shuffled) ASSERT_EQ(m.table.add(area), 0);
  for (size_t i = 0; i < areas.size(); ++i) {
    AreaInfo found;
    for (const uintptr_t inside : {areas[i].begin, areas[i].begin + areas[i].bytes - 1,
                                   areas[i].begin + random() % areas[i].bytes}) {
      ASSERT_TRUE(m.table.look_up(inside, &found)) << i;
      ASSERT_EQ(found.begin, areas[i].begin);
    }
    const uintptr_t behind = areas[i].begin + areas[i].bytes;
    if (i + 1 == areas.size() || areas[i + 1].begin > behind) {
      ASSERT_FALSE(m.table.look_up(behind, &found)) << i;
    }
  }
}

TEST(MemoryAreas, SplitKeepsBytesAndAttachments) {
  Machine4 m;
  const uintptr_t begin = 100 * kGranule + 17;
  const size_t bytes = 10 * kGranule + 1001;
  const uint64_t on[kNodes] = {bytes - 5, 0, 4, 1};
  ASSERT_EQ(m.table.add(range(begin, bytes, on)), BOSK_OK);
  ASSERT_EQ(m.table.attach(begin, 5, kReads | kWrites, 3, nullptr, nullptr), BOSK_OK);
  ASSERT_EQ(m.table.attach(begin, 6, kReads, 1, nullptr, nullptr), BOSK_OK);
  EXPECT_EQ(m.table.split(begin + 1, 2, kGranule, nullptr), BOSK_ENOAREA);
  EXPECT_EQ(m.table.split(begin, 1, kGranule, nullptr), BOSK_EINVAL);
  EXPECT_EQ(m.table.split(begin, 11, kGranule, nullptr), BOSK_EINVAL);
  void* parts[4];
  ASSERT_EQ(m.table.split(begin, 4, kGranule, parts), BOSK_OK);
  uintptr_t at = begin;
  for (void* part : parts) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(part), at);
    AreaInfo info;
    ASSERT_TRUE(m.table.look_up(at, &info));
    EXPECT_EQ(info.begin, at);
    EXPECT_EQ(info.attachments, 2u);
    EXPECT_TRUE(at == begin || at % kGranule == 0);
    EXPECT_GT(info.bytes(), kGranule);
    EXPECT_LT(info.bytes(), 4 * kGranule);
    at = info.end;
  }
  EXPECT_EQ(at, begin + bytes);
  uint64_t found[kNodes];
  for (const OwnerId owner : {5, 6}) {
    ASSERT_TRUE(m.table.footprint(owner, found));
    for (uint32_t i = 0; i < kNodes; ++i) EXPECT_EQ(found[i], on[i]);
  }
  AreaUse uses[4];
  ASSERT_EQ(m.table.uses_of(5, uses, 4), 4u);
  for (const AreaUse& use : uses) {
    EXPECT_EQ(use.use, kReads | kWrites);
    EXPECT_EQ(use.times, 3u);
  }
  AreaInfo info;
  ASSERT_EQ(m.table.remove(reinterpret_cast<uintptr_t>(parts[2]), Origin::kForeign, &info),
            BOSK_OK);
  EXPECT_EQ(m.table.uses_of(5, uses, 4), 3u);
  for (uint32_t i = 0; i < kNodes; ++i) {
    ASSERT_TRUE(m.table.footprint(5, found));
    EXPECT_EQ(found[i], m.table.bytes_on(i));
  }
}

struct Refusal {
  int answer;
  const std::atomic<uint64_t>* footprint = nullptr;
  static int admit(void* self, const std::atomic<uint64_t>* footprint) {
    auto* refusal = static_cast<Refusal*>(self);
    if (refusal->answer == BOSK_OK) refusal->footprint = footprint;
    return refusal->answer;
  }
};

TEST(MemoryAreas, PartsOfWhatIsComingAreComing) {
  Machine4 m;
  const uintptr_t begin = 5 * kGranule;
  const uint64_t on[kNodes] = {0, 4 * kGranule, 0, 0};
  ASSERT_EQ(m.table.add(range(begin, 4 * kGranule, on)), BOSK_OK);
  ASSERT_EQ(m.table.attach(begin, 5, kReads, 1, nullptr, nullptr), BOSK_OK);
  AreaInfo info;
  ASSERT_TRUE(m.table.look_up(begin, &info));
  m.table.set_coming(info, Coming::kMostly);
  ASSERT_EQ(m.table.split(begin, 2, kGranule, nullptr), BOSK_OK);
  uint64_t found[kNodes];
  ASSERT_TRUE(m.table.footprint(5, found));
  EXPECT_EQ(found[1], 0u);
  EXPECT_EQ(m.table.bytes_on(1), 4 * kGranule);
  m.table.set_coming(info, Coming::kNo);  // the whole, which is not any more
  ASSERT_TRUE(m.table.footprint(5, found));
  EXPECT_EQ(found[1], 0u);
  ASSERT_TRUE(m.table.look_up(begin + 3 * kGranule, &info));
  m.table.set_coming(info, Coming::kNo);
  ASSERT_TRUE(m.table.footprint(5, found));
  EXPECT_EQ(found[1], 2 * kGranule);
}

TEST(MemoryAreas, OwnersThatAreRefusedOrGoneHaveNothing) {
  Machine4 m;
  const uint64_t on[kNodes] = {10, 20, 30, 40};
  ASSERT_EQ(m.table.add(range(4096, 100, on)), BOSK_OK);
  Refusal refusal{BOSK_ESTALE};
  EXPECT_EQ(m.table.attach(4096, 9, kReads, 1, Refusal::admit, &refusal), BOSK_ESTALE);
  uint64_t found[kNodes];
  EXPECT_FALSE(m.table.footprint(9, found));
  AreaInfo info;
  ASSERT_TRUE(m.table.look_up(4096, &info));
  EXPECT_EQ(info.attachments, 0u);

  refusal.answer = BOSK_OK;
  ASSERT_EQ(m.table.attach(4096, 9, kReads, 1, Refusal::admit, &refusal), BOSK_OK);
  ASSERT_NE(refusal.footprint, nullptr);
  EXPECT_EQ(refusal.footprint[3].load(), 40u);
  // Again: the use is new, the bytes are not.
  ASSERT_EQ(m.table.attach(4150, 9, kWrites, 8, nullptr, nullptr), BOSK_OK);
  EXPECT_EQ(refusal.footprint[3].load(), 40u);
  AreaUse use;
  ASSERT_EQ(m.table.uses_of(9, &use, 1), 1u);
  EXPECT_EQ(use.use, kWrites);
  EXPECT_EQ(use.times, 8u);
  m.table.owner_gone(refusal.footprint);
  // The next who has the lock undoes it.
  EXPECT_EQ(m.table.uses_of(9, &use, 1), 0u);
  ASSERT_TRUE(m.table.look_up(4096, &info));
  EXPECT_EQ(info.attachments, 0u);
  EXPECT_FALSE(m.table.footprint(9, found));
}

TEST(MemoryAreas, NewsOfAnAreaThatIsAnotherNowIsIgnored) {
  Machine4 m;
  const uint64_t on[kNodes] = {1, 2, 3, 4};
  ASSERT_EQ(m.table.add(range(4096, 100)), BOSK_OK);
  AreaInfo old;
  ASSERT_TRUE(m.table.look_up(4096, &old));
  AreaInfo info;
  ASSERT_EQ(m.table.remove(4096, Origin::kForeign, &info), BOSK_OK);
  ASSERT_EQ(m.table.add(range(4096, 100)), BOSK_OK);
  m.table.set_pages(old, on, 2, Placement::kOnNode);
  uint64_t found[kNodes];
  ASSERT_TRUE(m.table.look_up(4096, &info, found));
  EXPECT_EQ(found[3], 0u);
  EXPECT_EQ(info.node, kNone);
  m.table.set_pages(info, on, 2, Placement::kOnNode);
  ASSERT_TRUE(m.table.look_up(4096, &info, found));
  EXPECT_EQ(found[3], 4u);
  EXPECT_EQ(info.node, 2u);
}

TEST(MemoryNodes, InventedNodesStandForWhatTheKernelHas) {
  Machine4 m;
  const MachineNodes& nodes = m.table.nodes();
  EXPECT_FALSE(nodes.real());
  EXPECT_EQ(nodes.count(), kNodes);
  for (NodeIndex i = 0; i < kNodes; ++i) {
    EXPECT_TRUE(nodes.usable(i));
    const std::string path = "/sys/devices/system/node/node" + std::to_string(nodes.kernel_node(i));
    if (access("/sys/devices/system/node", F_OK) != 0) continue;
    EXPECT_EQ(access(path.c_str(), F_OK), 0) << path;
  }
  EXPECT_FALSE(nodes.usable(kNodes));
  EXPECT_EQ(least_loaded_node(nodes), 0u);
}

TEST(MemoryNodes, MappedOrNot) {
  const size_t page = page_size();
  char* at = static_cast<char*>(
      mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(at, MAP_FAILED);
  const auto number = reinterpret_cast<uintptr_t>(at);
  EXPECT_TRUE(is_mapped(number, 4 * page));
  EXPECT_TRUE(is_mapped(number + 100, 1));
  ASSERT_EQ(munmap(at + 2 * page, page), 0);
  EXPECT_FALSE(is_mapped(number, 4 * page));
  EXPECT_TRUE(is_mapped(number + 1, 2 * page - 1));
  EXPECT_FALSE(is_mapped(number + 1, 2 * page));
  EXPECT_TRUE(is_mapped(number + 3 * page, page));
  munmap(at, 4 * page);
}

TEST(MemoryNodes, FreeMemoryFromText) {
  EXPECT_EQ(free_in_meminfo("Node 0 MemTotal: 100 kB\nNode 0 MemFree:   7 kB\n"), 7u << 10);
  EXPECT_EQ(free_in_meminfo("Node 0 MemFree:   7 kB\nNode 0 Inactive(file):  5 kB\n"), 12u << 10);
  EXPECT_EQ(free_in_meminfo("nothing"), kUnknownAmount);
}

}  // namespace
}  // namespace bosk::memory
