// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The algorithm of spread, on plain data: which entity goes to which domain. See spread.h.
#pragma once

#include <stdint.h>

#include "base/mapped_array.h"
#include "policies/policy.h"

namespace bosk::policies::spread {

struct Parameters {
  const topology::Machine* machine = nullptr;
  const topology::Level* bottom = nullptr;  ///< nothing goes below it; null: down to PUs
  uint32_t explode_percent = 100;           ///< of the fair share; see spread.h
};

/// `pieces` equal things that stay together in one index range: an entity, or ghosts of a bubble.
struct Item {
  uint64_t load;  ///< of each piece
  uint32_t entity;
  uint32_t first_ghost;
  uint32_t ghosts;    ///< 0: the entity itself
  uint32_t position;  ///< in the order of the tree of bubbles
  uint32_t child;     ///< number of the child domain that it goes to

  uint32_t pieces() const { return ghosts != 0 ? ghosts : 1; }
};

/// A child domain while things are dealt out to it.
struct Bin {
  uint64_t load;
  uint32_t pus;
  uint32_t dealt;  ///< pieces of the current batch
};

/// A bubble that is being taken apart: where in its contents one is.
struct Unpacking {
  uint32_t bubble;
  uint32_t next_child;
  uint64_t load;     ///< that the bubble counted with
  uint64_t natural;  ///< content so far
};

/// Working memory, kept from call to call.
struct Scratch {
  base::MappedArray<Item> items;
  base::MappedArray<Bin> bins;
  base::MappedArray<uint32_t> heap;
  base::MappedArray<uint32_t> touched;
  base::MappedArray<Unpacking> unpacking;
  Scratch* next_scratch = nullptr;
  /// Elementary steps of the last call (comparisons, moves, pieces): what the stated cost is about.
  uint64_t steps = 0;

  void release();
};

/// Nothing goes below it.
bool is_bottom(const Parameters& parameters, const topology::Domain& d);

/// Is there anything to distribute: more than one thing, and domains below? Ghosts alone are served
/// from where they are: where they are at home was said when their team was made.
bool has_way_down(const Parameters& parameters, const FoundBubble& bubble);

/// The lowest domain, from where the bubble was found down to the finder's PU, to which it goes whole: at no
/// level on the way its load is more than its share there, nor has the finder's side more than its own. Where it
/// was found, if its load is not known without a look at all that is in it. O(levels).
const topology::Domain& way_down(const Parameters& parameters, const FoundBubble& bubble);

/// False: out of memory; the answer is then incomplete.
bool distribute(const Parameters& parameters, const Submission& submission, Scratch* scratch,
                PlacementList* answer);

}  // namespace bosk::policies::spread
