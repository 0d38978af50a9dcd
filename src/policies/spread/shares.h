// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is fair: shares of the load that is booked on a domain and of what comes.
#pragma once

#include <stdint.h>

#include <atomic>

#include "topology/machine.h"

namespace bosk::policies::spread {

// Loads have up to 63 bits, a machine up to 16: products need more than 64.
__extension__ typedef unsigned __int128 Wide;

/// `booked`: see Submission.
inline uint64_t booked_on(const std::atomic<uint64_t>* booked, const topology::Domain& d) {
  // relaxed: a figure.
  return booked != nullptr ? booked[d.id].load(std::memory_order_relaxed) : 0;
}

/// Has `child` no more than its share of what is booked on `d` and of `load` that comes?
inline bool has_room(const std::atomic<uint64_t>* booked, const topology::Domain& d,
                     const topology::Domain& child, uint64_t load) {
  return Wide{booked_on(booked, child)} * d.n_pus() <=
         (Wide{booked_on(booked, d)} + load) * child.n_pus();
}

}  // namespace bosk::policies::spread
