// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How strongly memory draws entities to places. Private to this folder.
#pragma once

#include "policies/memory/draw.h"

namespace bosk::policies::draw {

/// What draws an item.
struct Pull {
  uint32_t best;   ///< the place with most of what it uses, the first of equals
  uint64_t stake;  ///< bytes there beyond the mean of all places; 0: nothing draws it anywhere
  bool torn;       ///< what is in it is drawn to different places
};

class Pulls {
 public:
  Pulls(const Places& places, const topology::Machine& machine, const Submission& submission,
        Scratch* scratch);

  /// Is there a choice of places, and any footprint to choose by? O(entities · nodes) at most.
  static bool any(const Places& places, const topology::Machine& machine,
                  const Submission& submission);
  /// Footprints of all, with what is in them. False: out of memory. O(entities · (nodes + places)).
  bool add_up();
  /// Of an item, whose bytes per place are in last_row() until the next call. O(places).
  Pull of(const Item& item);
  const uint64_t* last_row() const { return s_.pull.data(); }
  /// At this place are nearly as many of its bytes as at the best one.
  bool is_content(uint32_t at, const Pull& pull) const;
  /// Adds up, for each thread of the item, bytes that are nearer at the item's place than where it is now, and
  /// bytes that are farther away; of one that is above all places, the mean is near.
  void compare(const Item& item, uint64_t* more, uint64_t* less) const;

  uint32_t first() const { return first_; }
  uint32_t places() const { return count_; }
  /// Of a domain; kNone: it is above the places, or elsewhere.
  uint32_t place_of(uint32_t domain) const;

 private:
  void add_own(uint32_t entity, uint64_t* row) const;
  uint64_t own_at(uint32_t entity, uint32_t place) const;
  uint64_t* row(uint32_t entity) { return s_.bytes.data() + size_t{entity} * count_; }

  const Places& places_;
  const topology::Machine& machine_;
  const Submission& submission_;
  const EntityView* entities_;
  Scratch& s_;
  uint32_t first_;
  uint32_t count_;
};

}  // namespace bosk::policies::draw
