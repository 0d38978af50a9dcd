// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk topo --costs`: what it costs to reach memory and to move it.
#pragma once

#include <string>

#include "memory/costs.h"

namespace bosk::tools {

struct CostsWanted {
  bool measure = false;  ///< also if there is a good file
  bool quick = false;
};

/// The costs of a machine: from their file, or measured now and kept there, or estimated; says on standard error what it
/// does if that takes longer than a moment. Null: too many nodes.
const memory::CostTable* costs_of(const topology::Machine& machine, const CostsWanted& wanted);

std::string costs_text(const topology::Machine& machine, const memory::CostTable& costs);
/// A JSON object, to be put into that of the machine.
std::string costs_json(const topology::Machine& machine, const memory::CostTable& costs);

}  // namespace bosk::tools
