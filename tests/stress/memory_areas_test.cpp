// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Readers that take no lock, beside writers that register, cut, move and forget; owners that go meanwhile.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <bosk/error.h>
#include "../unit/invented_machine.h"
#include "base/sanitizers.h"
#include "memory/area_table.h"
#include "memory/manager.h"

namespace bosk::memory {
namespace {

constexpr uint32_t kNodes = 4;
constexpr uintptr_t kGranule = 4096;
/// A slot is an address range that one writer owns; what may be found in it says the reader how whole it is.
constexpr uintptr_t kSlots = 3000;
constexpr uintptr_t kSlotBytes = 8 * kGranule;
#if defined(BOSK_TSAN)
constexpr int kRounds = 20000;
#else
constexpr int kRounds = 200000;
#endif

uintptr_t slot_begin(uintptr_t slot) { return (slot + 1) * 2 * kSlotBytes; }

/// What areas of a slot always look like: bytes on the nodes are the size, times 1, 2, 3, 4.
bool is_whole(const AreaInfo& info, const uint64_t* on) {
  const uintptr_t slot = info.begin / (2 * kSlotBytes) - 1;
  if (slot >= kSlots || info.begin < slot_begin(slot) || info.end > slot_begin(slot) + kSlotBytes)
    return false;
  if (info.begin % kGranule != 0 || info.end % kGranule != 0 || info.begin >= info.end)
    return false;
  for (uint32_t i = 0; i < kNodes; ++i)
    if (on[i] != (i + 1) * info.bytes()) return false;
  return true;
}

void write_randomly(AreaTable& table, uintptr_t first, uintptr_t end, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int> state(end - first, 0);  // 0: none, 1: whole, n: in n parts
  for (int round = 0; round < kRounds; ++round) {
    const uintptr_t slot = first + random() % (end - first);
    const uintptr_t begin = slot_begin(slot);
    int& parts = state[slot - first];
    if (parts == 0) {
      uint64_t on[kNodes];
      for (uint32_t i = 0; i < kNodes; ++i) on[i] = (i + 1) * kSlotBytes;
      NewArea area{begin, kSlotBytes};
      area.bytes_on = on;
      ASSERT_EQ(table.add(area), BOSK_OK);
      ASSERT_EQ(table.add(area), BOSK_EOVERLAP);
      parts = 1;
    } else if (parts == 1 && random() % 2 == 0) {
      parts = 1 << (1 + random() % 3);
      ASSERT_EQ(table.split(begin, static_cast<size_t>(parts), kGranule, nullptr), BOSK_OK);
    } else {
      AreaInfo removed;
      const uintptr_t each = kSlotBytes / static_cast<uintptr_t>(parts);
      for (uintptr_t at = begin; at < begin + kSlotBytes; at += each) {
        ASSERT_EQ(table.remove(at, Origin::kForeign, &removed), BOSK_OK);
        ASSERT_EQ(removed.bytes(), each);
      }
      parts = 0;
    }
  }
  AreaInfo removed;
  for (uintptr_t slot = first; slot < end; ++slot) {
    const int parts = state[slot - first];
    if (parts == 0) continue;
    const uintptr_t each = kSlotBytes / static_cast<uintptr_t>(parts);
    for (uintptr_t at = slot_begin(slot); at < slot_begin(slot) + kSlotBytes; at += each)
      ASSERT_EQ(table.remove(at, Origin::kForeign, &removed), BOSK_OK);
  }
}

TEST(MemoryAreasStress, ReadersSeeWholeAreas) {
  const test::MachinePtr machine = test::symmetric(kNodes, 1, 1, 2);
  AreaTable table;
  ASSERT_TRUE(table.prepare(*machine));
  std::atomic<bool> over{false};
  std::atomic<uint64_t> found{0};
  std::vector<std::thread> readers;
  for (uint32_t reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      std::mt19937 random(reader);
      uint64_t n = 0;
      while (!over.load(std::memory_order_relaxed)) {
        AreaInfo info;
        uint64_t on[kNodes];
        const uintptr_t address = slot_begin(random() % kSlots) + random() % kSlotBytes;
        if (!table.look_up(address, &info, on)) continue;
        ++n;
        ASSERT_TRUE(address >= info.begin && address < info.end);
        ASSERT_TRUE(is_whole(info, on)) << std::hex << info.begin << " … " << info.end;
      }
      found.fetch_add(n);
    });
  }
  std::vector<std::thread> writers;
  constexpr uint32_t kWriters = 2;
  for (uint32_t i = 0; i < kWriters; ++i)
    writers.emplace_back([&, i] {
      write_randomly(table, i * kSlots / kWriters, (i + 1) * kSlots / kWriters, 100 + i);
    });
  for (std::thread& writer : writers) writer.join();
  over.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(found.load(), 0u);
  AreaInfo info;
  EXPECT_EQ(table.list(0, &info, 1), 0u);
  for (uint32_t i = 0; i < kNodes; ++i) EXPECT_EQ(table.bytes_on(i), 0u);
}

int keep_footprint(void* at, const std::atomic<uint64_t>* footprint) {
  *static_cast<const std::atomic<uint64_t>**>(at) = footprint;
  return BOSK_OK;
}

TEST(MemoryAreasStress, OwnersComeAndGo) {
  const test::MachinePtr machine = test::symmetric(kNodes, 1, 1, 2);
  AreaTable table;
  ASSERT_TRUE(table.prepare(*machine));
  constexpr uintptr_t kAreas = 200;
  constexpr uint64_t kBytes = 100;
  const uint64_t on[kNodes] = {kBytes, 0, kBytes, kBytes};
  for (uintptr_t i = 0; i < kAreas; ++i) {
    NewArea area{(i + 1) * kGranule, kGranule};
    area.bytes_on = on;
    ASSERT_EQ(table.add(area), BOSK_OK);
  }
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int round = 0; round < kRounds / 20; ++round) {
        const OwnerId me = (static_cast<OwnerId>(round) << 8 | t) + 1;
        const std::atomic<uint64_t>* footprint = nullptr;
        uint64_t attached = 0;
        uintptr_t last = 0;
        for (uint32_t i = random() % 8 + 1; i > 0; --i) {
          const uintptr_t area = 1 + random() % kAreas;
          AreaUse uses[16];
          const uint32_t before = table.uses_of(me, uses, 16);
          ASSERT_EQ(table.attach(area * kGranule + 5, me, kReads, 1, keep_footprint, &footprint),
                    BOSK_OK);
          if (table.uses_of(me, uses, 16) != before) ++attached;
          last = area;
        }
        ASSERT_EQ(footprint[0].load(), attached * kBytes);
        ASSERT_EQ(footprint[1].load(), 0u);
        if (random() % 2 == 0) {
          ASSERT_EQ(table.detach(last * kGranule, me), BOSK_OK);
          --attached;
        }
        ASSERT_EQ(footprint[3].load(), attached * kBytes);
        table.owner_gone(footprint);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t unused[kNodes];
  table.detach_all(1);  // whoever has the lock takes those that have gone
  EXPECT_FALSE(table.footprint(2, unused));
  AreaInfo info;
  for (uintptr_t i = 0; i < kAreas; ++i) {
    ASSERT_TRUE(table.look_up((i + 1) * kGranule, &info));
    EXPECT_EQ(info.attachments, 0u);
  }
}

#if !defined(BOSK_TSAN)  // which forbids a child to make the threads that it waits for
TEST(MemoryAreasStress, ChildrenFindTheTableWhole) {
  const test::MachinePtr machine = test::symmetric(kNodes, 1, 1, 2);
  AreaTable* table = start(*machine);
  ASSERT_NE(table, nullptr);
  std::atomic<bool> over{false};
  std::thread writer([&] {
    uint64_t round = 0;
    while (!over.load()) {
      const uintptr_t begin = (1 + ++round % 500) * 2 * kGranule;
      AreaInfo removed;
      if (table->add({begin, kGranule}) == BOSK_OK) continue;
      ASSERT_EQ(table->remove(begin, Origin::kForeign, &removed), BOSK_OK);
    }
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      AreaInfo info;
      uintptr_t from = 0;
      while (table->list(from, &info, 1) == 1) {
        if (info.bytes() != kGranule ||
            table->remove(info.begin, Origin::kForeign, &info) != BOSK_OK)
          _exit(1);
        from = info.begin;
      }
      _exit(table->add({kGranule, 600 * 2 * kGranule}) == BOSK_OK ? 0 : 2);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  over.store(true);
  writer.join();
}
#endif

}  // namespace
}  // namespace bosk::memory
