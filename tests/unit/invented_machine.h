// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Machines that tests make up: symmetric ones by arities, lopsided ones by chance. No hwloc needed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "topology/machine.h"
#include "topology/raw_machine.h"

namespace bosk::test {

using topology::Domain;
using topology::Kind;
using topology::Machine;

struct FreeMachine {
  void operator()(Machine* machine) const { topology::free_machine(machine); }
};
using MachinePtr = std::unique_ptr<Machine, FreeMachine>;

/// How many children an object of `kind` gets; called in depth-first order.
template <class Arity>
MachinePtr invent(const std::vector<Kind>& kinds, Arity&& arity) {
  topology::RawMachine raw;
  raw.reader = "test";
  std::uint32_t next_pu = 0;
  std::uint32_t next_node = 0;
  raw.add(Kind::kMachine, topology::kNone, topology::kNone);
  auto grow = [&](auto&& self, std::uint32_t parent, std::size_t level) -> void {
    const std::uint32_t children = arity(level);
    for (std::uint32_t i = 0; i < children; ++i) {
      const bool is_pu = level + 1 == kinds.size();
      const std::uint32_t object =
          raw.add(kinds[level], parent, is_pu ? next_pu++ : topology::kNone);
      if (kinds[level] == Kind::kNode) {
        EXPECT_TRUE(raw.nodes.push({object, next_node++, std::uint64_t{1} << 30, true, ""}));
      }
      if (!is_pu) self(self, object, level + 1);
    }
  };
  grow(grow, 0, 0);
  topology::Error error;
  MachinePtr machine{topology::build_machine(raw, nullptr, &error)};
  EXPECT_TRUE(machine) << error.text;
  return machine;
}

inline const std::vector<Kind>& usual_kinds() {
  static const std::vector<Kind> kinds{Kind::kNode, Kind::kL3, Kind::kCore, Kind::kPu};
  return kinds;
}

/// nodes × caches × cores × PUs, every domain of a level like the others.
inline MachinePtr symmetric(std::uint32_t nodes, std::uint32_t caches, std::uint32_t cores,
                            std::uint32_t pus) {
  const std::vector<std::uint32_t> arities{nodes, caches, cores, pus};
  return invent(usual_kinds(), [&](std::size_t level) { return arities[level]; });
}

/// Every object has its own number of children; at most 1,024 PUs and 64 nodes.
inline MachinePtr lopsided(std::uint32_t seed) {
  std::mt19937 random(seed);
  const std::uint32_t most_nodes = std::uint32_t{1} << (random() % 7);  // 1 … 64
  const std::uint32_t most_pus = 1024 / most_nodes;
  const std::uint32_t most_caches = 1 + random() % std::min<std::uint32_t>(4, most_pus);
  const std::uint32_t most_cores =
      1 + random() %
              std::max<std::uint32_t>(1, std::min<std::uint32_t>(16, most_pus / most_caches / 2));
  const std::uint32_t most[] = {
      most_nodes, most_caches, most_cores,
      std::max<std::uint32_t>(1, std::min<std::uint32_t>(4, most_pus / most_caches / most_cores))};
  return invent(usual_kinds(), [&](std::size_t level) { return 1 + random() % most[level]; });
}

/// Even seeds: symmetric; odd ones: lopsided.
inline MachinePtr any_machine(std::uint32_t seed) {
  if (seed % 2 != 0) return lopsided(seed);
  std::mt19937 random(seed);
  const std::uint32_t nodes = std::uint32_t{1} << (random() % 7);
  const std::uint32_t caches = std::uint32_t{1} << (random() % 2);
  const std::uint32_t cores = std::uint32_t{1} << (random() % 3);
  return symmetric(nodes, caches, cores, 1 + random() % 2);
}

inline bool is_below(const Machine& machine, std::uint32_t domain, std::uint32_t ancestor) {
  const Domain* d = &machine.domain_array[domain];
  while (d != nullptr && d->id != ancestor) d = d->parent;
  return d != nullptr;
}

}  // namespace bosk::test
