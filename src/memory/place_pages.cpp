// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mbind, straight to the kernel.
#include "memory/place_pages.h"

#include <linux/mempolicy.h>

#include "base/syscalls.h"

namespace bosk::memory {
namespace {

struct KernelMask {
  uint64_t words[kMostKernelNodes / 64] = {};
  void add(uint32_t node) {
    if (node < kMostKernelNodes) words[node / 64] |= uint64_t{1} << (node % 64);
  }
};

bool bind_range(void* at, size_t bytes, int mode, const KernelMask* mask) {
  // The kernel reads one bit less than it is told.
  const long failed = base::raw_syscall(SYS_mbind, base::address_of(at), static_cast<long>(bytes),
                                        mode, mask != nullptr ? base::address_of(mask->words) : 0,
                                        mask != nullptr ? kMostKernelNodes + 1 : 0, 0);
  return failed == 0;
}

/// Shares of the nodes: their bandwidths, alike where nobody told one.
uint64_t weight_of(const MachineNodes& nodes, const PagePlan& plan, uint32_t i) {
  for (uint32_t k = 0; k < plan.n_nodes; ++k)
    if (nodes.machine().node_array[plan.nodes[k]].bandwidth == 0) return 1;
  return nodes.machine().node_array[plan.nodes[i]].bandwidth;
}

/// The range in rounds, and each round in runs of pages as long as the nodes' weights: calls run(first page,
/// pages, node). Each run is a mapping of its own to the kernel, so there are not many.
template <typename Run>
void each_run(const MachineNodes& nodes, size_t pages, const PagePlan& plan, Run run) {
  constexpr size_t kRounds = 16;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < plan.n_nodes; ++i) sum += weight_of(nodes, plan, i);
  const size_t fitting = pages / plan.n_nodes;
  const size_t rounds = fitting == 0 ? 1 : fitting < kRounds ? fitting : kRounds;
  for (size_t round = 0; round < rounds; ++round) {
    const size_t first = pages * round / rounds;
    const size_t length = pages * (round + 1) / rounds - first;
    uint64_t before = 0;
    for (uint32_t i = 0; i < plan.n_nodes; ++i) {
      const uint64_t weight = weight_of(nodes, plan, i);
      const auto cut = [&](uint64_t share) {
        return static_cast<size_t>(static_cast<unsigned __int128>(length) * share / sum);
      };
      const size_t from = cut(before);
      const size_t to = cut(before + weight);
      if (from != to) run(first + from, to - from, plan.nodes[i]);
      before += weight;
    }
  }
}

}  // namespace

bool prefer_node(const MachineNodes& nodes, void* at, size_t bytes, NodeIndex node) {
  if (nodes.count_allowed() == 1) return true;
  KernelMask mask;
  mask.add(nodes.kernel_node(node));
  return bind_range(at, bytes, MPOL_PREFERRED, &mask);
}

bool place_pages(const MachineNodes& nodes, char* at, size_t bytes, size_t page,
                 const PagePlan& plan) {
  if (nodes.count_allowed() == 1) return true;
  switch (plan.kind) {
    case PagePlan::Kind::kAsSystem:
      return true;
    case PagePlan::Kind::kLocal:
      return bind_range(at, bytes, MPOL_PREFERRED, nullptr);
    case PagePlan::Kind::kOnNode:
      return prefer_node(nodes, at, bytes, plan.node);
    case PagePlan::Kind::kInterleaved: {
      KernelMask mask;
      for (uint32_t i = 0; i < plan.n_nodes; ++i) mask.add(nodes.kernel_node(plan.nodes[i]));
      return bind_range(at, bytes, MPOL_INTERLEAVE, &mask);
    }
    case PagePlan::Kind::kWeighted: {
      bool good = true;
      each_run(nodes, bytes / page, plan, [&](size_t first, size_t pages, NodeIndex node) {
        good = good && prefer_node(nodes, at + first * page, pages * page, node);
      });
      return good;
    }
  }
  return false;
}

void expect_pages(const MachineNodes& nodes, size_t bytes, size_t page, const PagePlan& plan,
                  uint64_t* bytes_on) {
  for (uint32_t i = 0; i < nodes.count(); ++i) bytes_on[i] = 0;
  if (nodes.count() == 1) {
    bytes_on[0] = bytes;
    return;
  }
  switch (plan.kind) {
    case PagePlan::Kind::kOnNode:
      bytes_on[plan.node] = bytes;
      break;
    case PagePlan::Kind::kInterleaved:
      for (size_t i = 0; i < plan.n_nodes; ++i)
        bytes_on[plan.nodes[i]] = (bytes / page + plan.n_nodes - 1 - i) / plan.n_nodes * page;
      break;
    case PagePlan::Kind::kWeighted:
      each_run(nodes, bytes / page, plan,
               [&](size_t, size_t pages, NodeIndex node) { bytes_on[node] += pages * page; });
      break;
    default:
      break;
  }
}

}  // namespace bosk::memory
