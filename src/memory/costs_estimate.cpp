// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Figures for machines that nobody measured: what firmware tells of a way between two nodes, else usual figures of a
// server of the 2020s, stretched by the distance. Ratios between nodes are worth something, absolute values little.
#include <algorithm>

#include "memory/costs.h"

namespace bosk::memory {
namespace {

struct Usual {
  float latency_ns;
  float alone;    // GB/s of one thread
  float node;     // of a node's threads together
  float machine;  // likewise, with all nodes at work
};
constexpr Usual kUsual[kAccesses] = {{90, 10, 40, 36}, {120, 6, 24, 21}};

constexpr float kCallNs = 40'000;  // facts.md, section 2
constexpr float kPageNs = 1'500;   // bookkeeping; the copy is added
constexpr float kHugePageNs = 15'000;
constexpr float kLookNs = 350;
constexpr float kCopyLoss = 3;  // the kernel copies without long vectors, and page by page

/// Keeps what is known.
void put(Figure* figure, float value, CostSource source) {
  if (!figure->known()) *figure = {value, source};
}

class Estimate {
 public:
  Estimate(const topology::Machine& machine, CostTable* table)
      : machine_(machine), table_(*table), n_(std::min(machine.n_nodes, table->n_nodes)) {}

  void run() {
    for (NodeIndex from = 0; from < n_; ++from)
      for (NodeIndex to = 0; to < n_; ++to) access(from, to);
    // A copy reads from the target's side: all ways must be known.
    for (NodeIndex from = 0; from < n_; ++from)
      for (NodeIndex to = 0; to < n_; ++to) migration(from, to);
    next_touch();
    put(&table_.thread_move.fixed_ns, 2'500, CostSource::kAssumed);  // 2009, section 3.3
    put(&table_.thread_move.each_ns, 60, CostSource::kAssumed);
  }

 private:
  CostSource source_of_distance(NodeIndex from, NodeIndex to) const {
    return machine_.distances_assumed && from != to ? CostSource::kAssumed : CostSource::kDistances;
  }
  float stretch(NodeIndex from, NodeIndex to) const {
    return static_cast<float>(std::max(machine_.node_distance(from, to), uint32_t{1})) /
           static_cast<float>(topology::kLocalDistance);
  }

  void access(NodeIndex from, NodeIndex to) {
    const topology::NodeLink link = machine_.link(from, to);
    for (const Access way : {Access::kRead, Access::kWrite}) {
      const bool read = way == Access::kRead;
      const uint32_t latency = read ? link.read_latency : link.write_latency;
      const uint32_t bandwidth = read ? link.read_bandwidth : link.write_bandwidth;
      const Usual& usual = kUsual[static_cast<unsigned>(way)];
      const float usual_bandwidth[kMemoryLoads] = {usual.alone, usual.node, usual.machine};
      for (uint32_t load = 0; load < kMemoryLoads; ++load) {
        AccessCost& cost = table_.access(from, to, way, static_cast<MemoryLoad>(load));
        if (latency != 0) put(&cost.latency_ns, static_cast<float>(latency), CostSource::kFirmware);
        put(&cost.latency_ns, usual.latency_ns * stretch(from, to), source_of_distance(from, to));
        // Firmware tells what the way bears: one thread may not fill it, all threads share it.
        const float told = static_cast<float>(bandwidth) * 1.048576e-3F;
        const float one = usual.alone / stretch(from, to);
        if (bandwidth != 0)
          put(&cost.bytes_per_ns, load == 0 ? std::min(told, one) : told, CostSource::kFirmware);
        put(&cost.bytes_per_ns, usual_bandwidth[load] / stretch(from, to),
            source_of_distance(from, to));
      }
    }
  }

  void migration(NodeIndex from, NodeIndex to) {
    const CostSource source = source_of_distance(from, to);
    const Figure& reads = table_.access(to, from, Access::kRead, MemoryLoad::kAlone).bytes_per_ns;
    for (const PageKind pages : {PageKind::kBase, PageKind::kHuge}) {
      MigrationCost& cost = table_.migration(from, to, pages);
      put(&cost.fixed_ns, kCallNs, source);
      const auto bytes = static_cast<float>(table_.page_bytes(pages));
      const float copy = kCopyLoss * bytes / reads.value;
      const float own = pages == PageKind::kBase ? kPageNs : kHugePageNs;
      put(&cost.per_page_ns, from == to ? kLookNs : own + copy, source);
    }
  }

  /// Measured with a prototype (facts.md, section 2): userfaultfd resolved by the thread that faults, windows of 64.
  void next_touch() {
    put(&table_.next_touch.mark_fixed_ns, 2'000, CostSource::kAssumed);
    put(&table_.next_touch.mark_page_ns, 15, CostSource::kAssumed);
    put(&table_.next_touch.touch_page_ns, 1'200, CostSource::kAssumed);
  }

  const topology::Machine& machine_;
  CostTable& table_;
  uint32_t n_;
};

}  // namespace

void estimate_costs(const topology::Machine& machine, CostTable* table) {
  Estimate(machine, table).run();
}

}  // namespace bosk::memory
