// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The algorithm of memory on plain data: which entity goes to which node. See memory.h.
#pragma once

#include <stdint.h>

#include "base/mapped_array.h"
#include "policies/cache/distribute.h"
#include "policies/policy.h"

namespace bosk::policies::draw {

/// The domains that entities are drawn to: those of NUMA nodes, or of the next policy's level where that is
/// above them. Computed once; in the order of their PUs.
class Places {
 public:
  /// False: no memory.
  bool set(const topology::Machine& machine, const topology::Level* bottom);
  void release();

  uint32_t count() const { return domains_.size(); }
  uint32_t domain(uint32_t place) const { return domains_[place]; }
  /// Of those below `d`: first … first+count-1. Fewer than two: nothing to choose between.
  void below(const topology::Domain& d, uint32_t* first, uint32_t* count) const;
  uint32_t of_pu(uint32_t pu) const { return of_pu_[pu]; }
  /// Memory that has no PUs of its own counts for the nearest place.
  uint32_t of_node(uint32_t node) const { return of_node_[node]; }

 private:
  base::MappedArray<uint32_t> domains_;
  base::MappedArray<uint32_t> of_pu_;
  base::MappedArray<uint32_t> of_node_;
};

struct Parameters {
  cache::Parameters inside;     ///< what goes on within a place; the machine is its
  uint32_t most_percent = 133;  ///< of its fair share, what a place may carry; see memory.h
  const Places* places = nullptr;
};

/// An entity, or ghosts of a bubble, that goes somewhere as one.
struct Item {
  uint64_t stake;  ///< bytes that it has nearer in the best place than elsewhere on average
  uint64_t load;
  uint32_t entity;
  uint32_t first_ghost;
  uint32_t ghosts;  ///< 0: the entity itself
  uint32_t width;
  uint32_t place;  ///< among those below the domain, once it is chosen
};

/// What a place has got.
struct Room {
  uint64_t load;   ///< booked by others, and given now
  uint64_t width;  ///< likewise, in threads
  uint32_t pus;
};

/// Where an entity of a place's own work comes from.
struct Origin {
  uint32_t entity;
  uint32_t first_ghost;
  uint32_t ghosts;  ///< not 0: it stands for these
};

/// Working memory, kept from call to call.
struct Scratch {
  base::MappedArray<uint64_t> bytes;  ///< per entity and place: of it and all in it
  base::MappedArray<uint32_t>
      source;  ///< per entity: the nearest around it that has a footprint itself
  base::MappedArray<Item> heap;
  base::MappedArray<Item> chosen;
  base::MappedArray<Room> rooms;
  base::MappedArray<uint64_t> pull;  ///< of one item
  base::MappedArray<EntityView> part;
  base::MappedArray<Origin> origins;
  cache::Scratch inside;
  PlacementList answer;
  PlacementList team_answer;
  Scratch* next_scratch = nullptr;
  uint64_t steps = 0;  ///< elementary steps of the last call, without those inside of places

  void release();
};

/// False: out of memory; the answer is then incomplete.
bool distribute(const Parameters& parameters, const Submission& submission, Scratch* scratch,
                PlacementList* answer);

/// `submission.work` runs: last_domain of each is where it is now, and its load is booked there. Bytes that
/// a distribution would bring its threads nearer, less those that it would take away, and what it would be (null: nobody
/// asks). 0: nothing speaks against how things are, or there is no memory to find out.
uint64_t gain(const Parameters& parameters, const Submission& submission, Scratch* scratch,
              PlacementList* answer = nullptr);

}  // namespace bosk::policies::draw
