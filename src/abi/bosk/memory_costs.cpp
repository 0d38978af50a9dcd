// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/memory_costs.h.
#include <bosk/memory_costs.h>

#include <algorithm>

#include "abi/bosk/answer.h"
#include "abi/gomp/export.h"
#include "locality/costs.h"
#include "memory/costs.h"
#include "threads/machine_queries.h"

namespace memory = bosk::memory;
using memory::Access;
using memory::Figure;
using memory::MemoryLoad;

static_assert(BOSK_COST_MEASURED == static_cast<int>(memory::CostSource::kMeasured) &&
              BOSK_COST_ASSUMED == static_cast<int>(memory::CostSource::kAssumed));

namespace {

/// `answer` of the table, times `scale`, for two nodes that there are.
template <class Answer>
int64_t ask_table(int from, int to, float scale, Answer answer) {
  const bosk::topology::Machine* machine = bosk::threads::machine_of_process();
  const memory::CostTable* table =
      machine != nullptr ? bosk::locality::costs_of(*machine) : nullptr;
  if (table == nullptr) return BOSK_ENOMEM;
  const auto nodes = static_cast<int64_t>(table->n_nodes);
  if (from < 0 || to < 0 || from >= nodes || to >= nodes) return BOSK_EINVAL;
  const Figure figure =
      answer(*table, static_cast<memory::NodeIndex>(from), static_cast<memory::NodeIndex>(to));
  // 2^62 ns are a century: of more than all addresses there are, nobody asks for more.
  return figure.known() ? static_cast<int64_t>(std::min(figure.value * scale, 0x1p62F))
                        : static_cast<int64_t>(BOSK_ENOENT);
}

/// The same, for `function`.
template <class Answer>
int64_t ask(const char* function, int from, int to, float scale, Answer answer) {
  return bosk::threads::answer(ask_table(from, to, scale, answer), function,
                               bosk::threads::on_node(from), bosk::threads::on_node(to));
}

Access way_of(int writes) { return writes != 0 ? Access::kWrite : Access::kRead; }

}  // namespace

BOSK_EXPORT int64_t bosk_cost_for_read(int from, int node, uint64_t bytes) {
  return ask(__func__, from, node, 1, [bytes](const auto& table, auto f, auto m) {
    return memory::cost_for_read(table, f, m, bytes);
  });
}
BOSK_EXPORT int64_t bosk_cost_for_write(int from, int node, uint64_t bytes) {
  return ask(__func__, from, node, 1, [bytes](const auto& table, auto f, auto m) {
    return memory::cost_for_write(table, f, m, bytes);
  });
}
BOSK_EXPORT int64_t bosk_cost_for_migration(int from, int to, uint64_t bytes) {
  return ask(__func__, from, to, 1, [bytes](const auto& table, auto f, auto t) {
    return memory::cost_for_migration(table, f, t, bytes);
  });
}
BOSK_EXPORT int bosk_cost_source(int from, int node) {
  const int64_t source = ask(__func__, from, node, 1, [](const auto& table, auto f, auto m) {
    const Figure read = memory::cost_for_read(table, f, m, 1);
    const Figure write = memory::cost_for_write(table, f, m, 1);
    const memory::CostSource worse = std::max(read.source, write.source);
    return Figure{static_cast<float>(worse), worse};
  });
  return static_cast<int>(source);
}
BOSK_EXPORT int64_t bosk_memory_latency(int from, int node, int writes) {
  return ask(__func__, from, node, 1000, [writes](const auto& table, auto f, auto m) {
    return table.access(f, m, way_of(writes), MemoryLoad::kAlone).latency_ns;
  });
}
BOSK_EXPORT int64_t bosk_memory_bandwidth(int from, int node, int writes) {
  return ask(__func__, from, node, 1000, [writes](const auto& table, auto f, auto m) {
    return table.access(f, m, way_of(writes), MemoryLoad::kAlone).bytes_per_ns;
  });
}
