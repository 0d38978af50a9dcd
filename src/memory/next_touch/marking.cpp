// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A mark first looks at everything, then changes it: parts that no region covers become regions of
// their own, one for each mapping; of regions that are there, the pages that were touched are marked
// again. A region of another kind gives up the part that is marked anew.
#include "memory/next_touch/marking.h"

#include <errno.h>
#include <string.h>

#include "memory/next_touch/mappings.h"
#include "memory/next_touch/resolve.h"
#include "memory/next_touch/signals.h"
#include "memory/next_touch/state.h"
#include "memory/next_touch/stretches.h"

namespace bosk::memory {
namespace {

uintptr_t lesser(uintptr_t a, uintptr_t b) { return a < b ? a : b; }
uintptr_t greater(uintptr_t a, uintptr_t b) { return a > b ? a : b; }

/// A piece of one mapping, and what will mark it.
struct Piece {
  uintptr_t begin;
  uintptr_t end;
  int prot;
  const Backend* backend;
  PagePolicy policy;
  NodeMask nodes;
};

/// Looks at the mapping at `begin`, up to `end` at most, and what can mark it.
int look_at_kind(uintptr_t begin, uintptr_t end, const Choice& choice, Piece* piece) {
  Mapping mapping;
  if (!mapping_at(begin, &mapping)) return kNextTouchNotMapped;
  if (mapping.prot == 0) return kNextTouchClosed;
  if (mapping.shared) return kNextTouchShared;
  if (mapping.huge) return kNextTouchFile;
  if (in_main_stack(mapping)) return kNextTouchStack;
  piece->end = lesser(end, mapping.end);
  piece->prot = mapping.prot;
  piece->backend =
      mapping.file && !choice.preferred->takes_files ? choice.for_files : choice.preferred;
  return piece->backend != nullptr ? int{kNextTouchOk} : int{kNextTouchFile};
}

/// The same, and at where its pages may go.
int look_at(uintptr_t begin, uintptr_t end, const Choice& choice, Piece* piece) {
  if (const int error = look_at_kind(begin, end, choice, piece); error != kNextTouchOk)
    return error;
  piece->policy = PagePolicy::kAnywhere;
  if (count_memory_nodes() > 1) piece->policy = policy_of_page(begin, &piece->nodes);
  return piece->policy == PagePolicy::kFixed ? kNextTouchPolicy : kNextTouchOk;
}

/// Calls `visit(begin, end, marked)` for the runs of pages in a part of a region; stops if it returns
/// an error. Runs go on over chunks.
template <typename Visit>
int for_runs(Region& region, uintptr_t begin, uintptr_t end, Visit visit) {
  uintptr_t from = begin;
  while (from < end) {
    const bool marked = region.chunk_of(from).is_marked(page_in_chunk(from));
    uintptr_t to = from;
    while (to < end) {
      Chunk& chunk = region.chunk_of(to);
      if (chunk.is_marked(page_in_chunk(to)) != marked) break;
      const uintptr_t base = to & ~(kChunkBytes - 1);
      const uint32_t limit = end - base >= kChunkBytes ? kChunkPages : page_in_chunk(end);
      const uint32_t run = chunk.run_end(page_in_chunk(to), limit);
      to = base + run * base::kPage;
      if (run != limit) break;
    }
    if (const int error = visit(from, to, marked); error != kNextTouchOk) return error;
    from = to;
  }
  return kNextTouchOk;
}

void set_marks(Region& region, uintptr_t begin, uintptr_t end, bool value) {
  for (uintptr_t at = begin; at < end;) {
    const uintptr_t base = at & ~(kChunkBytes - 1);
    const uintptr_t stop = lesser(base + kChunkBytes, end);
    region.chunk_of(at).set(page_in_chunk(at), static_cast<uint32_t>((stop - at) / base::kPage),
                            value);
    at = stop;
  }
  const uint64_t pages = (end - begin) / base::kPage;
  // relaxed: the gate is held alone.
  if (value)
    region.n_marked.fetch_add(pages, std::memory_order_relaxed);
  else
    region.n_marked.fetch_sub(pages, std::memory_order_relaxed);
}

int set_aside(Region& region, uintptr_t begin, uintptr_t end) {
  const int error = region.backend->set_aside(region, begin, end);
  if (error != kNextTouchOk) return error;
  set_marks(region, begin, end, true);
  count(state.counters.marked, (end - begin) / base::kPage);
  return kNextTouchOk;
}

int make_region(uintptr_t begin, uintptr_t end, const Piece& piece,
                const NextTouchOptions& options) {
  if (!keep_handler(piece.backend->signal)) return kNextTouchNoBackend;
  Region* region = new_region(begin, end);
  if (region == nullptr) return kNextTouchNoMemory;
  region->backend = piece.backend;
  region->prot = piece.prot;
  region->on_write = options.on_write;
  region->window = options.window;
  region->granularity = options.granularity;
  region->all_nodes = piece.policy == PagePolicy::kAnywhere;
  if (!region->all_nodes) region->nodes = piece.nodes;
  if (!state.table.insert(region)) {
    free_region(region);
    return kNextTouchNoMemory;
  }
  count_region(*region, 1);
  int error = region->backend->arm(*region, begin, end);
  if (error == kNextTouchOk) error = set_aside(*region, begin, end);
  // It may have come into being in parts (arm covers several mappings): disarm undoes all of it.
  if (error != kNextTouchOk) end_region(region);
  return error;
}

/// Cuts a region in two at `at`, which lies inside. False: no memory.
bool split(Region& region, uintptr_t at) {
  Region* tail = new_region(at, region.end);
  if (tail == nullptr) return false;
  tail->backend = region.backend;
  tail->shadow = region.shadow == 0 ? 0 : region.shadow_of(at);
  tail->prot = region.prot;
  tail->on_write = region.on_write;
  tail->in_slot = region.in_slot;
  tail->window = region.window;
  tail->granularity = region.granularity;
  tail->all_nodes = region.all_nodes;
  tail->nodes = region.nodes;
  uint64_t n_marked = 0;
  for (uintptr_t from = at; from < region.end;) {
    const uintptr_t stop = lesser((from & ~(kChunkBytes - 1)) + kChunkBytes, region.end);
    Chunk& old = region.chunk_of(from);
    Chunk& now = tail->chunk_of(from);
    const uint32_t first = page_in_chunk(from);
    const auto pages = static_cast<uint32_t>((stop - from) / base::kPage);
    n_marked += old.count(first, first + pages);
    memcpy(now.marked, old.marked, sizeof now.marked);
    now.stale = old.stale;
    if (first != 0) now.set(0, first, false);
    old.set(first, pages, false);
    from = stop;
  }
  tail->n_marked.store(n_marked, std::memory_order_relaxed);
  region.n_marked.fetch_sub(n_marked, std::memory_order_relaxed);
  region.end = at;
  if (state.table.insert(tail)) {
    count_region(*tail, 1);
    return true;
  }
  // As it was: nobody has seen it.
  region.end = tail->end;
  for_runs(*tail, at, tail->end, [&](uintptr_t from, uintptr_t to, bool marked) {
    if (marked) set_marks(region, from, to, true);
    return int{kNextTouchOk};
  });
  free_region(tail);
  return false;
}

/// The marks of a part of a region end, data where they are; the rest stays as it is.
int give_up(Region* region, uintptr_t begin, uintptr_t end) {
  if (begin > region->begin) {
    if (!split(*region, begin)) return kNextTouchNoMemory;
    region = state.table.find(begin);
  }
  if (end < region->end && !split(*region, end)) return kNextTouchNoMemory;
  if (!put_back_all(*region, begin, end)) return kNextTouchNoMemory;
  end_region(region);
  return kNextTouchOk;
}

/// Marks over memory that the program has unmapped since are no marks.
void forget_lost(Region& region, uintptr_t begin, uintptr_t end) {
  for_runs(region, begin, end, [&](uintptr_t from, uintptr_t to, bool marked) {
    if (marked && !region.backend->still_ours(region, from, to))
      for (uintptr_t at = from; at < to; at += base::kPage)
        if (!region.backend->still_ours(region, at, at + base::kPage)) {
          set_marks(region, at, at + base::kPage, false);
          count(state.counters.lost, 1);
        }
    return int{kNextTouchOk};
  });
}

/// The touched pages of a part of a region can be marked again as they are: same mapping, same kind.
bool fits(Region& region, uintptr_t begin, uintptr_t end, const Choice& choice) {
  if (region.on_write != choice.options.on_write) return false;
  return for_runs(region, begin, end, [&](uintptr_t from, uintptr_t to, bool marked) {
           if (marked) return region.backend == choice.preferred ? 0 : 1;
           // In a slot there may still be an old copy.
           if (region.in_slot) return 1;
           Piece piece = {};
           if (look_at(from, to, choice, &piece) != kNextTouchOk) return 1;
           return piece.end == to && piece.prot == region.prot && piece.backend == region.backend
                      ? 0
                      : 1;
         }) == 0;
}

int mark_again(Region& region, uintptr_t begin, uintptr_t end, const NextTouchOptions& options) {
  if (!keep_handler(region.backend->signal)) return kNextTouchNoBackend;
  if (begin == region.begin && end == region.end) {
    region.window = options.window;
    region.granularity = options.granularity;
    // A new phase: how the last one touched says nothing. relaxed: the gate is held alone.
    for (uint32_t i = 0; i < region.n_chunks; ++i) {
      region.chunks[i].low.store(0, std::memory_order_relaxed);
      region.chunks[i].high.store(0, std::memory_order_relaxed);
      region.chunks[i].window.store(0, std::memory_order_relaxed);
    }
  }
  bool armed = false;
  return for_runs(region, begin, end, [&](uintptr_t from, uintptr_t to, bool marked) {
    if (marked) return int{kNextTouchOk};
    if (!armed) {
      // Parts that were put back by mremap(2) are not watched any more.
      const int error = region.backend->arm(region, begin, end);
      if (error != kNextTouchOk) return error;
      armed = true;
    }
    return set_aside(region, from, to);
  });
}

/// Would all that no region covers take a mark? `look`: look_at() or look_at_kind(). `last`: the last piece that was looked at.
template <typename Look>
int look_at_all(uintptr_t begin, uintptr_t end, const Choice& choice, Look look, Piece* last) {
  switch (check_unlocked(begin, end)) {
    case 0:
      break;
    case -EBUSY:
      return kNextTouchLocked;
    default:
      return kNextTouchNotMapped;
  }
  for (uintptr_t at = begin; at < end;) {
    const Region* region = state.table.first_after(at);
    if (region != nullptr && region->begin <= at) {
      at = region->end;
      continue;
    }
    const uintptr_t stop = region != nullptr ? lesser(region->begin, end) : end;
    if (const int error = look(at, stop, choice, last); error != kNextTouchOk) return error;
    last->begin = at;
    at = last->end;
  }
  return kNextTouchOk;
}

}  // namespace

int check_pages(uintptr_t begin, uintptr_t end, const Choice& choice, bool any_policy) {
  Piece last = {};
  return look_at_all(begin, end, choice, any_policy ? look_at_kind : look_at, &last);
}

int mark_pages(uintptr_t begin, uintptr_t end, const Choice& choice) {
  Piece known = {};
  if (const int error = look_at_all(begin, end, choice, look_at, &known); error != kNextTouchOk)
    return error;
  // Before anything is closed: see try_again() in signals.cpp.
  state.changes.fetch_add(1, std::memory_order_relaxed);
  const bool sparse = is_sparse(begin, end);
  for (uintptr_t at = begin; at < end;) {
    Region* region = state.table.first_after(at);
    if (region != nullptr && region->begin <= at) {
      const uintptr_t stop = lesser(region->end, end);
      forget_lost(*region, at, stop);
      int error;
      if (fits(*region, at, stop, choice)) {
        error = mark_again(*region, at, stop, choice.options);
        at = stop;
      } else {
        error = give_up(region, greater(at, region->begin), stop);
      }
      if (error != kNextTouchOk) return error;
      continue;
    }
    const uintptr_t stop = region != nullptr ? lesser(region->begin, end) : end;
    Piece piece = known;
    int error = kNextTouchOk;
    // A range in one mapping has been looked at just now.
    if (piece.begin != at || piece.end > stop) error = look_at(at, stop, choice, &piece);
    // Of a large range that is mostly empty what is there, so that a mark takes time by that: the first touch of the rest decides in any case.
    if (error == kNextTouchOk)
      error = for_stretches(at, piece.end, sparse, [&](uintptr_t from, uintptr_t to) {
        return make_region(from, to, piece, choice.options);
      });
    if (error != kNextTouchOk) return error;
    at = piece.end;
  }
  return kNextTouchOk;
}

}  // namespace bosk::memory
