// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory is attached to threads and bubbles that end meanwhile, by threads of all kinds; areas come and go. Whoever has ended works
// on nothing, and figures that nobody else touches are exact.
#include <bosk/error.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "omp/team.h"
#include "page_lanes.h"
#include "threads/attached.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

using memory::testing::Random;

constexpr unsigned kMakers = 3;
constexpr unsigned kMeddlers = 3;  // and as many members of a region
constexpr unsigned kSlots = 12;
constexpr unsigned kRounds = 150;
constexpr unsigned kShared = 16;  // areas
constexpr size_t kBytes = 1 << 20;
constexpr int kUse = memory::kReads | memory::kWrites;

/// Addresses that nobody looks at.
void* area(unsigned number) {
  return reinterpret_cast<void*>((uintptr_t{1} << 40) + uintptr_t{number} * 2 * kBytes);
}
/// Those after the shared ones are the makers', one each.
void* own_area(unsigned maker) { return area(kShared + maker); }

void add(void* at) {
  memory::AreaTable* areas = memory_areas();
  std::vector<uint64_t> on(areas->nodes().count(), 0);
  on[0] = kBytes;
  memory::NewArea made{reinterpret_cast<uintptr_t>(at), kBytes};
  made.bytes_on = on.data();
  ASSERT_EQ(areas->add(made), BOSK_OK);
}

uint32_t attachments_of(void* at) {
  memory::AreaTable* areas = memory_areas();
  // Whoever takes the lock takes the owners that have gone.
  areas->detach_all(1);
  memory::AreaInfo found;
  return areas->look_up(reinterpret_cast<uintptr_t>(at), &found) ? found.attachments : UINT32_MAX;
}

struct Shared {
  std::atomic<bosk_thread_t> thread[kSlots] = {};
  std::atomic<bosk_bubble_t> bubble[kSlots] = {};
  std::atomic<unsigned> makers{kMakers};
  std::atomic<unsigned> wrong{0};
  std::atomic<unsigned> attached{0};
  std::atomic<unsigned> too_late{0};
};

bool is_fine(Shared& shared, int error) {
  if (error == BOSK_OK) shared.attached.fetch_add(1, std::memory_order_relaxed);
  if (error == BOSK_ESTALE || error == BOSK_ESTATE)
    shared.too_late.fetch_add(1, std::memory_order_relaxed);
  return error >= BOSK_OK || error == BOSK_ESTALE || error == BOSK_ESTATE || error == BOSK_ENOENT ||
         error == BOSK_ENOAREA;
}

/// Does anything to anybody, as long as threads are made.
void meddle(Shared& shared, unsigned number) {
  Random random{number * 7919 + 12345};
  while (shared.makers.load(std::memory_order_relaxed) != 0) {
    bosk_thread_t thread = shared.thread[random.below(kSlots)].load(std::memory_order_acquire);
    bosk_bubble_t bubble = shared.bubble[random.below(kSlots)].load(std::memory_order_acquire);
    if (thread == nullptr || bubble == nullptr) continue;
    void* at = area(static_cast<unsigned>(random.below(kShared)));
    uint64_t bytes[4];
    memory::NodeIndex node;
    int error = BOSK_OK;
    switch (random.below(10)) {
      case 0 ... 1:
        error = attach_thread(at, thread, kUse, 1);
        break;
      case 2 ... 3:
        error = attach_bubble(at, bubble, kUse, 1);
        break;
      case 4:
        error = detach_thread_from(at, thread);
        break;
      case 5:
        error = random.below(2) == 0 ? detach_all_of_thread(thread) : detach_all_of_bubble(bubble);
        break;
      case 6:
        error = random.below(2) == 0 ? thread_footprint(thread, bytes, 4)
                                     : bubble_footprint(bubble, bytes, 4);
        break;
      case 7:
        error = best_node(thread, &node);
        break;
      case 8:
        error = each_area_of(
            bubble,
            [](void* all, const memory::AreaInfo& found) {
              if (found.bytes() != kBytes) static_cast<Shared*>(all)->wrong.fetch_add(1);
            },
            &shared);
        break;
      default: {
        // It ends while others attach it: with it all of its attachments.
        memory::AreaInfo removed;
        if (memory_areas()->remove(reinterpret_cast<uintptr_t>(at), memory::Origin::kForeign,
                                   &removed) == BOSK_OK)
          add(at);
      }
    }
    if (!is_fine(shared, error)) shared.wrong.fetch_add(1);
  }
}

struct Body {
  Shared* shared;
  unsigned maker;
  bosk_bubble_t bubble;
  bool known;  ///< to the meddlers: figures may change
};

void* live(void* data) {
  const auto& body = *static_cast<Body*>(data);
  Shared& shared = *body.shared;
  uint64_t bytes[4];
  int error = attach_thread(own_area(body.maker), this_thread(), kUse, 7);
  if (error == BOSK_OK) error = attach_bubble(own_area(body.maker), body.bubble, kUse, 7);
  if (error != BOSK_OK || thread_footprint(this_thread(), bytes, 4) < 1) shared.wrong.fetch_add(1);
  if (!body.known && bytes[0] != kBytes) shared.wrong.fetch_add(1);
  yield_thread();
  // Attached it stays: its end is the end of that.
  return nullptr;
}

void make(Shared& shared, unsigned maker) {
  // On a busy machine the meddlers may come late.
  const auto goes_on = [&shared](unsigned round) {
    return round < kRounds ||
           (round < 1000 * kRounds && (shared.attached.load(std::memory_order_relaxed) == 0 ||
                                       shared.too_late.load(std::memory_order_relaxed) == 0));
  };
  for (unsigned round = 0; goes_on(round); ++round) {
    const bool known = round % 3 != 0;
    const unsigned slot = maker * (kSlots / kMakers) + round % (kSlots / kMakers);
    bosk_bubble_t bubble;
    bosk_thread_t thread;
    if (create_bubble(&bubble) != BOSK_OK) abort();
    Body body{&shared, maker, bubble, known};
    bosk_thread_attr_t how;
    init_attributes(&how);
    how.bubble = bubble;
    how.light = round % 2;
    if (create_thread(&thread, &how, live, &body) != BOSK_OK) abort();
    if (known) {
      shared.thread[slot].store(thread, std::memory_order_release);
      shared.bubble[slot].store(bubble, std::memory_order_release);
    }
    if (wake_bubble(bubble, nullptr) != BOSK_OK || join_thread(thread, nullptr) != BOSK_OK ||
        join_bubble(bubble) != BOSK_OK)
      shared.wrong.fetch_add(1);
    // Of the thread nothing is left; the bubble is there until it is destroyed. The meddlers may have taken its own away.
    const uint32_t left = attachments_of(own_area(maker));
    if (left > 1 || (!known && left != 1)) shared.wrong.fetch_add(1);
    if (destroy_bubble(bubble) != BOSK_OK) shared.wrong.fetch_add(1);
    if (attachments_of(own_area(maker)) != 0) shared.wrong.fetch_add(1);
    if (attach_thread(own_area(maker), thread, kUse, 1) != BOSK_ESTALE ||
        attach_bubble(own_area(maker), bubble, kUse, 1) != BOSK_ESTALE)
      shared.wrong.fetch_add(1);
  }
  shared.makers.fetch_sub(1);
}

TEST(AttachedStress, WhoHasEndedWorksOnNothing) {
  ASSERT_NE(memory_areas(), nullptr);
  // The home is a stranger's: where nothing is preempted, main's workers are busy as long as the region is.
  std::thread([] {
    bosk_thread_t first;
    if (create_thread(&first, nullptr, [](void*) -> void* { return nullptr; }, nullptr) == BOSK_OK)
      join_thread(first, nullptr);
  }).join();
  for (unsigned i = 0; i < kShared + kMakers; ++i) add(area(i));
  Shared shared;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kMakers; ++i) threads.emplace_back([&, i] { make(shared, i); });
  for (unsigned i = 0; i < kMeddlers; ++i) threads.emplace_back([&, i] { meddle(shared, i); });
  std::atomic<unsigned> member{kMeddlers};
  const auto as_member = [&] { meddle(shared, member.fetch_add(1)); };
  omp::parallel([](void* data) { (*static_cast<decltype(as_member)*>(data))(); },
                const_cast<void*>(static_cast<const void*>(&as_member)), 2, 0);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared.wrong.load(), 0u);
  EXPECT_GT(shared.attached.load(), 0u);
  EXPECT_GT(shared.too_late.load(), 0u);
  for (unsigned i = 0; i < kShared + kMakers; ++i) {
    EXPECT_EQ(attachments_of(area(i)), 0u) << i;
    memory::AreaInfo removed;
    EXPECT_EQ(memory_areas()->remove(reinterpret_cast<uintptr_t>(area(i)), memory::Origin::kForeign,
                                     &removed),
              BOSK_OK);
  }
}

}  // namespace
}  // namespace bosk::threads
