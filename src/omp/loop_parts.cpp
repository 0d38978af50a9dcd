// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops in parts: dealing them out so that iterations stay where schedule(static) puts them, and
// stealing from near members first.
#include "omp/loop_parts.h"

#include <new>

#include "base/atomics_policy.h"
#include "omp/loop.h"
#include "omp/several_nodes.h"
#include "omp/workshare_chain.h"

namespace bosk::omp {
namespace {

using Part = LoopPart<base::StdAtomics>;

Part* parts_of(const WorkShare& share) { return static_cast<Part*>(share.parts.at); }

/// Chunks first … end - 1, none of which need be the loop's last.
struct Taken {
  uint32_t first;
  uint32_t end;
};

bool steal_from(ImplicitTask* member, WorkShare& share, uint32_t victim, Taken* taken) {
  Part* parts = parts_of(share);
  uint32_t first, end;
  if (victim == member->index || !parts[victim].steal(&first, &end)) return false;
  const uint32_t now = share.handout == Handout::kHalves ? end - (end - first) / 2 : first + 1;
  parts[member->index].refill(now, end);
  member->loop_state[kPosition] = victim;
  *taken = {first, now};
  return true;
}

/// O(size) when there is nothing left, once or twice a construct: then somebody gets the last chunk, and
/// whoever comes later is told.
bool steal_part(ImplicitTask* member, WorkShare& share, Taken* taken) {
  if (share.claimed.load(std::memory_order_relaxed) != 0) return false;
  const Part* parts = parts_of(share);
  const auto start = static_cast<uint32_t>(member->loop_state[kPosition]);
  // Members with equal work end at about the same time: the last few chunks of the others, if they are
  // that small, are not worth the way.
  constexpr int kPauses = 4;
  if (start == member->index)
    for (int i = 0; i < kPauses; ++i) base::cpu_pause();
  const uint32_t here = share.near_first ? parts[member->index].node() : 0;
  for (const bool near_only : {true, false}) {
    if (near_only && here == 0) continue;
    uint32_t victim = start;
    for (uint32_t tried = 0; tried < share.size; ++tried) {
      if ((!near_only || parts[victim].node() == here) && steal_from(member, share, victim, taken))
        return true;
      if (++victim == share.size) victim = 0;
    }
  }
  *taken = {static_cast<uint32_t>(share.chunks - 1), static_cast<uint32_t>(share.chunks)};
  return share.claimed.exchange(1, std::memory_order_relaxed) == 0;
}

bool take_own(const WorkShare& share, Part& part, Taken* taken) {
  if (share.handout == Handout::kHalves) return part.take_half(&taken->first, &taken->end);
  if (!part.take(&taken->first)) return false;
  taken->end = taken->first + 1;
  return true;
}

}  // namespace

/// Each member's part: the chunks of the block that schedule(static) would give it. The loop's last chunk
/// is in no part: who has it must not get another afterwards, because compilers find out by a thread's last
/// iteration whose `lastprivate` values are the loop's.
bool build_parts(WorkShare& share, bool guided) {
  if (share.chunks > Part::kMostChunks) return false;
  share.near_first = several_nodes();
  // Members of guided loops seldom come for more: on one node the counter that all share is as good.
  if (guided && !share.near_first) return false;
  if (!parts_pay(share.chunks, share.size, share.near_first)) return false;
  share.handout = guided ? Handout::kHalves : Handout::kParts;
  const WorkShare::Buffer before = share.parts;
  auto* parts = static_cast<Part*>(reserve(share.parts, share.size * sizeof(Part)));
  // Memory that is used again knows where the members were in an earlier loop.
  if (parts != before.at || share.parts.bytes != before.bytes)
    for (size_t i = 0; i < share.parts.bytes / sizeof(Part); ++i) new (&parts[i]) Part;
  for (uint32_t i = 0; i < share.size; ++i) {
    const IterationRange range = block_of(share.chunks - 1, share.size, i);
    parts[i].refill(static_cast<uint32_t>(range.first), static_cast<uint32_t>(range.last));
  }
  return true;
}

void come_to_part(const ImplicitTask* member, WorkShare& share) {
  parts_of(share)[member->index].set_node(node_here());
}

bool loop_next_part(ImplicitTask* member, Chunk* chunk) {
  WorkShare& share = *member->workshare;
  Taken taken;
  if (!take_own(share, parts_of(share)[member->index], &taken) &&
      !steal_part(member, share, &taken)) {
    member->loop_state[kMore] = kMoreNothing;
    return false;
  }
  const uint64_t last = taken.end == share.chunks ? share.count : taken.end * share.chunk;
  *chunk =
      chunk_of(share.start, share.end, share.step, share.count, {taken.first * share.chunk, last});
  return true;
}

}  // namespace bosk::omp
