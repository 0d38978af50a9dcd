// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory attached to threads and bubbles of a simulation, and where they are placed for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "policy_simulation.h"

namespace bosk::test {

constexpr std::uint64_t kMiB = 1 << 20;

/// Threads and bubbles of a simulation, with memory attached.
class Attached {
 public:
  explicit Attached(World& world) : machine_(world.machine()) {}

  void attach(sched::TreeEntity& entity, std::uint32_t node, std::uint64_t bytes) {
    if (entity.figures.footprint.load() == nullptr) {
      arrays_.push_back(std::make_unique<std::atomic<std::uint64_t>[]>(machine_.n_nodes));
      entity.figures.footprint = arrays_.back().get();
    }
    const_cast<std::atomic<std::uint64_t>*>(entity.figures.footprint.load())[node] += bytes;
  }
  void move(sched::TreeEntity& entity, std::uint32_t from, std::uint32_t to) {
    auto* bytes = const_cast<std::atomic<std::uint64_t>*>(entity.figures.footprint.load());
    bytes[to] += bytes[from].exchange(0);
  }

 private:
  const Machine& machine_;
  std::vector<std::unique_ptr<std::atomic<std::uint64_t>[]>> arrays_;
};

/// Node of the domain on which it is booked, or the bubble that it went in; kNone: on several nodes.
inline std::uint32_t node_of(const Machine& m, const sched::TreeEntity& entity) {
  const sched::TreeEntity* booked = &entity;
  while (booked->booked_domain == topology::kNone && booked->bubble != nullptr)
    booked = booked->bubble;
  if (booked->booked_domain == topology::kNone) return topology::kNone;
  const Domain& d = m.domain_array[booked->booked_domain];
  const std::uint32_t node = m.node_of_pu(d.first_pu);
  return node == m.node_of_pu(d.last_pu) ? node : topology::kNone;
}

inline const Domain& domain_of(const Machine& m, std::uint32_t node) {
  return m.domain_array[m.level(Kind::kNode)->domains[node]];
}

}  // namespace bosk::test
