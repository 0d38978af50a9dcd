// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Answers from a cost table.
#include "memory/costs.h"

#include <algorithm>
#include <atomic>

#include "base/pages.h"
#include "memory/migration_batch.h"

namespace bosk::memory {
namespace {

constinit std::atomic<const CostTable*> the_table{nullptr};

size_t table_bytes(uint32_t n) {
  const size_t pairs = size_t{n} * n;
  return sizeof(CostTable) + pairs * (kAccesses * kMemoryLoads * sizeof(AccessCost) +
                                      kPageKinds * sizeof(MigrationCost));
}

CostSource worse(const Figure& a, const Figure& b) { return std::max(a.source, b.source); }

Figure access_cost(const CostTable& table, NodeIndex from, NodeIndex memory, uint64_t bytes,
                   Access way, MemoryLoad load) {
  if (from >= table.n_nodes || memory >= table.n_nodes) return {};
  const AccessCost& cost = table.access(from, memory, way, load);
  if (!cost.latency_ns.known() || !cost.bytes_per_ns.known()) return {};
  return {cost.latency_ns.value + static_cast<float>(bytes) / cost.bytes_per_ns.value,
          worse(cost.latency_ns, cost.bytes_per_ns)};
}

template <class Answer>
Figure from_table_in_use(Answer answer) {
  const CostTable* table = costs_in_use();
  return table == nullptr ? Figure{} : answer(*table);
}

}  // namespace

const char* cost_source_name(CostSource source) {
  switch (source) {
    case CostSource::kMeasured:
      return "measured";
    case CostSource::kAlike:
      return "alike";
    case CostSource::kFirmware:
      return "firmware";
    case CostSource::kDistances:
      return "distances";
    case CostSource::kAssumed:
      return "assumed";
    case CostSource::kUnknown:
      break;
  }
  return "unknown";
}

CostTable* make_cost_table(uint32_t n_nodes) {
  if (n_nodes == 0 || n_nodes > kMostCostNodes) return nullptr;
  char* block = static_cast<char*>(base::map_pages(table_bytes(n_nodes)));
  if (block == nullptr) return nullptr;
  auto* table = reinterpret_cast<CostTable*>(block);
  *table = CostTable{};
  table->n_nodes = n_nodes;
  table->base_page_bytes = static_cast<uint32_t>(page_bytes());
  table->huge_page_bytes = uint32_t{2} << 20;
  const size_t pairs = size_t{n_nodes} * n_nodes;
  table->access_array = reinterpret_cast<AccessCost*>(block + sizeof(CostTable));
  table->migration_array =
      reinterpret_cast<MigrationCost*>(table->access_array + pairs * kAccesses * kMemoryLoads);
  std::fill_n(table->access_array, pairs * kAccesses * kMemoryLoads, AccessCost{});
  std::fill_n(table->migration_array, pairs * kPageKinds, MigrationCost{});
  return table;
}

void free_cost_table(CostTable* table) {
  if (table != nullptr) base::unmap_pages(table, table_bytes(table->n_nodes));
}

Figure cost_for_read(const CostTable& table, NodeIndex from, NodeIndex memory, uint64_t bytes,
                     MemoryLoad load) {
  return access_cost(table, from, memory, bytes, Access::kRead, load);
}

Figure cost_for_write(const CostTable& table, NodeIndex from, NodeIndex memory, uint64_t bytes,
                      MemoryLoad load) {
  return access_cost(table, from, memory, bytes, Access::kWrite, load);
}

Figure cost_for_migration(const CostTable& table, NodeIndex from, NodeIndex to, uint64_t bytes,
                          PageKind pages) {
  if (from >= table.n_nodes || to >= table.n_nodes) return {};
  const MigrationCost& cost = table.migration(from, to, pages);
  if (!cost.fixed_ns.known() || !cost.per_page_ns.known()) return {};
  const uint64_t page = table.page_bytes(pages);
  const uint64_t count = bytes / page + (bytes % page != 0 ? 1 : 0);
  return {cost.fixed_ns.value + static_cast<float>(count) * cost.per_page_ns.value,
          worse(cost.fixed_ns, cost.per_page_ns)};
}

// release, and acquire below: the figures are there when the table is seen.
void use_costs(const CostTable* table) { the_table.store(table, std::memory_order_release); }
const CostTable* costs_in_use() { return the_table.load(std::memory_order_acquire); }
const CostTable* use_first_costs(const CostTable* table) {
  const CostTable* there = nullptr;
  return the_table.compare_exchange_strong(there, table, std::memory_order_acq_rel,
                                           std::memory_order_acquire)
             ? table
             : there;
}

Figure cost_for_read(NodeIndex from, NodeIndex memory, uint64_t bytes) {
  return from_table_in_use(
      [&](const CostTable& table) { return cost_for_read(table, from, memory, bytes); });
}
Figure cost_for_write(NodeIndex from, NodeIndex memory, uint64_t bytes) {
  return from_table_in_use(
      [&](const CostTable& table) { return cost_for_write(table, from, memory, bytes); });
}
Figure cost_for_migration(NodeIndex from, NodeIndex to, uint64_t bytes) {
  return from_table_in_use(
      [&](const CostTable& table) { return cost_for_migration(table, from, to, bytes); });
}

}  // namespace bosk::memory
