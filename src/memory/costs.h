// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What it costs to reach memory and to move it: the table, and answers from it (docs/costs.md).
//
// Every figure says where it comes from. A figure that nobody knows is unknown; it is never 0.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/nodes.h"

namespace bosk::memory {

/// The better ones first.
enum class CostSource : uint8_t {
  kMeasured,   ///< on this machine
  kAlike,      ///< measured between two other nodes at the same distance
  kFirmware,   ///< HMAT, by hwloc's memory attributes; or a description's
  kDistances,  ///< a usual figure times the SLIT distance
  kAssumed,    ///< a usual figure times a distance that nobody told
  kUnknown,
};
constexpr uint32_t kCostSources = 6;
/// "measured", "alike", "firmware", "distances", "assumed", "unknown".
const char* cost_source_name(CostSource source);

struct Figure {
  float value = 0;
  CostSource source = CostSource::kUnknown;

  bool known() const { return source != CostSource::kUnknown; }
  bool operator==(const Figure&) const = default;
};

enum class Access : uint8_t { kRead, kWrite };
/// Who else uses memory: nobody; all PUs of the node that the access comes from; all PUs of the machine, each
/// node's in the same way.
enum class MemoryLoad : uint8_t { kAlone, kNode, kMachine };
constexpr uint32_t kAccesses = 2;
constexpr uint32_t kMemoryLoads = 3;

/// One thread's latency; the bandwidth of all threads of the node that take part (alone: one thread's).
struct AccessCost {
  Figure latency_ns;
  Figure bytes_per_ns;  ///< = GB/s
};

enum class PageKind : uint8_t { kBase, kHuge };
constexpr uint32_t kPageKinds = 2;

/// A call that moves n pages takes fixed + n · per page. From a node to itself: of pages that are there already.
struct MigrationCost {
  Figure fixed_ns;
  Figure per_page_ns;

  bool operator==(const MigrationCost&) const = default;
};

/// Moving threads to other PUs: fixed + n · each (2009, section 3.3, footnote 2).
struct ThreadMoveCost {
  Figure fixed_ns;
  Figure each_ns;
};

/// Next-touch: marking is fixed + n · per page, a touch of a marked page costs so much more than a touch.
struct NextTouchCost {
  Figure mark_fixed_ns;
  Figure mark_page_ns;
  Figure touch_page_ns;
};

/// All figures of one machine. Larger machines than this have none: a table has the square of it.
constexpr uint32_t kMostCostNodes = 256;

struct CostTable {
  uint32_t n_nodes;
  uint32_t base_page_bytes;
  uint32_t huge_page_bytes;
  ThreadMoveCost thread_move;
  NextTouchCost next_touch;
  AccessCost* access_array;        ///< n_nodes² · kAccesses · kMemoryLoads
  MigrationCost* migration_array;  ///< n_nodes² · kPageKinds

  AccessCost& access(NodeIndex from, NodeIndex memory, Access way, MemoryLoad load) const {
    const uint64_t pair = uint64_t{from} * n_nodes + memory;
    return access_array[(pair * kAccesses + static_cast<unsigned>(way)) * kMemoryLoads +
                        static_cast<unsigned>(load)];
  }
  MigrationCost& migration(NodeIndex from, NodeIndex to, PageKind pages) const {
    const uint64_t pair = uint64_t{from} * n_nodes + to;
    return migration_array[pair * kPageKinds + static_cast<unsigned>(pages)];
  }
  uint32_t page_bytes(PageKind pages) const {
    return pages == PageKind::kBase ? base_page_bytes : huge_page_bytes;
  }
};

/// A table in which nothing is known; null: no memory, or more than kMostCostNodes.
CostTable* make_cost_table(uint32_t n_nodes);
void free_cost_table(CostTable* table);

/// Fills in what is unknown from what the machine tells: links (firmware), else distances.
void estimate_costs(const topology::Machine& machine, CostTable* table);

// --- answers, in ns; unknown if a figure that they need is, or a node is out of range

/// One thread goes once over `bytes`, which lie in a row.
Figure cost_for_read(const CostTable& table, NodeIndex from, NodeIndex memory, uint64_t bytes,
                     MemoryLoad load = MemoryLoad::kAlone);
Figure cost_for_write(const CostTable& table, NodeIndex from, NodeIndex memory, uint64_t bytes,
                      MemoryLoad load = MemoryLoad::kAlone);
/// Of whole pages.
Figure cost_for_migration(const CostTable& table, NodeIndex from, NodeIndex to, uint64_t bytes,
                          PageKind pages = PageKind::kBase);

// --- the table of this process

/// From now on. It must live as long as the process.
void use_costs(const CostTable* table);
/// Null: none yet.
const CostTable* costs_in_use();
/// `table` if there is none yet. Returns the one that there is then.
const CostTable* use_first_costs(const CostTable* table);

/// From that table.
Figure cost_for_read(NodeIndex from, NodeIndex memory, uint64_t bytes);
Figure cost_for_write(NodeIndex from, NodeIndex memory, uint64_t bytes);
Figure cost_for_migration(NodeIndex from, NodeIndex to, uint64_t bytes);

}  // namespace bosk::memory
