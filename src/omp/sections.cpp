// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sections.
#include "omp/sections.h"

#include "omp/reduction.h"
#include "omp/workshare_chain.h"

namespace bosk::omp {
namespace {

// 32-bit counts cannot make a 64-bit counter overflow: kCounter always fits.
void build_sections(WorkShare& share, uint32_t count) {
  build_loop(share, LoopBounds{0, count, 1, true, count == 0}, {kScheduleDynamic, 1, false}, false);
}

uint32_t first_section(ImplicitTask* member) {
  member->loop_state[kHolding] = kHoldingNothing;
  member->loop_state[kMore] = kMoreCounter;
  return sections_next(member);
}

}  // namespace

uint32_t sections_start(ImplicitTask* member, uint32_t count) {
  if (member->team->size == 1) {
    member->loop_state[kHolding] = kHoldingNothing;
    member->loop_state[kMore] = kMoreSerial;
    member->loop_state[kPosition] = 0;
    member->loop_state[kTicket] = count;
    return sections_next(member);
  }
  enter_workshare(member, [count](WorkShare& fresh) { build_sections(fresh, count); });
  return first_section(member);
}

uint32_t sections_start_with_extras(ImplicitTask* member, uint32_t count, ConstructExtras extras) {
  if (!extras.any()) return sections_start(member, count);
  WorkShare* share = enter_workshare(member, [&](WorkShare& fresh) {
    build_sections(fresh, count);
    make_extras(fresh, extras);
  });
  use_extras(*share, extras);
  return first_section(member);
}

void sections_preset(Team* team, uint32_t count) {
  preset_workshare(team, [count](WorkShare& fresh) { build_sections(fresh, count); });
}

uint32_t sections_next(ImplicitTask* member) {
  uint64_t* state = member->loop_state;
  switch (state[kMore]) {
    case kMoreCounter: {
      // relaxed, and at most one step too far per member, as in loop_next().
      const uint64_t section = member->workshare->claimed.fetch_add(1, std::memory_order_relaxed);
      if (section < member->workshare->count) return static_cast<uint32_t>(section + 1);
      state[kMore] = kMoreNothing;
      return 0;
    }
    case kMoreSerial:
      if (state[kPosition] < state[kTicket]) return static_cast<uint32_t>(++state[kPosition]);
      state[kMore] = kMoreNothing;
      return 0;
    default:
      // A member's first call in a combined construct has no start before it.
      if (member->workshare != nullptr || !member->team->workshares.preset) return 0;
      enter_workshare(member, [](WorkShare&) {});
      return first_section(member);
  }
}

}  // namespace bosk::omp
