// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "locality/book_upkeep.h"

#include <algorithm>

#include "base/memory_watch_setting.h"
#include "locality/service.h"
#include "memory/area_migration.h"
#include "memory/manager.h"
#include "sched/clock.h"

namespace bosk::locality {
namespace {

constexpr uint64_t kMs = 1'000'000;  // ns
constexpr uint64_t kComingPause = 10 * kMs;
constexpr uint64_t kLeastPause = 25 * kMs;
constexpr uint64_t kMostPause = 400 * kMs;
/// Of a processor's time, that looking may take.
constexpr uint64_t kWorthPart = 50;

struct State {
  uint64_t next_coming = 0;
  uint64_t coming_pause = kComingPause;
  uint64_t next_area = 0;
  uint64_t pause = kLeastPause;
  uintptr_t at = 0;      ///< where the next look begins
  bool changed = false;  ///< on this round
  bool any = false;      ///< was attached to somebody, on this round
  bool idle = false;     ///< nothing was, on the last one
};
constinit State state;

/// The next area that is attached to somebody. False: there is none before the end, or among many.
bool next_area(memory::AreaTable& areas, memory::AreaInfo* area) {
  constexpr uint32_t kAtOnce = 16;
  constexpr uint32_t kMostTurns = 64;  // of some 2 us
  memory::AreaInfo found[kAtOnce];
  for (uint32_t turn = 0; turn < kMostTurns; ++turn) {
    const uint32_t n = areas.list(state.at, found, kAtOnce);
    for (uint32_t i = 0; i < n; ++i) {
      state.at = found[i].end;
      if (found[i].attachments == 0) continue;
      state.any = true;
      *area = found[i];
      return true;
    }
    if (n < kAtOnce) {
      // A round is over.
      state.at = 0;
      state.pause = state.changed ? kLeastPause : std::min(2 * state.pause, kMostPause);
      state.idle = !state.any;
      state.changed = state.any = false;
      return false;
    }
  }
  return false;
}

/// True: footprints have changed.
bool look_at_next(memory::AreaTable& areas) {
  memory::AreaInfo area;
  if (!next_area(areas, &area) || !memory::is_out_of_date(areas, area)) return false;
  memory::refresh_area(areas, area);
  state.changed = true;
  return true;
}

}  // namespace

bool books_are_kept(const memory::AreaTable* areas) {
  return areas != nullptr && areas->nodes().real() && areas->nodes().count() > 1 &&
         base::memory_watch() != base::MemoryWatch::kOff;
}

uint64_t keep_books() {
  if (!books_are_kept(memory::areas()) || !any_adapter(&Adapter::minds_books))
    return sched::kForever;
  memory::AreaTable& areas = *memory::areas();
  const uint64_t now = sched::clock_now();
  const uint64_t begun = own_time();
  bool changed = false;
  if (areas.coming() != 0 && now >= state.next_coming) {
    changed = memory::refresh_coming_areas(areas);
    state.coming_pause = changed ? kComingPause : std::min(2 * state.coming_pause, kMostPause);
    state.next_coming = now + std::max(state.coming_pause, kWorthPart * (own_time() - begun));
  }
  if (now >= state.next_area) {
    changed = look_at_next(areas) || changed;
    state.next_area = now + std::max(state.pause, kWorthPart * (own_time() - begun));
  }
  if (changed) each_adapter(&Adapter::books_changed);
  if (areas.coming() != 0) return std::min(state.next_coming, state.next_area);
  // Who attaches something says so where memory moves.
  return state.idle && any_adapter(&Adapter::asks) ? sched::kForever : state.next_area;
}

void forget_books() { state = State{}; }

}  // namespace bosk::locality
