// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What accesses tell: facade of table and matrix for whoever has accesses, an observer or a recording.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "affinity/access.h"
#include "affinity/mapping.h"
#include "affinity/page_table.h"
#include "affinity/sharing_matrix.h"
#include "topology/machine.h"

namespace bosk::affinity {

/// Which node each CPU belongs to: what a recording keeps of the machine it was made on.
struct NodeOfCpu {
  std::vector<uint16_t> of;  ///< by the kernel's number of the CPU; kNoCpu: there is no such CPU
  uint32_t nodes = 1;

  uint32_t node(uint16_t cpu) const {
    return cpu < of.size() && of[cpu] != kNoCpu ? of[cpu] : kNoNode;
  }
  bool operator==(const NodeOfCpu&) const = default;
};
NodeOfCpu nodes_of(const topology::Machine& machine);

struct SeenThread {
  uint32_t number;  ///< in the kernel
  uint16_t cpu;     ///< where it was seen last
  uint64_t accesses;
  bool has_ended = false;
};

/// Threads are numbered in the order in which they were first seen; the matrix goes by these numbers. With T threads the matrix takes 4 T² bytes, so no
/// more than kMostMatrixThreads are told apart (64 MiB): of those that come later only the nodes count. One owner, who alone calls it.
class Learner {
 public:
  static constexpr uint32_t kMostMatrixThreads = 4096;

  /// For whoever acts on what is learnt: accesses to a page beyond this many say less with each new one.
  static constexpr uint32_t kRecentAccesses = 8;

  /// `recent_accesses`: 0, or kRecentAccesses.
  explicit Learner(NodeOfCpu nodes, uint32_t recent_accesses = 0,
                   size_t table_limit_bytes = size_t{64} << 20);

  /// O(nodes + sharers²). Returns the node that the page should be on by equation 6, or kNoNode. A first touch tells who shares the page, and not who uses it: a fault counts
  /// for no node.
  uint32_t add(const Access& access);
  /// A thread has ended: its number in the kernel may become another's. What it shared stays in the matrix.
  void thread_ended(uint32_t number);
  /// The range is another memory from now on.
  void forget(uint16_t space, uint64_t begin, uint64_t end);
  /// The node that should have the memory which the thread (an index of threads()) has written to lately, by equation 6; kNoNode: none, or it is not known. O(nodes).
  uint32_t home(uint32_t thread) const;
  /// What threads have shared until now says less. O(T²).
  void age() { matrix_.age(); }

  const NodeOfCpu& nodes() const { return nodes_; }
  const SharingMatrix& matrix() const { return matrix_; }
  PageTable& pages() { return pages_; }
  std::span<const SeenThread> threads() const { return threads_; }
  uint64_t accesses() const { return accesses_; }
  /// By threads beyond kMostMatrixThreads.
  uint64_t of_unknown_threads() const { return of_unknown_threads_; }

  /// Where the threads that have shared something were seen last, as PUs of `machine`, whose numbers of CPUs must be those of the accesses.
  Placement placement(const topology::Machine& machine) const;

 private:
  uint32_t index_of(const Access& access);
  std::span<const uint32_t> homes_of(uint32_t thread) const;
  void count_home(uint32_t thread, uint64_t key, uint32_t node);

  NodeOfCpu nodes_;
  SharingMatrix matrix_;
  PageTable pages_;
  std::vector<SeenThread> threads_;
  std::vector<uint32_t>
      homes_;  ///< of each thread a counter for each node, and one for what several nodes use
  std::unordered_map<uint32_t, uint32_t> index_;
  uint64_t accesses_ = 0;
  uint64_t of_unknown_threads_ = 0;
};

}  // namespace bosk::affinity
