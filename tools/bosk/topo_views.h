// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ways `bosk topo` shows a machine, and what they share. Pure functions of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/machine.h"

namespace bosk::tools {

/// Most NUMA nodes whose distances are shown as a table of numbers.
constexpr uint32_t kLargestTable = 16;

/// For people: a head line, the tree with like siblings collapsed, levels, memory, distances.
/// Ends with a newline.
std::string topo_text(const topology::Machine& machine);

/// For programs: everything, format "bosk-topology" version 1 (docs/topology.md). Ends with a newline.
/// `costs`: an object of JSON to put in, or "".
std::string topo_json(const topology::Machine& machine, const std::string& costs = "");

/// For reports: one self-contained SVG of nested boxes.
std::string topo_svg(const topology::Machine& machine);

/// "2 packages × 4 cores × 2 PUs" if all siblings are alike at every level, else "6 cores, 11 PUs in
/// 2 packages that are not alike".
std::string shape_in_words(const topology::Machine& machine);

/// Per domain (by id): equal numbers mean equal subtrees: same kinds, kinds of cores and numbers of
/// nodes. Amounts of memory are left out: real nodes differ by some MiB.
std::vector<uint32_t> shapes(const topology::Machine& machine);

/// The kinds folded into a domain besides its name: "node, l3"; without those that every machine has
/// where they say nothing (a core that is a PU says something: it has no siblings).
std::string folded_kinds(const topology::Domain& domain);

/// "core" or "cores", "PU" or "PUs", …
std::string kind_label(topology::Kind kind, uint64_t count = 1);

/// "32.0 GiB", "512 MiB", "unknown size".
std::string bytes_label(uint64_t bytes);

/// "0-3,8,10-11".
std::string number_list(const std::vector<uint32_t>& numbers);

/// Linux CPU numbers of a domain, in PU order.
std::vector<uint32_t> os_cpus(const topology::Machine& machine, const topology::Domain& domain);

}  // namespace bosk::tools
