// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which nodes and threads have used each page: the affinity table (Diener 2014, sections 3.2 and 3.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "affinity/sharing_matrix.h"

namespace bosk::affinity {

constexpr uint32_t kNoNode = UINT32_MAX;
/// Threads that the table can tell apart; those with higher numbers count for nodes only.
constexpr uint32_t kMostThreads = UINT16_MAX;

/// What an entry has (eq. 7). As given it takes 20 bytes a page of 4 KiB on 4 nodes, with all that finds it less than .49 %. (The paper says 20 and
/// means counters of 2 bytes, with which its equation gives 24. One byte is enough: full counters are halved.)
struct TableShape {
  uint32_t nodes = 1;
  uint32_t counter_bytes = 1;       ///< of a node's counter: 1, 2 or 4
  uint32_t page_bytes = 4096;       ///< a power of two, at most 2 MiB
  uint32_t sub_block_bytes = 1024;  ///< the grain for threads, a power of two: 64 … page_bytes
  uint32_t sharers = 2;             ///< threads that a sub-block remembers: 2 … 8
  /// So many accesses to a page, of all nodes together, are halved: what was long ago says less. 0: only what does not fit into a counter is.
  uint32_t most_accesses = 0;
  size_t limit_bytes =
      size_t{64} << 20;  ///< of memory for entries; who has not been used for longest goes
};

/// Entries lie in blocks, each for 8 MiB of addresses, which are hashed. One owner, who alone calls it. An address is
/// any number that is the same for all who share the page (for memory of several processes: device, inode and offset, mixed by the caller).
class PageTable {
 public:
  /// The shape must be one of those above.
  explicit PageTable(const TableShape& shape);
  ~PageTable();
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;

  /// An access: O(nodes + sharers²). Those that still remember the sub-block have shared it, which `matrix` counts. Returns the node that the page
  /// should be on by equation 6, or kNoNode.
  uint32_t note(uint64_t address, uint32_t thread, uint32_t node, SharingMatrix* matrix);

  /// Has a thread used the page before?
  bool has_seen(uint64_t address);

  /// The page, or the huge page whole, was moved: what is known of its nodes says half as much from now on.
  void note_move(uint64_t address);
  void note_huge_move(uint64_t address);

  /// The range was unmapped, or is another file's now.
  void forget(uint64_t begin, uint64_t end);

  /// Accesses by node; empty: nothing is known of the page. Valid until the next call.
  std::span<const uint32_t> page(uint64_t address);
  /// The same for the 2 MiB around it: the sum over their pages.
  std::span<const uint32_t> huge_page(uint64_t address);

  /// Each page, or each 2 MiB, that have accesses, in no order.
  using Visit = std::function<void(uint64_t address, std::span<const uint32_t> by_node)>;
  void for_each_page(const Visit& visit);
  void for_each_huge_page(const Visit& visit);

  size_t bytes() const { return blocks_.size() * block_cost(); }
  /// Blocks that had to go because of the limit.
  uint64_t evicted() const { return evicted_; }

 private:
  struct Block;

  size_t entry_bytes() const;
  size_t block_cost() const;
  Block* find(uint64_t address);
  Block& find_or_make(uint64_t address);
  void evict_one();
  std::byte* entry(Block& block, uint64_t address) const;
  uint32_t counter(const std::byte* entry, uint32_t node) const;
  void set_counter(std::byte* entry, uint32_t node, uint32_t value) const;
  void halve(std::byte* entry) const;
  void add_to_sums(const std::byte* entry);
  std::span<const uint32_t> sums_over(Block& block, uint64_t begin, uint64_t end);
  void for_each(uint64_t bytes, const Visit& visit);
  void note_sharers(std::byte* entry, uint64_t address, uint32_t thread,
                    SharingMatrix* matrix) const;

  const TableShape shape_;
  const uint32_t pages_in_block_;
  const uint32_t most_counted_;
  std::unordered_map<uint64_t, std::unique_ptr<Block>> blocks_;
  std::vector<uint64_t> clock_;  ///< their addresses, for who has to go
  size_t hand_ = 0;
  uint64_t evicted_ = 0;
  std::vector<uint32_t> sums_;
};

/// Equation 3: which share of the accesses the node with most of them has; 0: there are none.
double page_exclusivity(std::span<const uint32_t> by_node);

/// Equation 4, over pages and over huge pages of 2 MiB. 0: there are no accesses.
double average_exclusivity(PageTable& table);
double average_huge_exclusivity(PageTable& table);

/// Equation 6: the node that has more than twice as many accesses, and one, as the next; kNoNode: none has.
uint32_t preferred_node(std::span<const uint32_t> by_node);

}  // namespace bosk::affinity
