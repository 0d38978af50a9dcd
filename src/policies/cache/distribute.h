// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The algorithm of cache on plain data: which entity goes to which domain. See cache.h.
#pragma once

#include <stdint.h>

#include "base/mapped_array.h"
#include "policies/policy.h"

namespace bosk::policies::cache {

struct Parameters {
  const topology::Machine* machine = nullptr;
  const topology::Level* bottom = nullptr;  ///< nothing goes below it; null: down to PUs
  uint32_t slack_percent = 25;              ///< of a child's share; see cache.h
};

/// An entity, or ghosts of a bubble, that stays in one piece for now.
struct Item {
  uint64_t load;  ///< of all of it
  uint32_t entity;
  uint32_t first_ghost;
  uint32_t ghosts;  ///< 0: the entity itself
  uint32_t width;   ///< PUs that can work on it
};

/// A child domain that takes part.
struct Part {
  uint64_t booked;
  uint64_t share;  ///< load that it ought to get
  uint32_t child;  ///< its number among its siblings
  uint32_t votes;  ///< threads that were there last time
  uint32_t begin;  ///< items of its part, once they are cut
  uint32_t end;
};

/// Working memory, kept from call to call.
struct Scratch {
  base::MappedArray<Item> items;
  base::MappedArray<Item>
      todo;  ///< of a line that is being cut, what is still to come; next one last
  base::MappedArray<Part> parts;
  base::MappedArray<uint32_t> votes;  ///< of one part for each child
  Scratch* next_scratch = nullptr;
  uint64_t steps = 0;  ///< elementary steps of the last call: what the stated cost is about

  void release();
};

/// False: out of memory; the answer is then incomplete.
bool distribute(const Parameters& parameters, const Submission& submission, Scratch* scratch,
                PlacementList* answer);

}  // namespace bosk::policies::cache
