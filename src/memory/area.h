// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Areas (ranges of memory that the manager knows), owners (whoever works on them) and attachments (who
// works on what): the records that area_table.h keeps.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "memory/machine_nodes.h"

namespace bosk::memory {

/// Whoever areas are attached to: a number that those above make of a thread or bubble. 0 is nobody.
using OwnerId = uint64_t;

/// Where an area's memory came from: who may give it back, and how.
enum class Origin : uint8_t {
  kForeign,  ///< registered: the program's
  kPages,    ///< pages of the manager's own
  kHinted,   ///< the program's: an OpenMP hint attached it; ends with its last attachment
  kAdopted,  ///< as kPages, and the program has registered it besides
};

/// How the pages of an area find their nodes; the numbers are those of enum bosk_mem_policy.
enum class Placement : uint8_t {
  kDefault,
  kOnNode,
  kLeastLoaded,
  kInterleaved,
  kWeighted,
  kFirstTouch,
  kNextTouch,
};

/// What an owner does with an area; bits.
enum Use : uint8_t { kReads = 1, kWrites = 2 };

/// What is known of an area, at some moment.
struct AreaInfo {
  uintptr_t begin;
  uintptr_t end;
  uint64_t serial;  ///< no other area ever has it
  Origin origin;
  Placement placement;
  NodeIndex node;        ///< that it was put on or moved to as a whole; kNone: none
  uint32_t attachments;  ///< how many owners it has
  uint32_t huge_page;    ///< size of the reserved huge pages it consists of, 0: ordinary ones

  size_t bytes() const { return end - begin; }
  /// Pages of the manager's own, which it places and gives back.
  bool is_own() const { return origin == Origin::kPages || origin == Origin::kAdopted; }
  /// Hints made it, and nobody works on it any more.
  bool is_left_over() const { return origin == Origin::kHinted && attachments == 0; }
  /// It was put on several nodes, by request.
  bool is_spread_on_purpose() const {
    return placement == Placement::kInterleaved || placement == Placement::kWeighted;
  }
};

/// Are pages of an area on their way to whoever touches them next? Listed are those of which that is so, or was a moment ago.
enum class Coming : uint8_t {
  kNo,
  kMostly,  ///< where they lie is no reason for anybody to be there: footprints leave the area out
  kPartly,
  kEnded,  ///< none is marked any more; some may be on their last steps
};

struct Attachment;

/// Bytes per node follow a record: as many atomics as the machine has nodes.
template <typename Record>
std::atomic<uint64_t>* bytes_behind(Record* record) {
  static_assert(sizeof(Record) % alignof(std::atomic<uint64_t>) == 0);
  return reinterpret_cast<std::atomic<uint64_t>*>(record + 1);
}

/// Guarded by the table's lock, but for the bytes per node, which are written inside of its write sections. Type-stable, like
/// those: readers may look at the bytes of one that is free, and notice. What else they want to know is in the index.
struct Area {
  AreaInfo info;
  Attachment* first;  ///< of its attachments
  Area* next_free;
  std::atomic<uint64_t>*
      on_nodes;  ///< set once, before anybody can find it, and kept when it is used again
  Coming coming;
  Area* next_coming;  ///< of those that are listed
  Area* previous_coming;

  bool is_left_out() const { return coming == Coming::kMostly; }

  std::atomic<uint64_t>* bytes_on() { return on_nodes; }
  const std::atomic<uint64_t>* bytes_on() const { return on_nodes; }
};

/// How many bytes lie on each node: of an area, which keeps it for ever.
struct NodeBytes {
  NodeBytes* next_free;

  std::atomic<uint64_t>* bytes() { return bytes_behind(this); }
};

/// Type-stable: policies read footprints without a lock. `next_gone` belongs to whoever says that the
/// owner has gone, all else is guarded by the table's lock; footprints are written under it.
struct Owner {
  OwnerId id;
  Owner* next;  ///< in its bucket, or of the free ones
  Owner* next_gone;
  Attachment* first;
  uint32_t attachments;

  std::atomic<uint64_t>* footprint() { return bytes_behind(this); }
  static Owner* of_footprint(const std::atomic<uint64_t>* footprint) {
    return reinterpret_cast<Owner*>(const_cast<std::atomic<uint64_t>*>(footprint)) - 1;
  }
};

/// Guarded by the table's lock. In two lists: of its area and of its owner.
struct Attachment {
  Area* area;
  Owner* owner;
  Attachment* next_of_area;  ///< or of the free ones
  Attachment* previous_of_area;
  Attachment* next_of_owner;
  Attachment* previous_of_owner;
  uint32_t times;  ///< how often it expects to go through the area
  uint8_t use;
};

}  // namespace bosk::memory
