// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Worksharing constructs of a team: the chain that members walk along, one object per construct.
//
// Members may be any number of `nowait` constructs apart. Each holds its position in the chain
// (ImplicitTask::workshare, null before the first construct) and moves on along `link`. Whoever
// finds the link absent builds the next object; others that come meanwhile wait for it. When the
// last of the team's members has moved past an object nobody can reach it any more, and it goes
// back to the team's pool. docs/design/worksharing.md has the whole argument.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "base/cpu.h"

namespace bosk::omp {

struct Team;
struct WorkShare;

/// The way to the next construct. `state` goes kAbsent → kBuilding → kReady; a member that waits
/// turns kBuilding into kBuildingWaited, so that a builder nobody waits for need not wake anybody.
struct WorkShareLink {
  enum : uint32_t { kAbsent, kBuilding, kBuildingWaited, kReady };
  std::atomic<uint32_t> state{kAbsent};
  WorkShare* next = nullptr;  ///< written by the builder before kReady
};

/// How a loop's iterations are given out.
enum class Handout : uint8_t {
  kNone,     ///< nothing to give out (scope, a loop that the compiler schedules itself)
  kBlock,    ///< static: one block per member
  kCyclic,   ///< static with a chunk size: chunk k belongs to member k mod size
  kCounter,  ///< dynamic: fetch_add on the counter of iterations
  kParts,    ///< dynamic, in any order: a part of the chunks for each member, and stealing
  kHalves,   ///< guided, in any order: the same, but members take half of their part at a time
  kCompare,  ///< dynamic where fetch_add could wrap: compare-and-swap on the same counter
  kGuided,   ///< guided: fetch_add on the number of the chunk
  kIndexed,  ///< dynamic with ordered or doacross: compare-and-swap on the number of the chunk
  kTable,    ///< guided with ordered or doacross: as kIndexed, bounds of the chunks in a table
};

struct DoacrossSlot;

/// One worksharing construct of one team. Its first line is written by the builder before the link
/// to it becomes kReady and only read afterwards, except `link`, which is written once more.
struct alignas(base::kCacheLine) WorkShare {
  WorkShareLink link;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t step = 0;
  uint64_t count = 0;  ///< iterations, or sections
  uint64_t chunk = 0;
  uint32_t size = 1;  ///< members of the team
  Handout handout = Handout::kNone;
  bool ordered = false;
  bool doacross = false;
  bool near_first = false;  ///< of parts: there are several memory nodes

  /// The next iteration (kGuided, kIndexed, kTable: chunk) that nobody has. Written for every chunk given
  /// out, so alone on its line. With parts: 1 once somebody found all of them empty and has the last
  /// chunk.
  alignas(base::kCacheLine) std::atomic<uint64_t> claimed{0};

  /// Members past this construct. Of a `scope` with reductions, which surrounds others, members that
  /// have met the next one and members that have left it, from -size.
  alignas(base::kCacheLine) std::atomic<uint32_t> moved_on{0};
  uint32_t turns_mask = 0;
  uint64_t chunks = 0;  ///< number of chunks, of guided loops with parts of the smallest size
  WorkShare* next_free = nullptr;
  WorkShare* next_of_team = nullptr;  ///< in WorkShareState::all

  // Memory that later constructs reuse. `shared` is what the construct's `mem` and `reductions`
  // arguments ask for.
  struct Buffer {
    void* at = nullptr;
    size_t bytes = 0;
  };
  Buffer shared;
  void* shared_plain = nullptr;  ///< within `shared`: the part for `mem`
  Buffer turns;                  ///< ordered: atomic<uint32_t>[turns_mask + 1]
  Buffer table;                  ///< kTable: uint64_t[chunks + 1], first iterations of the chunks
  Buffer parts;                  ///< kParts, kHalves: LoopPart[size]
  Buffer doacross_memory;

  // doacross
  DoacrossSlot* slots = nullptr;
  uint64_t* counts = nullptr;  ///< of the dimensions; null: only the outermost one is counted
  uint32_t slots_mask = 0;
  uint32_t dimensions = 0;
};

/// Does each member have a part of its chunks?
inline bool has_parts(const WorkShare& share) {
  return share.handout == Handout::kParts || share.handout == Handout::kHalves;
}

/// Part of every Team; in its initial state, apart from the pool, when the region has ended.
struct WorkShareState {
  /// Set by the first construct of a region that leaves anything behind here or in
  /// Team::single_taken; then the opener calls workshare_reset() at the join.
  std::atomic<bool> used{false};
  bool preset = false;  ///< head was built by the opener of a combined construct
  /// The construct that GOMP_cancel ended, for loops and sections: how many barriers its team had
  /// passed before, plus one. 0: none. Later constructs have higher numbers, so it need not be taken
  /// back.
  std::atomic<uint64_t> cancelled_phase{0};
  WorkShareLink head;                         ///< to the first construct of the region
  WorkShare* pool = nullptr;                  ///< free objects, private to the present builder
  std::atomic<WorkShare*> returned{nullptr};  ///< free objects, pushed by any member
  WorkShare* all = nullptr;                   ///< every object of the team; builder's
  /// Counts events that ordered and doacross waits may be for, in programs whose regions can be
  /// cancelled: there, these waits must also end when the region does. Never reset.
  std::atomic<uint32_t> events{0};
};

/// Brings the team's worksharing state back to its initial one. By the opener when every member has
/// ended, only if `used` is set.
void workshare_reset(Team* team);

/// Frees what the team's pool holds. By whoever frees the Team itself.
void workshare_destroy(Team* team);

}  // namespace bosk::omp
