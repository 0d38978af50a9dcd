// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mmap, a place for the pages, and an entry in the table.
#include "memory/page_blocks.h"

#include <bosk/error.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "base/read_text.h"
#include "base/syscalls.h"
#include "memory/area_migration.h"
#include "memory/node_stats.h"
#include "memory/page_nodes.h"
#include "memory/place_pages.h"

namespace bosk::memory {
namespace {

/// Of the reserved ones, which are the transparent ones' size on all systems that we know. 0: there are none.
size_t huge_page_size() {
  char text[4096];
  return base::read_text("/proc/meminfo", text) ? base::amount_of(text, "\nHugepagesize:", 0) : 0;
}

char* map(size_t bytes, int more_flags) {
#if defined(BOSK_TSAN)
  void* at =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
#else
  const long at = base::raw_syscall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0);
  return at < 0 && at > -static_cast<long>(base::kPage) ? nullptr : reinterpret_cast<char*>(at);
#endif
}

/// `alignment` is a multiple of `page`.
char* map_aligned(size_t bytes, size_t alignment, size_t page, int more_flags) {
  const size_t slack = alignment > page ? alignment - page : 0;
  size_t whole;
  if (__builtin_add_overflow(bytes, slack, &whole)) return nullptr;
  char* start = map(whole, more_flags);
  if (start == nullptr) return nullptr;
  char* at = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(start) + alignment - 1) &
                                     ~(alignment - 1));
  const auto before = static_cast<size_t>(at - start);
  if (before != 0) base::unmap_pages(start, before);
  if (before != slack) base::unmap_pages(at + bytes, slack - before);
  return at;
}

/// All usable nodes, where the request names none.
class NodeList {
 public:
  NodeList(const MachineNodes& nodes, const PageRequest& request)
      : at_(request.nodes), count_(request.n_nodes), mapped_(0) {
    if (at_ != nullptr) return;
    count_ = 0;
    const size_t bytes = nodes.count() * sizeof(NodeIndex);
    auto* all = static_cast<NodeIndex*>(base::map_pages(bytes));
    if (all == nullptr) return;
    at_ = all;
    mapped_ = bytes;
    for (NodeIndex node = 0; node < nodes.count(); ++node)
      if (nodes.usable(node)) all[count_++] = node;
  }
  ~NodeList() {
    if (mapped_ != 0) base::unmap_pages(const_cast<NodeIndex*>(at_), mapped_);
  }
  NodeList(const NodeList&) = delete;
  NodeList& operator=(const NodeList&) = delete;
  const NodeIndex* at() const { return at_; }
  uint32_t count() const { return count_; }

 private:
  const NodeIndex* at_;
  uint32_t count_;
  size_t mapped_;
};

/// What the kernel shall do; false: a node cannot be used.
bool plan_for(const MachineNodes& nodes, const PageRequest& request, const NodeList& list,
              PagePlan* plan) {
  switch (request.placement) {
    case Placement::kOnNode:
    case Placement::kLeastLoaded:
      plan->kind = PagePlan::Kind::kOnNode;
      plan->node =
          request.placement == Placement::kOnNode ? request.node : least_loaded_node(nodes);
      return nodes.usable(plan->node);
    case Placement::kInterleaved:
    case Placement::kWeighted:
      plan->kind = request.placement == Placement::kInterleaved ? PagePlan::Kind::kInterleaved
                                                                : PagePlan::Kind::kWeighted;
      plan->nodes = list.at();
      plan->n_nodes = list.count();
      for (uint32_t i = 0; i < list.count(); ++i)
        if (!nodes.usable(list.at()[i])) return false;
      return list.count() != 0;
    case Placement::kFirstTouch:
    case Placement::kNextTouch:
      // The next touch of a page that nobody has touched is its first.
      plan->kind = PagePlan::Kind::kLocal;
      return true;
    default:
      return true;
  }
}

}  // namespace

int allocate_pages(AreaTable& areas, const PageRequest& request, void** block) {
  const MachineNodes& nodes = areas.nodes();
  const NodeList list(nodes, request);
  PagePlan plan;
  if (!plan_for(nodes, request, list, &plan)) return BOSK_ENODE;
  size_t page = page_size();
  size_t alignment = request.alignment;
  int flags = 0;
  if (request.pages != PageBacking::kOrdinary) {
    const size_t huge = huge_page_size();
    if (huge != 0 && alignment < huge) alignment = huge;
    if (request.pages == PageBacking::kReservedHuge) {
      if (huge == 0) return BOSK_ENOMEM;
      page = huge;
      flags = MAP_HUGETLB;
    }
  }
  if (alignment < page) alignment = page;
  if (request.bytes == 0 || request.bytes > SIZE_MAX / 2) return BOSK_EINVAL;
  const size_t bytes = (request.bytes + page - 1) & ~(page - 1);
  char* at = map_aligned(bytes, alignment, page, flags);
  if (at == nullptr) return BOSK_ENOMEM;
  auto* expected = static_cast<uint64_t*>(base::map_pages(nodes.count() * sizeof(uint64_t)));
  int error = expected != nullptr ? BOSK_OK : BOSK_ENOMEM;
  if (error == BOSK_OK) {
    expect_pages(nodes, bytes, page, plan, expected);
    // Where the kernel refuses, the pages lie as it likes; so they would if it had been full.
    if (!place_pages(nodes, at, bytes, page, plan)) expect_pages(nodes, bytes, page, {}, expected);
    if (request.pages == PageBacking::kTransparentHuge)
      base::raw_syscall(SYS_madvise, base::address_of(at), static_cast<long>(bytes), MADV_HUGEPAGE);
    NewArea area{reinterpret_cast<uintptr_t>(at),
                 bytes,
                 Origin::kPages,
                 request.placement,
                 plan.node,
                 request.pages == PageBacking::kReservedHuge ? static_cast<uint32_t>(page) : 0,
                 expected};
    error = areas.add(area);
  }
  base::unmap_pages(expected, nodes.count() * sizeof(uint64_t));
  if (error != BOSK_OK) {
    base::unmap_pages(at, bytes);
    return error;
  }
  *block = at;
  return BOSK_OK;
}

int free_pages(AreaTable& areas, void* block) {
  AreaInfo removed;
  const int error = areas.remove(reinterpret_cast<uintptr_t>(block), Origin::kPages, &removed);
  if (error != BOSK_OK) return error;
  forget_marks_of_gone(removed);
  base::unmap_pages(block, removed.bytes());
  return BOSK_OK;
}

}  // namespace bosk::memory
