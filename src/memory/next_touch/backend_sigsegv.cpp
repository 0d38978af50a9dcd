// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pager of 2009: marked pages are protected (mprotect(2)), and the thread that meets one moves it
// (move_pages(2)) and opens it. Data never leave their place, so that nothing can be lost; but a move
// costs a system call that waits for every CPU, and every run of pages may cost a mapping.
#include <signal.h>
#include <sys/mman.h>

#include "memory/next_touch/backend.h"
#include "memory/next_touch/mappings.h"

namespace bosk::memory {
namespace {

uint32_t pages_in(uintptr_t begin, uintptr_t end) {
  return static_cast<uint32_t>((end - begin) / base::kPage);
}

int closed_prot(const Region& region) {
  return region.on_write ? region.prot & ~PROT_WRITE : PROT_NONE;
}

bool protect(uintptr_t begin, uintptr_t end, int prot) {
  return base::raw_syscall(SYS_mprotect, static_cast<long>(begin), static_cast<long>(end - begin),
                           prot) == 0;
}

bool start() { return true; }

int arm(Region& region, uintptr_t, uintptr_t) {
  // Nothing to notice where nothing may be written.
  return region.on_write && (region.prot & PROT_WRITE) == 0 ? kNextTouchUnsupported : kNextTouchOk;
}

int set_aside(Region& region, uintptr_t begin, uintptr_t end) {
  return protect(begin, end, closed_prot(region)) ? kNextTouchOk : kNextTouchNoMemory;
}

/// Is the run closed as we have closed it? If the program has mapped or protected it anew, that holds.
bool still_ours(Region& region, uintptr_t begin, uintptr_t end) {
  Mapping mapping;
  for (uintptr_t at = begin; at < end; at = mapping.end)  // each is behind `at`
    if (!mapping_at(at, &mapping) || mapping.prot != closed_prot(region)) return false;
  return true;
}

/// Opens what is still closed as we have closed it. Returns how far it came: short of `end` if that
/// needs a mapping more than there can be.
uintptr_t open_ours(Region& region, uintptr_t begin, uintptr_t end, uint32_t* lost) {
  Mapping mapping = {};
  for (uintptr_t at = begin; at < end;) {
    if (!mapping_at_or_behind(at, &mapping) || mapping.begin >= end) {
      *lost += pages_in(at, end);
      return end;
    }
    if (mapping.begin > at) {
      *lost += pages_in(at, mapping.begin);
      at = mapping.begin;
    }
    const uintptr_t stop = mapping.end < end ? mapping.end : end;
    if (mapping.prot != closed_prot(region))
      *lost += pages_in(at, stop);
    else if (!protect(at, stop, region.prot) && !protect(mapping.begin, mapping.end, region.prot))
      // The whole mapping splits nothing. Marks of other chunks then stay over open pages: hints lost,
      // found out when they are marked again or cancelled.
      return at;
    at = stop;
  }
  return end;
}

void move_run(Region& region, uintptr_t begin, uintptr_t end, uint32_t target, Brought* brought) {
  int nodes[kNodesAtOnce];
  bool apart = false;  // a run lies in one chunk: at most one huge page has to be split
  for (uintptr_t at = begin; at < end;) {
    const uint32_t left = pages_in(at, end);
    const uint32_t count = left < kNodesAtOnce ? left : kNodesAtOnce;
    nodes_of_pages(at, count, nodes);
    uint32_t remote = 0;
    uintptr_t goes = at;  // the first that is remote
    for (uint32_t i = 0; i < count; ++i) {
      if (nodes[i] < 0)
        ++brought->absent;
      else if (static_cast<uint32_t>(nodes[i]) == target)
        ++brought->local;
      else if (remote++ == 0)
        goes = at + i * base::kPage;
    }
    if (remote != 0) {
      const bool allowed =
          (region.all_nodes || region.nodes.has(target)) && node_is_allowed(target, remote);
      if (!allowed) {
        brought->stayed += remote;
      } else if (!node_has_room(target, remote)) {
        brought->no_room += remote;
      } else if (!(apart = apart || part_from_neighbours(begin, end, goes, target))) {
        brought->stayed += remote;
      } else {
        move_to_node(at, count, target, nodes);
        uint32_t there = 0;
        for (uint32_t i = 0; i < count; ++i)
          there += nodes[i] >= 0 && static_cast<uint32_t>(nodes[i]) == target ? 1 : 0;
        // Those that were there before have been counted.
        uint32_t arrived = there + remote > count ? there + remote - count : 0;
        if (arrived > remote) arrived = remote;
        brought->moved += arrived;
        brought->stayed += remote - arrived;
      }
    }
    at += count * base::kPage;
  }
}

uintptr_t bring(Region& region, uintptr_t begin, uintptr_t end, uint32_t target, Brought* brought) {
  // Opened first: the kernel does not find pages that are closed. Who touches them now need not wait,
  // since the kernel moves pages under their users.
  const uintptr_t came = open_ours(region, begin, end, &brought->lost);
  if (count_memory_nodes() == 1)
    brought->local += pages_in(begin, came);
  else
    move_run(region, begin, came, target, brought);
  return came;
}

uintptr_t put_back(Region& region, uintptr_t begin, uintptr_t end, Brought* brought) {
  uint32_t lost = 0;
  const uintptr_t came = open_ours(region, begin, end, &lost);
  brought->lost += lost;
  brought->stayed += pages_in(begin, came) - lost;
  return came;
}

/// Not by us: the program's own protection.
bool touch_unmarked(Region&, uintptr_t) { return false; }

void disarm(Region&) {}
void forget() {}

}  // namespace

const Backend kSigsegvBackend = {NextTouchBackend::kSigsegv,
                                 "sigsegv",
                                 SIGSEGV,
                                 start,
                                 true,
                                 false,
                                 arm,
                                 set_aside,
                                 bring,
                                 put_back,
                                 touch_unmarked,
                                 still_ours,
                                 nullptr,
                                 disarm,
                                 forget};

}  // namespace bosk::memory
