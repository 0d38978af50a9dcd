// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moving along a team's chain of worksharing constructs.
#pragma once

#include "omp/team.h"
#include "omp/workshare.h"

namespace bosk::omp {

/// A free object of the team, ready to be filled. By the one builder that the team has at a time.
WorkShare* take_workshare(Team* team);

/// Gives back an object that no member can reach any more.
void give_back_workshare(Team* team, WorkShare* share);

/// Waits until `link` is kReady.
void wait_for_workshare(WorkShareLink& link);

/// Tells those who wait that `link` leads to `share`.
void publish_workshare(WorkShareLink& link, WorkShare* share);

/// Makes `buffer` hold at least `bytes`, aligned to `alignment`; what it held is lost.
void* reserve(WorkShare::Buffer& buffer, size_t bytes, size_t alignment = base::kCacheLine);

inline bool parallel_cancelled(const Team* team) {
  // acquire: who leaves early sees what the cancelling member did before.
  return (team->cancel_bits.load(std::memory_order_acquire) & 1) != 0;
}

/// Records that the team must be reset when its region ends.
inline void mark_used(Team* team) {
  // relaxed: the join that the reset follows orders it.
  if (!team->workshares.used.load(std::memory_order_relaxed)) {
    team->workshares.used.store(true, std::memory_order_relaxed);
  }
}

/// The last that a member has to do with `behind` (even its size must not be read any more).
inline void move_past(Team* team, WorkShare* behind) {
  // release: its reads of the object come before its reuse; acquire: the last member, who gives it
  // back, has all the others' reads before it.
  if (behind->moved_on.fetch_add(1, std::memory_order_acq_rel) + 1 == team->size) {
    give_back_workshare(team, behind);
  }
}

/// Moves `member` to its next construct; build(share) is called to fill the object if it is the
/// first to arrive.
template <typename Build>
inline WorkShare* enter_workshare(ImplicitTask* member, Build build) {
  Team* team = member->team;
  WorkShare* behind = member->workshare;
  WorkShareLink& link = behind != nullptr ? behind->link : team->workshares.head;

  // acquire pairs with the release in publish_workshare(): what the builder filled in is seen.
  uint32_t state = link.state.load(std::memory_order_acquire);
  if (state != WorkShareLink::kReady) {
    // Only one member builds at a time, in the whole team: the link after this one can be built only
    // by a member that has seen this one ready. The acquire of that sight (or of the region's start)
    // is therefore all that taking from the private pool needs; the exchange itself is relaxed.
    if (state == WorkShareLink::kAbsent &&
        link.state.compare_exchange_strong(state, WorkShareLink::kBuilding,
                                           std::memory_order_relaxed)) {
      WorkShare* share = take_workshare(team);
      build(*share);
      publish_workshare(link, share);
    } else {
      wait_for_workshare(link);
    }
  }
  WorkShare* share = link.next;
  member->workshare = share;
  if (behind != nullptr) move_past(team, behind);
  return share;
}

/// Makes the first construct of a region before its members start (the combined forms).
template <typename Build>
inline void preset_workshare(Team* team, Build build) {
  WorkShareLink& head = team->workshares.head;
  WorkShare* share = take_workshare(team);
  build(*share);
  head.next = share;
  // relaxed: starting the members publishes all that the opener wrote.
  head.state.store(WorkShareLink::kReady, std::memory_order_relaxed);
  team->workshares.preset = true;
}

}  // namespace bosk::omp
