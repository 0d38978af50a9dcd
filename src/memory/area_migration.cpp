// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Migration and marks, area by area.
#include "memory/area_migration.h"

#include <bosk/error.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/pages.h"
#include "memory/huge_pages.h"
#include "memory/page_nodes.h"
#include "memory/place_pages.h"
#include "memory/present_pages.h"

namespace bosk::memory {
namespace {

void* address(uintptr_t at) { return reinterpret_cast<void*>(at); }

/// Bytes per node for the time of a call, all 0. On the caller's stack if these are few: for an area of one page mapping memory
/// would be a good part of what is done beside the system call that moves it. Null: no memory.
class NodeSums {
 public:
  explicit NodeSums(uint32_t nodes)
      : bytes_(nodes <= kFew ? 0 : nodes * sizeof(uint64_t)),
        at_(nodes <= kFew ? few_ : static_cast<uint64_t*>(base::map_pages(bytes_))) {}
  ~NodeSums() {
    if (at_ != few_) base::unmap_pages(at_, bytes_);
  }
  NodeSums(const NodeSums&) = delete;
  NodeSums& operator=(const NodeSums&) = delete;
  uint64_t* get() { return at_; }

 private:
  static constexpr uint32_t kFew = 64;
  size_t bytes_;
  uint64_t few_[kFew] = {};
  uint64_t* at_;
};

/// All of the area is on other nodes, as far as the books know.
bool is_elsewhere(const AreaTable& areas, const AreaInfo& area, NodeIndex node) {
  if (!areas.nodes().real()) return false;
  NodeSums on(areas.nodes().count());
  AreaInfo now;
  if (on.get() == nullptr || !areas.look_up(area.begin, &now, on.get()) ||
      now.serial != area.serial || on.get()[node] != 0)
    return false;
  uint64_t known = 0;
  for (NodeIndex i = 0; i < areas.nodes().count(); ++i) known += on.get()[i];
  return known == area.bytes();
}

/// The books after a move: what the kernel says, and what was asked for where it cannot say.
/// `wanted(node)`: bytes of the area that were to go there.
template <typename Wanted>
void note_places(AreaTable& areas, const AreaInfo& area, NodeIndex node, Placement placement,
                 Wanted wanted) {
  const MachineNodes& nodes = areas.nodes();
  NodeSums on(nodes.count());
  if (on.get() == nullptr) return;  // the books are old then, no more
  const std::lock_guard asking(areas.asking());
  uint64_t found = 0;
  if (nodes.real() || nodes.count() == 1) {
    look_at_pages(nodes, area.begin, area.bytes(), on.get());
    for (uint32_t i = 0; i < nodes.count(); ++i) found += on.get()[i];
  }
  // Pages that are nowhere yet: of ours, and of invented machines, they are as good as there.
  const bool expected = area.is_own() || !nodes.real();
  const uint64_t absent = found < area.bytes() ? area.bytes() - found : 0;
  for (uint32_t i = 0; expected && absent != 0 && i < nodes.count(); ++i)
    on.get()[i] +=
        static_cast<uint64_t>(static_cast<unsigned __int128>(wanted(i)) * absent / area.bytes());
  areas.set_pages(area, on.get(), node, placement);
  areas.set_coming(area, Coming::kNo);
}

/// The books after a move of which the kernel has said that every page is where it was to go.
template <typename Wanted>
void put_down(AreaTable& areas, const AreaInfo& area, NodeIndex node, Wanted wanted) {
  NodeSums on(areas.nodes().count());
  if (on.get() == nullptr) return;  // as above
  const std::lock_guard asking(areas.asking());
  for (NodeIndex i = 0; i < areas.nodes().count(); ++i) on.get()[i] = wanted(i);
  areas.set_pages(area, on.get(), node, Placement::kOnNode);
  areas.set_coming(area, Coming::kNo);
}

/// Bytes of the area in blocks that go to the i-th of the nodes in turn.
uint64_t share_of(const AreaInfo& area, const NodeIndex* nodes, uint32_t n_nodes, size_t block,
                  NodeIndex node) {
  uint64_t sum = 0;
  const uint64_t round = uint64_t{block} * n_nodes;
  const uint64_t rounds = area.bytes() / round;
  const uint64_t rest = area.bytes() % round;
  for (uint32_t i = 0; i < n_nodes; ++i) {
    if (nodes[i] != node) continue;
    const uint64_t before = uint64_t{block} * i;
    const uint64_t last = rest <= before ? 0 : rest - before < block ? rest - before : block;
    sum += rounds * block + last;
  }
  return sum;
}

/// The area's marks end, if there are any; its pages are about to be moved.
void forget_marks(const AreaInfo& area) {
  if (area.placement == Placement::kNextTouch) next_touch_cancel(address(area.begin), area.bytes());
}

struct Known {
  const AreaTable& areas;
  const AreaInfo& area;
};
bool is_there(const void* context) {
  const auto* known = static_cast<const Known*>(context);
  return known->areas.is_same(known->area);
}

uintptr_t first_page(const AreaInfo& area) { return area.begin & ~(page_size() - 1); }

/// Calls migrate(address of the first page, pages) for all of the area that may be there. What nobody has touched is
/// counted and left alone, so that a large area takes time by what is in it.
template <typename Migrate>
void migrate_present(const AreaInfo& area, Moved* moved, Migrate migrate) {
  const size_t all = pages_of(address(area.begin), area.bytes());
  PresentRuns runs(first_page(area), all);
  uint64_t left_out = all;
  for (PageRun run; runs.next(&run); left_out -= run.count)
    moved->add(migrate(first_page(area) + run.first * page_size(), run.count));
  moved->count(PageOutcome::kAbsent, left_out);
}

}  // namespace

void migrate_area(AreaTable& areas, const AreaInfo& area, NodeIndex node, Moved* moved) {
  forget_marks(area);
  if (area.is_own()) prefer_node(areas.nodes(), address(area.begin), area.bytes(), node);
  const bool elsewhere = is_elsewhere(areas, area, node);
  Moved mine;
  migrate_present(area, &mine, [&](uintptr_t from, size_t pages) {
    Migration migration;
    migration.begin = address(from);
    migration.bytes = pages * page_size();
    migration.node = node;
    migration.elsewhere = elsewhere;
    return migrate_pages(migration);
  });
  moved->add(mine);
  const auto wanted = [&](NodeIndex i) { return i == node ? area.bytes() : 0; };
  if (mine.moved + mine.already == mine.pages())
    put_down(areas, area, node, wanted);
  else
    note_places(areas, area, node, Placement::kOnNode, wanted);
}

int distribute_area(AreaTable& areas, const AreaInfo& area, const NodeIndex* nodes,
                    uint32_t n_nodes, size_t block, Moved* moved) {
  const size_t page = page_size();
  const size_t block_pages = block / page;
  // As many at a time as migrate_pages() hands to the kernel, or to a crew.
  constexpr size_t kAtOnce = size_t{1} << 16;
  const size_t most = std::min(pages_of(address(area.begin), area.bytes()), kAtOnce);
  auto* of_page = static_cast<NodeIndex*>(base::map_pages(most * sizeof(NodeIndex)));
  if (of_page == nullptr) return BOSK_ENOMEM;
  forget_marks(area);
  if (area.is_own()) place_by_touch(areas, area);
  const uintptr_t first = first_page(area);
  migrate_present(area, moved, [&](uintptr_t from, size_t pages) {
    Moved sum;
    for (size_t done = 0, count; done < pages; done += count) {
      count = pages - done <= most ? pages - done : whole_blocks(from + done * page, most);
      const size_t before = (from - first) / page + done;
      for (size_t i = 0; i < count; ++i) of_page[i] = nodes[(before + i) / block_pages % n_nodes];
      Migration migration;
      migration.begin = address(from + done * page);
      migration.bytes = count * page;
      migration.nodes = of_page;
      sum.add(migrate_pages(migration));
    }
    return sum;
  });
  base::unmap_pages(of_page, most * sizeof(NodeIndex));
  note_places(areas, area, kNone, Placement::kInterleaved,
              [&](NodeIndex i) { return share_of(area, nodes, n_nodes, block, i); });
  return BOSK_OK;
}

int migrate_parts(AreaTable& areas, const AreaInfo& area, const NodeIndex* to, Moved* moved) {
  const uint32_t nodes = areas.nodes().count();
  const size_t pages = pages_of(address(area.begin), area.bytes());
  const size_t bytes = pages * sizeof(NodeIndex);
  NodeSums before(nodes);
  auto* of_page = static_cast<NodeIndex*>(base::map_pages(bytes));
  AreaInfo now;
  if (of_page == nullptr || before.get() == nullptr) {
    base::unmap_pages(of_page, bytes);
    return BOSK_ENOMEM;
  }
  if (areas.look_up(area.begin, &now, before.get()) && now.serial == area.serial) {
    forget_marks(area);
    Migration migration;
    migration.begin = address(area.begin);
    migration.bytes = area.bytes();
    migration.nodes = of_page;
    if (locate_pages(migration.begin, area.bytes(), of_page)) {
      for (size_t i = 0; i < pages; ++i) {
        if (of_page[i] >= nodes) of_page[i] = 0;  // absent: nothing goes anywhere
        if (to[of_page[i]] != kNone) of_page[i] = to[of_page[i]];
      }
      moved->add(migrate_pages(migration));
    }
    note_places(areas, area, kNone, Placement::kDefault, [&](NodeIndex node) {
      uint64_t sum = 0;
      for (NodeIndex from = 0; from < nodes; ++from)
        if ((to[from] == kNone ? from : to[from]) == node) sum += before.get()[from];
      return sum;
    });
  }
  base::unmap_pages(of_page, bytes);
  return BOSK_OK;
}

void place_by_touch(AreaTable& areas, const AreaInfo& area) {
  PagePlan plan;
  plan.kind = PagePlan::Kind::kLocal;
  place_pages(areas.nodes(), static_cast<char*>(address(area.begin)), area.bytes(), page_size(),
              plan);
}

int mark_if_there(const AreaTable& areas, const AreaInfo& area, uintptr_t from, size_t bytes,
                  const NextTouchOptions& options) {
  const Known known{areas, area};
  return next_touch_mark_if(address(from), bytes, options, {is_there, &known});
}

int mark_area(AreaTable& areas, const AreaInfo& area, uintptr_t from, size_t bytes,
              const NextTouchOptions& options) {
  // What is refused changes nothing. Of areas that have been marked before there is nothing to change.
  if (area.placement != Placement::kNextTouch) {
    const bool own = area.is_own();
    const int error = next_touch_check(address(from), bytes, options, own);
    if (error != kNextTouchOk) return error;
  }
  // Our own pages go where they are touched from now on; a policy of the program's own is the program's.
  if (area.is_own()) place_by_touch(areas, area);
  // Before there are any: who migrates the area meanwhile looks for them.
  note_marked(areas, area);
  const int error = mark_if_there(areas, area, from, bytes, options);
  // To nodes that the kernel does not have a touch brings nothing.
  if (error == kNextTouchOk && bytes >= area.bytes() / 2 && areas.nodes().real()) {
    // Who is asking now may have seen no marks yet, and says so first.
    const std::lock_guard asking(areas.asking());
    areas.set_coming(area, Coming::kMostly);
  }
  return error;
}

bool is_coming(const AreaInfo& area) {
  NextTouchState state{};
  return area.placement == Placement::kNextTouch &&
         next_touch_query(address(area.begin), area.bytes(), &state) == kNextTouchOk &&
         state.marked != 0;
}

Coming look_at_marks(const AreaInfo& area) {
  NextTouchState state{};
  if (area.placement != Placement::kNextTouch ||
      next_touch_query(address(area.begin), area.bytes(), &state) != kNextTouchOk ||
      state.marked == 0)
    return Coming::kNo;
  return 2 * state.marked > state.pages ? Coming::kMostly : Coming::kPartly;
}

void refresh_area(AreaTable& areas, const AreaInfo& area) {
  // Of an invented machine the books are all there is.
  if (!areas.nodes().real()) return;
  const std::lock_guard asking(areas.asking());
  // What is set aside for next-touch is not where it seems.
  Coming coming = look_at_marks(area);
  if (coming == Coming::kMostly) return;
  NodeSums on(areas.nodes().count());
  if (on.get() == nullptr) return;
  look_at_pages(areas.nodes(), area.begin, area.bytes(), on.get());
  uint64_t found = 0;
  for (uint32_t i = 0; i < areas.nodes().count(); ++i) found += on.get()[i];
  // Pages of ours that nobody has touched will be where they were put; the books know.
  const bool was_put = area.is_own() && (area.node != kNone || area.is_spread_on_purpose());
  if (found >= area.bytes() || !was_put) areas.set_bytes(area, on.get());
  // A page loses its mark before it has come. Who brings it counts it then, so there will be a reason to look once more.
  const Coming before = areas.coming_of(area);
  if (coming == Coming::kNo && (before == Coming::kMostly || before == Coming::kPartly))
    coming = Coming::kEnded;
  areas.set_coming(area, coming);
}

bool refresh_coming_areas(AreaTable& areas) {
  if (areas.coming() == 0) return false;
  // Read before the looks, so that what comes meanwhile makes the next one look again, and written behind them: who sees it finds
  // the books as these looks left them (release, acquire). Of two that look at once the older number may stay: one look more.
  static constinit std::atomic<uint64_t> seen{0};
  const NextTouchStatistics now = next_touch_statistics();
  const uint64_t brought = now.moved + now.local + now.stayed + now.no_room + now.absent +
                           now.cancelled + now.lost + now.faults;
  if (seen.load(std::memory_order_acquire) == brought) return false;
  constexpr uint32_t kMost = 64;
  AreaInfo coming[kMost];
  const uint32_t n = areas.list_coming(coming, kMost);
  bool changed = false;
  for (uint32_t i = 0; i < n; ++i) {
    const Coming before = areas.coming_of(coming[i]);
    refresh_area(areas, coming[i]);
    changed = changed || areas.coming_of(coming[i]) != before;
  }
  // If there may be more these are looked at next time, whatever is brought until then.
  seen.store(n == kMost ? ~brought : brought, std::memory_order_release);
  return changed;
}

bool is_out_of_date(const AreaTable& areas, const AreaInfo& area) {
  const uint32_t nodes = areas.nodes().count();
  if (!areas.nodes().real() || nodes == 1) return false;
  NodeSums known(nodes);
  NodeSums seen(nodes);
  AreaInfo now;
  if (known.get() == nullptr || seen.get() == nullptr ||
      !areas.look_up(area.begin, &now, known.get()) || now.serial != area.serial)
    return false;
  constexpr size_t kLooks = 64;
  sample_pages(areas.nodes(), area.begin, area.bytes(), kLooks, 0, seen.get());
  // More on a node than is known to be there; what is on none may be still to come.
  uint64_t news = 0;
  for (uint32_t i = 0; i < nodes; ++i)
    if (seen.get()[i] > known.get()[i]) news += seen.get()[i] - known.get()[i];
  const bool all_seen = area.bytes() <= kLooks * page_size();
  return all_seen ? news != 0 : 8 * news > area.bytes();
}

void note_marked(AreaTable& areas, const AreaInfo& area) {
  NodeSums on(areas.nodes().count());
  AreaInfo now;
  if (on.get() == nullptr || !areas.look_up(area.begin, &now, on.get())) return;
  areas.set_pages(area, on.get(), kNone, Placement::kNextTouch);
}

void forget_marks_of_gone(const AreaInfo& area) {
  // seq_cst: StillThere says what for. The area's `placement` may be what somebody has noted since a mark.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (next_touch_anywhere()) next_touch_cancel(address(area.begin), area.bytes());
}

}  // namespace bosk::memory
