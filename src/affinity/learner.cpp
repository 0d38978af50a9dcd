// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/learner.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace bosk::affinity {
namespace {

/// So many of a thread's accesses say where its memory is; of twice as many those before them are half forgotten.
constexpr uint32_t kEnoughForHome = 32;

TableShape shape_for(uint32_t nodes, uint32_t recent_accesses, size_t limit) {
  TableShape shape;
  shape.nodes = nodes;
  shape.most_accesses = recent_accesses;
  shape.limit_bytes = limit;
  return shape;
}

}  // namespace

NodeOfCpu nodes_of(const topology::Machine& machine) {
  NodeOfCpu nodes;
  nodes.nodes = machine.n_nodes;
  nodes.of.assign(machine.n_os_cpus, kNoCpu);
  for (uint32_t pu = 0; pu < machine.n_pus; ++pu)
    nodes.of[machine.os_of_pu(pu)] = static_cast<uint16_t>(machine.node_of_pu_array[pu]);
  return nodes;
}

Learner::Learner(NodeOfCpu nodes, uint32_t recent_accesses, size_t table_limit_bytes)
    : nodes_(std::move(nodes)),
      pages_(shape_for(nodes_.nodes, recent_accesses, table_limit_bytes)) {}

uint32_t Learner::index_of(const Access& access) {
  const auto found = index_.find(access.thread);
  if (found != index_.end()) return found->second;
  if (threads_.size() == kMostMatrixThreads) return kMostThreads;
  const auto index = static_cast<uint32_t>(threads_.size());
  threads_.push_back({access.thread, access.cpu, 0});
  homes_.resize(threads_.size() * (nodes_.nodes + 1));
  index_.emplace(access.thread, index);
  return index;
}

uint32_t Learner::add(const Access& access) {
  ++accesses_;
  const uint32_t thread = index_of(access);
  if (thread == kMostThreads) {
    ++of_unknown_threads_;
  } else {
    ++threads_[thread].accesses;
    if (access.cpu != kNoCpu) threads_[thread].cpu = access.cpu;
  }
  const uint32_t node = access.kind == AccessKind::kFault ? kNoNode : nodes_.node(access.cpu);
  const uint32_t preferred = pages_.note(key_of(access), thread, node, &matrix_);
  if (thread != kMostThreads && node != kNoNode) count_home(thread, key_of(access), preferred);
  return preferred;
}

std::span<const uint32_t> Learner::homes_of(uint32_t thread) const {
  return std::span(homes_).subspan(size_t{thread} * (nodes_.nodes + 1), nodes_.nodes + 1);
}

/// What several nodes use counts as a node of its own, and what was seen once not at all.
void Learner::count_home(uint32_t thread, uint64_t key, uint32_t node) {
  if (node == kNoNode) {
    const std::span<const uint32_t> page = pages_.page(key);
    if (std::accumulate(page.begin(), page.end(), 0U) < 2) return;
    node = nodes_.nodes;
  }
  uint32_t* homes = &homes_[size_t{thread} * (nodes_.nodes + 1)];
  ++homes[node];
  const std::span<const uint32_t> all = homes_of(thread);
  if (std::accumulate(all.begin(), all.end(), 0U) < 2 * kEnoughForHome) return;
  for (uint32_t i = 0; i <= nodes_.nodes; ++i) homes[i] /= 2;
}

uint32_t Learner::home(uint32_t thread) const {
  const std::span<const uint32_t> homes = homes_of(thread);
  if (std::accumulate(homes.begin(), homes.end(), 0U) < kEnoughForHome / 2) return kNoNode;
  const uint32_t node = preferred_node(homes);
  return node == nodes_.nodes ? kNoNode : node;
}

void Learner::thread_ended(uint32_t number) {
  const auto at = index_.find(number);
  if (at == index_.end()) return;
  threads_[at->second].has_ended = true;
  index_.erase(at);
}

void Learner::forget(uint16_t space, uint64_t begin, uint64_t end) {
  const uint64_t base = uint64_t{space} << kSpaceBits;
  pages_.forget(base + begin, base + std::min(end, kSpaceBytes));
}

Placement Learner::placement(const topology::Machine& machine) const {
  Placement placement(matrix_.threads(), kNoPu);
  for (uint32_t thread = 0; thread < placement.size(); ++thread)
    placement[thread] = machine.pu_of_os(threads_[thread].cpu);
  return placement;
}

}  // namespace bosk::affinity
