// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which PU each worker of a pool has its seat on: docs/binding.md.
//
// A pool's outer team runs on its first workers. So that its members lie evenly over the machine, as
// `spread` would have them, and those that help with their inner teams lie beside them, seats are a
// permutation that depends on the size of the outer team: of P PUs member i of N has number i·P/N, and
// the workers that are no members are dealt out to the members' parts in turn. A team of N = P has
// worker i on PU i.
//
// Members may exchange their parts, and their helpers go along: member i has part k of N then, and i's number is k·P/N.
#pragma once

#include <stdint.h>

namespace bosk::sched {

/// Read-only once it is published. Its two tables lie behind it.
struct Seats {
  uint32_t count;      ///< of PUs, and of workers with a seat
  uint32_t team;       ///< the size of the outer team that it was made for
  bool exchanged;      ///< members have exchanged their parts
  const Seats* other;  ///< made before it for the same pool; null: none

  const uint32_t* pu_of_worker() const { return reinterpret_cast<const uint32_t*>(this + 1); }
  const uint32_t* worker_of_pu() const { return pu_of_worker() + count; }
};

constexpr uint64_t bytes_of_seats(uint32_t pus) {
  return sizeof(Seats) + uint64_t{2} * pus * sizeof(uint32_t);
}

/// Fills `tables` of 2 · `pus` words: the PU of each worker, then the worker of each PU. O(pus).
/// `team` from 1 on; more members than PUs count as one for each. `part_of`: each member's part, a permutation; null: its own number.
inline void assign_seats(uint32_t pus, uint32_t team, const uint32_t* part_of, uint32_t* tables) {
  uint32_t* const pu_of = tables;
  uint32_t* const worker_of = tables + pus;
  const uint32_t n = team < pus ? team : pus;
  const auto part = [part_of](uint32_t member) {
    return part_of != nullptr ? part_of[member] : member;
  };
  const auto start_of = [pus, n](uint32_t of) {
    return static_cast<uint32_t>(uint64_t{of} * pus / n);
  };
  const auto seat = [pu_of, worker_of](uint32_t worker, uint32_t pu) {
    pu_of[worker] = pu;
    worker_of[pu] = worker;
  };
  for (uint32_t i = 0; i < n; ++i) seat(i, start_of(part(i)));
  // The parts differ by one PU at most, so that a turn that finds nothing is the last one.
  uint32_t worker = n;
  for (uint32_t turn = 1; worker < pus; ++turn)
    for (uint32_t i = 0; i < n && worker < pus; ++i)
      if (start_of(part(i)) + turn < start_of(part(i) + 1))
        seat(worker++, start_of(part(i)) + turn);
}

/// The part of the member with its seat on `pu`, the first one of its part.
inline uint32_t part_of_seat(uint32_t pus, uint32_t team, uint32_t pu) {
  return static_cast<uint32_t>((uint64_t{pu} * team + pus - 1) / pus);
}

/// Whose part of the machine the PU is in: the worker with its seat there is that member, or helps it.
inline uint32_t member_of_seat(const Seats& seats, uint32_t pu) {
  const uint64_t part = ((uint64_t{pu} + 1) * seats.team + seats.count - 1) / seats.count - 1;
  return seats.worker_of_pu()[part * seats.count / seats.team];
}

}  // namespace bosk::sched
