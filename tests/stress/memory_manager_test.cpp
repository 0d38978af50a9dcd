// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory manager as a whole: sixteen threads touch areas that they share, mark them for next-touch, cancel, migrate,
// distribute, attach, fork and make system calls on them; each also allocates, cuts, moves and frees areas of its own,
// and small blocks that others free. Every word that was written is looked at.
// BOSK_MEMORY_OPERATIONS: how many operations for each backend (250000). An operation is a page that is written to or
// compared, or a call; what there were of each is printed. BOSK_STRESS_SEED: another number, another run (1).
#include <bosk/error.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "../unit/next_touch_support.h"
#include "memory/allocate.h"
#include "memory/area_migration.h"
#include "memory/manager.h"
#include "memory/next_touch/next_touch.h"
#include "memory/page_blocks.h"
#include "memory/page_nodes.h"
#include "page_lanes.h"
#include "threads/migration_crew.h"
#include "threads/operations.h"
#include "topology/source.h"

namespace bosk::memory {
namespace {

using testing::child_agrees;
using testing::Lane;
using testing::Random;

constexpr size_t kPage = Lane::kPageBytes;
constexpr unsigned kThreads = 16;
constexpr size_t kBasket = 64;
// Some pieces of 2 MiB, one that a crew moves, small ones.
constexpr size_t kSharedPages[] = {1100, 9000, 3, 64, 300};
constexpr size_t kLarge = 2000;  // pages
constexpr size_t kShared = sizeof kSharedPages / sizeof *kSharedPages;

unsigned long operations() {
  const char* text = getenv("BOSK_MEMORY_OPERATIONS");
  return text != nullptr ? strtoul(text, nullptr, 10) : 250'000;
}

uint64_t seed() {
  const char* text = getenv("BOSK_STRESS_SEED");
  return text != nullptr ? strtoul(text, nullptr, 10) : 1;
}

AreaTable* manager() {
  static AreaTable* const made = [] {
    set_migration_crew(threads::migration_crew());
    // From then on there are workers to lend.
    bosk_thread_t first;
    if (threads::create_thread(
            &first, nullptr, [](void*) -> void* { return nullptr; }, nullptr) == BOSK_OK)
      threads::join_thread(first, nullptr);
    return start(*topology::process_machine(nullptr));
  }();
  return made;
}

/// Bytes that tell whose they are.
void fill(char* at, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; ++i) at[i] = static_cast<char>((i * 131 + seed) >> (i & 3));
}
bool is_filled(const char* at, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; ++i)
    if (at[i] != static_cast<char>((i * 131 + seed) >> (i & 3))) return false;
  return true;
}

/// A small block on its way from one thread to another.
struct Parcel {
  size_t bytes;
  uint64_t seed;
  char* text() { return reinterpret_cast<char*>(this + 1); }
};

enum Operation {
  kWritten,
  kCompared,
  kMarks,
  kCancels,
  kQueries,
  kSystemCalls,
  kBooks,
  kMigrations,
  kAreas,
  kBlocks,
  kForks,
  kOperations
};
constexpr const char* kOperationNames[kOperations] = {
    "pages written", "pages compared",   "marks", "cancels",
    "queries",       "system calls",     "books", "migrations",
    "areas' lives",  "blocks handed on", "forks"};

struct Shared {
  AreaTable& areas;
  NextTouchBackend backend;
  bool calls_work;
  char* base[kShared] = {};
  std::atomic<Parcel*> basket[kBasket] = {};
  std::atomic<uint64_t> added{0};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> refused{0};  // marks
  std::atomic<uint64_t> moved{0};
  std::atomic<uint64_t> left_behind{0};
  std::atomic<uint64_t> done[kOperations] = {};
};

class Worker {
 public:
  Worker(Shared& shared, unsigned thread)
      : shared_(shared),
        areas_(shared.areas),
        thread_(thread),
        random_{thread * 7919 + 12345 + (seed() - 1) * 1'000'003} {
    for (size_t i = 0; i < kShared; ++i)
      lanes_.push_back({shared.base[i], kSharedPages[i], thread});
    if (pipe(ends_) != 0) abort();
  }

  void run(unsigned long count) {
    while (sum_ < count)
      if (!step()) shared_.wrong.fetch_add(1, std::memory_order_relaxed);
    for (const Lane& lane : lanes_)
      if (!lane.all_good()) shared_.wrong.fetch_add(1, std::memory_order_relaxed);
    areas_.detach_all(owner());
    for (int kind = 0; kind < kOperations; ++kind)
      shared_.done[kind].fetch_add(done_[kind], std::memory_order_relaxed);
    close(ends_[0]);
    close(ends_[1]);
  }

 private:
  OwnerId owner() const { return 1000 + thread_; }

  void count(Operation kind, uint64_t times = 1) {
    done_[kind] += times;
    sum_ += times;
  }

  bool step() {
    Lane& lane = lanes_[random_.below(kShared)];
    const size_t page = random_.below(lane.pages);
    const size_t most = random_.below(64) == 0 ? lane.pages : 40;
    const size_t end = std::min(page + 1 + random_.below(most), lane.pages);
    char* const at = lane.base + page * kPage;
    const size_t bytes = (end - page) * kPage;
    switch (random_.below(128)) {
      default:
        for (size_t i = page; i < end && i < page + 8; ++i, count(kWritten)) lane.add(i);
        testing::common(lane.base, page).fetch_add(1, std::memory_order_relaxed);
        shared_.added.fetch_add(1, std::memory_order_relaxed);
        return true;
      case 0 ... 19:
        for (size_t i = page; i < end; ++i, count(kCompared))
          if (!lane.good(i)) return false;
        return true;
      case 20 ... 33:
        return mark(at, bytes);
      case 34 ... 39:
        count(kCancels);
        return next_touch_cancel(at, bytes) == kNextTouchOk;
      case 40 ... 43: {
        count(kQueries);
        NextTouchState state;
        return next_touch_query(at, bytes, &state) == kNextTouchOk && state.marked <= state.pages &&
               state.pages == end - page;
      }
      case 44 ... 53:
        count(kSystemCalls);
        return testing::call_on(lane, page, ends_, shared_.calls_work);
      case 54 ... 61:
        return books(at, lane);
      case 62:
        // The large one is for the crew, and takes its time.
        return lane.pages > kLarge && random_.below(20) != 0 ? true : move(at);
      case 63:
        return own_pages();
      case 64 ... 75:
        return parcels();
      case 76:
        if (random_.below(60) != 0) return true;
        count(kForks);
        return child_agrees(lane);
      case 77:
        if (random_.below(60) == 0) next_touch_resolve_all();
        return true;
    }
  }

  NodeIndex any_node() {
    const uint32_t count = areas_.nodes().count();
    NodeIndex node = static_cast<NodeIndex>(random_.below(count));
    while (!areas_.nodes().usable(node)) node = (node + 1) % count;
    return node;
  }

  bool mark(char* at, size_t bytes) {
    AreaInfo area;
    if (!areas_.look_up(reinterpret_cast<uintptr_t>(at), &area)) return false;
    if (area.origin == Origin::kPages) place_by_touch(areas_, area);
    note_marked(areas_, area);
    count(kMarks);
    NextTouchOptions options;
    options.backend = shared_.backend;
    options.on_write = random_.below(4) == 0;
    options.window = static_cast<uint32_t>(random_.below(3) * random_.below(70));
    // Somebody else may have migrated the area meanwhile, which says where its pages are.
    const int error = next_touch_mark(at, bytes, options);
    if (error != kNextTouchOk && error != kNextTouchPolicy)
      shared_.refused.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  bool note(const Moved& moved, size_t pages) {
    shared_.moved.fetch_add(moved.moved, std::memory_order_relaxed);
    shared_.left_behind.fetch_add(moved.refused + moved.no_memory, std::memory_order_relaxed);
    return moved.pages() == pages;
  }

  bool move(char* at) {
    AreaInfo area;
    if (!areas_.look_up(reinterpret_cast<uintptr_t>(at), &area)) return false;
    count(kMigrations);
    Moved moved;
    if (random_.below(3) != 0) {
      migrate_area(areas_, area, any_node(), &moved);
    } else {
      const NodeIndex nodes[] = {any_node(), any_node(), any_node()};
      if (distribute_area(areas_, area, nodes, 3, (1 + random_.below(5)) * kPage, &moved) !=
          BOSK_OK)
        return false;
    }
    return note(moved, area.bytes() / kPage);
  }

  bool books(char* at, const Lane& lane) {
    count(kBooks);
    const auto address = reinterpret_cast<uintptr_t>(at);
    std::vector<uint64_t> on(areas_.nodes().count());
    AreaInfo area;
    if (!areas_.look_up(address, &area, on.data()) ||
        area.begin != reinterpret_cast<uintptr_t>(lane.base) || area.bytes() != lane.pages * kPage)
      return false;
    uint64_t sum = 0;
    for (const uint64_t bytes : on) sum += bytes;
    if (sum > area.bytes()) return false;
    switch (random_.below(4)) {
      case 0:
        return areas_.attach(address, owner(), kReads | kWrites, 3, nullptr, nullptr) == BOSK_OK;
      case 1: {
        const int error = areas_.detach(address, owner());
        return error == BOSK_OK || error == BOSK_ENOENT;
      }
      case 2:
        look_at_pages(areas_.nodes(), area.begin, area.bytes(), on.data());
        areas_.set_bytes(area, on.data());
        return true;
      default:
        areas_.footprint(owner(), on.data());
        return true;
    }
  }

  /// The life of an area that nobody else knows: freed as a whole or in parts, marked or not.
  bool own_pages() {
    count(kAreas);
    PageRequest request;
    const size_t pages = 1 + random_.below(40);
    request.bytes = pages * kPage;
    constexpr Placement kPlacements[] = {Placement::kDefault,     Placement::kOnNode,
                                         Placement::kLeastLoaded, Placement::kInterleaved,
                                         Placement::kWeighted,    Placement::kFirstTouch,
                                         Placement::kNextTouch};
    request.placement = kPlacements[random_.below(7)];
    request.node = any_node();
    void* block;
    if (allocate_pages(areas_, request, &block) != BOSK_OK) return false;
    auto* at = static_cast<char*>(block);
    const uint64_t seed = random_.below(1 << 20);
    fill(at, request.bytes, seed);
    bool good = random_.below(2) == 0 || mark(at, request.bytes);
    if (random_.below(2) == 0) good = move(at) && good;
    if (random_.below(2) == 0) good = mark(at, request.bytes) && good;
    if (random_.below(2) == 0) good = is_filled(at, request.bytes, seed) && good;
    if (pages < 3 || random_.below(3) != 0) return free_pages(areas_, at) == BOSK_OK && good;
    void* part[3];
    if (areas_.split(reinterpret_cast<uintptr_t>(at), 3, kPage, part) != BOSK_OK) return false;
    good = free_pages(areas_, part[1]) == BOSK_OK && good;
    const auto first = static_cast<size_t>(static_cast<char*>(part[1]) - at);
    good = is_filled(at, first, seed) && good;
    good = free_pages(areas_, part[2]) == BOSK_OK && good;
    return free_pages(areas_, part[0]) == BOSK_OK && good;
  }

  /// Puts a block where somebody takes it, looks into the one that was there, and frees that.
  bool parcels() {
    count(kBlocks);
    const size_t bytes = sizeof(Parcel) + random_.below(random_.below(8) == 0 ? 70'000 : 500);
    auto* mine = static_cast<Parcel*>(allocate(areas_, bytes, 0, false));
    if (mine == nullptr) return false;
    *mine = {bytes - sizeof(Parcel), random_.below(1 << 20)};
    fill(mine->text(), mine->bytes, mine->seed);
    // Whoever takes it finds it filled, and its maker is done with it.
    Parcel* other =
        shared_.basket[random_.below(kBasket)].exchange(mine, std::memory_order_acq_rel);
    if (other == nullptr) return true;
    const bool good = is_filled(other->text(), other->bytes, other->seed);
    return release(areas_, other) == BOSK_OK && good;
  }

  Shared& shared_;
  AreaTable& areas_;
  unsigned thread_;
  Random random_;
  std::vector<Lane> lanes_;
  int ends_[2];
  uint64_t done_[kOperations] = {};
  uint64_t sum_ = 0;
};

class MemoryManagerStress : public ::testing::TestWithParam<NextTouchBackend> {};

TEST_P(MemoryManagerStress, LosesNoByte) {
  if (!next_touch_available(GetParam())) GTEST_SKIP() << "not allowed here";
  ASSERT_NE(manager(), nullptr);
  AreaTable& areas = *manager();
  Shared shared{areas, GetParam(), GetParam() == NextTouchBackend::kUffdThread};
  for (size_t i = 0; i < kShared; ++i) {
    void* block;
    PageRequest request;
    request.bytes = kSharedPages[i] * kPage;
    if (i + 1 < kShared) {
      ASSERT_EQ(allocate_pages(areas, request, &block), BOSK_OK);
    } else {
      // The last one is the program's own.
      block =
          mmap(nullptr, request.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(block, MAP_FAILED);
      ASSERT_EQ(areas.add({reinterpret_cast<uintptr_t>(block), request.bytes}), BOSK_OK);
    }
    shared.base[i] = static_cast<char*>(block);
  }
  const NextTouchStatistics before = next_touch_statistics();
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { Worker(shared, i).run(operations() / kThreads); });
  for (std::thread& thread : threads) thread.join();
  const NextTouchStatistics after = next_touch_statistics();
  EXPECT_EQ(shared.wrong.load(), 0u);
  EXPECT_EQ(shared.refused.load(), 0u);
  EXPECT_EQ(after.lost, before.lost);
  uint64_t sum = 0;
  for (size_t i = 0; i < kShared; ++i)
    for (size_t page = 0; page < kSharedPages[i]; ++page)
      sum += testing::common(shared.base[i], page).load();
  EXPECT_EQ(sum, shared.added.load());
  EXPECT_GT(after.faults, before.faults);
  EXPECT_GT(after.cancelled, before.cancelled);
  uint64_t all = 0;
  for (const auto& count : shared.done) all += count.load();
  EXPECT_GE(all, operations() / kThreads * kThreads);
  printf("%lu operations:", static_cast<unsigned long>(all));
  for (int kind = 0; kind < kOperations; ++kind) {
    printf("%s %lu %s", kind == 0 ? "" : ",", static_cast<unsigned long>(shared.done[kind].load()),
           kOperationNames[kind]);
    if (operations() >= 250'000) {
      EXPECT_NE(shared.done[kind].load(), 0u) << kOperationNames[kind];
    }
  }
  printf("\n%lu pages marked, %lu faults, %lu pages migrated, %lu left behind\n",
         static_cast<unsigned long>(after.marked - before.marked),
         static_cast<unsigned long>(after.faults - before.faults),
         static_cast<unsigned long>(shared.moved.load()),
         static_cast<unsigned long>(shared.left_behind.load()));

  for (std::atomic<Parcel*>& left : shared.basket)
    if (Parcel* parcel = left.load(); parcel != nullptr) {
      EXPECT_EQ(release(areas, parcel), BOSK_OK);
    }
  for (size_t i = 0; i < kShared; ++i) {
    if (i + 1 < kShared) {
      EXPECT_EQ(free_pages(areas, shared.base[i]), BOSK_OK);
      continue;
    }
    AreaInfo removed;
    next_touch_cancel(shared.base[i], kSharedPages[i] * kPage);
    EXPECT_EQ(areas.remove(reinterpret_cast<uintptr_t>(shared.base[i]), Origin::kForeign, &removed),
              BOSK_OK);
    munmap(shared.base[i], kSharedPages[i] * kPage);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, MemoryManagerStress, testing::kBackends,
                         testing::name_of_backend);

}  // namespace
}  // namespace bosk::memory
