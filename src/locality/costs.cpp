// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "locality/costs.h"

#include "base/cpu.h"
#include "memory/costs_file.h"

namespace bosk::locality {

const memory::CostTable* costs_of(const topology::Machine& machine) {
  const memory::CostTable* known = memory::costs_in_use();
  if (BOSK_LIKELY(known != nullptr)) return known;
  memory::CostTable* read = memory::load_costs(machine);
  if (read == nullptr) return nullptr;
  // Two that come first both read; one table stays.
  known = memory::use_first_costs(read);
  if (known != read) memory::free_cost_table(read);
  return known;
}

}  // namespace bosk::locality
