// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts the machine that threads know and the costs that memory/ reads together.
#include "threads/memory_costs.h"

#include "base/cpu.h"
#include "memory/costs_file.h"
#include "threads/machine_queries.h"

namespace bosk::threads {

const memory::CostTable* memory_costs() {
  const memory::CostTable* known = memory::costs_in_use();
  if (BOSK_LIKELY(known != nullptr)) return known;
  const topology::Machine* machine = machine_of_process();
  if (machine == nullptr) return nullptr;
  memory::CostTable* read = memory::load_costs(*machine);
  if (read == nullptr) return nullptr;
  // Two that come first both read; one table stays.
  known = memory::use_first_costs(read);
  if (known != read) memory::free_cost_table(read);
  return known;
}

}  // namespace bosk::threads
