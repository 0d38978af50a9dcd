// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// userfaultfd. Marking moves the page table entries of the range to a shadow elsewhere (one mremap(2),
// the old mapping stays, empty and watched). A touch finds nothing, and whoever resolves it puts the page
// in again: a copy, which the kernel allocates where the resolver's thread is, or the page itself. A few
// pages are moved to a slot one by one instead.
//
// Where the data are: bit set: in the shadow; bit clear: in place. Both change only under the chunk's
// lock (or the gate, held alone), and the kernel fills a place only if it is empty (EEXIST) and still
// watched (ENOENT): so a page can neither be taken from two copies nor be put over something newer.
//
// On next write: the range is write-protected instead and stays where it is; the write that is caught
// sets its run aside and resolves it at once.
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "base/sleeping_lock.h"
#include "memory/next_touch/backend.h"
#include "memory/next_touch/mappings.h"
#include "memory/next_touch/reserve.h"
#include "memory/next_touch/shadow.h"
#include "memory/next_touch/slots.h"
#include "memory/next_touch/state.h"
#include "memory/next_touch/userfault.h"
#include "memory/next_touch/userfault_thread.h"

namespace bosk::memory {
namespace {

struct Instance {
  std::atomic<int> file;
  std::atomic<bool> can_move;
};
constinit Instance instances[2] = {{-1, false}, {-1, false}};  // faulting thread, our thread

Instance& instance_of(const Region& region) {
  return instances[region.backend->id == NextTouchBackend::kUffdThread ? 1 : 0];
}
int file_of(const Region& region) {
  return instance_of(region).file.load(std::memory_order_relaxed);
}
bool ours_wait(const Region& region) { return region.backend->id == NextTouchBackend::kUffdThread; }

uint32_t pages_in(uintptr_t begin, uintptr_t end) {
  return static_cast<uint32_t>((end - begin) / base::kPage);
}

int error_of(long result) {
  switch (result) {
    case 0:
      return kNextTouchOk;
    case -EBUSY:
      return kNextTouchInUse;
    case -ENOMEM:
    case -EAGAIN:
      return kNextTouchNoMemory;
    default:  // EINVAL, EFAULT: a kind of mapping that userfaultfd or mremap does not take
      return kNextTouchFile;
  }
}

// ---- marking

int arm(Region& region, uintptr_t begin, uintptr_t end) {
  const uint64_t mode = uint64_t{UFFDIO_REGISTER_MODE_MISSING} |
                        (region.on_write ? uint64_t{UFFDIO_REGISTER_MODE_WP} : 0);
  return error_of(userfault_register(file_of(region), begin, end, mode));
}

uintptr_t fill_by_moves(Region& region, uintptr_t begin, uintptr_t end);

/// A few pages go to a slot, if all of them are there and can be moved one by one; false: all are where they were.
bool set_aside_in_slot(Region& region, uintptr_t begin, uintptr_t end) {
  const uint32_t pages = pages_in(begin, end);
  if (region.shadow != 0 || begin != region.begin || end != region.end ||
      pages > most_slot_pages() || region.on_write || ours_wait(region) ||
      region.prot != (PROT_READ | PROT_WRITE) ||
      !instance_of(region).can_move.load(std::memory_order_relaxed))
    return false;
  const uintptr_t slot = take_slot(file_of(region), pages);
  if (slot == 0) return false;
  region.shadow = slot;
  region.in_slot = true;
  size_t done;
  if (userfault_move_all(file_of(region), slot, begin, end - begin, &done) == 0) return true;
  // All, whatever it says to have moved: where a page still is, there is none in the slot.
  for (uintptr_t at = begin; at < end;) {
    at = fill_by_moves(region, at, end);
    // No memory for a page: somebody gives some back, or dies.
    if (at < end) base::raw_syscall(SYS_sched_yield);
  }
  region.shadow = 0;
  region.in_slot = false;
  give_slot_back(slot, pages);
  return false;
}

int set_aside(Region& region, uintptr_t begin, uintptr_t end) {
  if (set_aside_in_slot(region, begin, end)) return kNextTouchOk;
  if (region.shadow == 0 && (region.on_write || end - begin >= kChunkBytes)) {
    region.shadow = reserve_shadow(region.begin, region.end - region.begin);
    if (region.shadow == 0) return kNextTouchNoMemory;
  }
  if (region.on_write) return error_of(userfault_protect(file_of(region), begin, end, true));
  const long at = move_aside(file_of(region), region.prot, begin, end - begin,
                             region.shadow == 0 ? 0 : region.shadow_of(begin));
  if (failed(at)) return error_of(at);
  if (region.shadow == 0) region.shadow = static_cast<uintptr_t>(at);
  return kNextTouchOk;
}

bool still_ours(Region& region, uintptr_t begin, uintptr_t end) {
  // A copy from where nothing can be read: the kernel looks first whether the place is watched.
  size_t done;
  return userfault_copy(file_of(region), begin, unreadable_page(), end - begin, &done) != -ENOENT;
}

// ---- resolving

/// By one mremap(2), which needs no memory but may need a mapping more.
bool remap_back(Region& region, uintptr_t begin, uintptr_t end) {
  // It would also replace what the program has mapped there since.
  if (!still_ours(region, begin, end)) return false;
  // Older kernels (6.1 for one): mremap(2) first unmaps the target and then finds out that the source is more than one
  // mapping. Nobody else changes this part of the shadow meanwhile.
  Mapping source;
  if (end - begin > base::kPage &&
      (!mapping_at(region.shadow_of(begin), &source) || source.end < region.shadow_of(end)))
    return false;
  if (failed(move_mapping(region.shadow_of(begin), end - begin, begin))) return false;
  if (ours_wait(region)) userfault_wake(file_of(region), begin, end);
  return true;
}

enum class Way : uint8_t {
  kMove,  ///< the page itself
  kCopy,  ///< a new page, where the caller is
};

/// Fills the places of a run from the shadow, page by page where it must be. Returns how far it came:
/// short of `end` if there is no memory for a page, and no other way.
uintptr_t fill(Region& region, uintptr_t begin, uintptr_t end, Way way, uint32_t* filled,
               Brought* brought) {
  const int file = file_of(region);
  uintptr_t to = begin;
  while (to < end) {
    size_t done;
    long result;
    if (way == Way::kMove) {
      result = userfault_move(file, to, region.shadow_of(to), end - to, &done);
      *filled += static_cast<uint32_t>(done / base::kPage);
      to += done;
      if (to >= end) break;
    }
    // This page cannot be moved: once shared with a child (EBUSY), read-only (EINVAL), locked for the
    // moment (EAGAIN). A copy of the one.
    size_t bytes = way == Way::kMove ? base::kPage : end - to;
    result = userfault_copy(file, to, region.shadow_of(to), bytes, &done);
    if (result == -ENOENT && done == 0 && bytes > base::kPage) {
      // The places are more than one mapping by now (the program's madvise(2), or an mremap(2) of ours that the kernel
      // did not merge): a copy must stay inside of one. Only of a single page does this say that nobody watches it.
      bytes = base::kPage;
      result = userfault_copy(file, to, region.shadow_of(to), bytes, &done);
    }
    *filled += static_cast<uint32_t>(done / base::kPage);
    brought->copied += static_cast<uint32_t>(done / base::kPage);
    to += done;
    if (done == bytes || result == -EAGAIN) continue;
    if (result == -EFAULT && region.in_slot) {
      // Slots are watched themselves, so what is not there is not zero: nobody has it, and the place stays empty as well.
      ++*filled;
    } else if (result == -EEXIST || result == -ENOENT || result == -ESRCH) {
      // Filled, or not watched any more: the program has put something else there.
      ++brought->lost;
      if (ours_wait(region)) userfault_wake(file, to, to + base::kPage);
    } else if (!region.in_slot && remap_back(region, to, to + base::kPage)) {
      ++*filled;
    } else {
      return to;
    }
    to += base::kPage;
  }
  return end;
}

uintptr_t fill_by_moves(Region& region, uintptr_t begin, uintptr_t end) {
  uint32_t filled = 0;
  Brought brought;
  return fill(region, begin, end, Way::kMove, &filled, &brought);
}

/// From the shadow to where they were.
uintptr_t return_pages(Region& region, uintptr_t begin, uintptr_t end, Brought* brought) {
  const bool can_move = instance_of(region).can_move.load(std::memory_order_relaxed);
  const uint32_t pages = pages_in(begin, end);
  // Quicker than page by page, but splits the mapping at both ends.
  constexpr uint32_t kWorthASplit = 64;
  if ((pages >= kWorthASplit || !can_move) && remap_back(region, begin, end)) {
    brought->stayed += pages;
    return end;
  }
  return fill(region, begin, end, can_move ? Way::kMove : Way::kCopy, &brought->stayed, brought);
}

/// Runs shorter than this: one system call more for each is no gain.
constexpr uint32_t kWorthTheReserve = 8;
/// So many at once: they stay in the second-level cache between copying and the move.
constexpr uint32_t kPagesOfReserve = 64;

bool may_use_reserve(const Region& region, uint32_t pages) {
  return pages >= kWorthTheReserve && !ours_wait(region) &&
         region.prot == (PROT_READ | PROT_WRITE) &&
         instance_of(region).can_move.load(std::memory_order_relaxed);
}

/// Fills a run into pages of the target, from the reserve or new ones. Old pages go into the reserve of the node that they
/// are on, as far as there is room.
uintptr_t fill_remote(Region& region, uintptr_t begin, uintptr_t end, uint32_t from_node,
                      uint32_t target, uint32_t* filled, Brought* brought) {
  if (!may_use_reserve(region, pages_in(begin, end)))
    return fill(region, begin, end, Way::kCopy, filled, brought);
  const int file = file_of(region);
  for (uintptr_t at = begin; at < end;) {
    const uint32_t left = pages_in(at, end);
    const uint32_t piece = left < kPagesOfReserve ? left : kPagesOfReserve;
    uint32_t count = fill_from_reserve(file, at, region.shadow_of(at), piece, target);
    if (count != 0) {
      *filled += count;
      brought->copied += count;
      brought->exchanged += count;
    } else {
      const uintptr_t came =
          fill(region, at, at + piece * base::kPage, Way::kCopy, filled, brought);
      count = pages_in(at, came);
      if (count == 0) return at;
    }
    const uint32_t kept = put_into_reserve(file, region.shadow_of(at), count, from_node);
    // Fewer were copied than are gone if the kernel had one back by mremap(2).
    brought->copied -= kept < brought->copied ? kept : brought->copied;
    at += count * base::kPage;
  }
  return end;
}

/// To the toucher's node, as far as the kernel finds room there: else it takes the next node, and the
/// touches after this one leave pages where they are.
uintptr_t copy_to(Region& region, uintptr_t begin, uintptr_t end, uint32_t from_node,
                  uint32_t target, Brought* brought) {
  // Of the nodes of a mapping's policy the kernel takes the one nearest to the CPU that allocates.
  if (ours_wait(region) && !region.all_nodes) run_on_node(target);
  uint32_t copied = 0;
  const uintptr_t at = fill_remote(region, begin, end, from_node, target, &copied, brought);
  // The last one tells: a node that becomes full stays so for the rest of a run.
  const bool elsewhere = at != begin && !came_to_node(at - base::kPage, copied, target);
  if (elsewhere && region.all_nodes) node_was_full(target);
  (elsewhere ? brought->no_room : brought->moved) += copied;
  return at;
}

/// A run of which the kernel says the same: on `node`, or nothing there (negative).
uintptr_t bring_alike(Region& region, uintptr_t begin, uintptr_t end, int node, uint32_t target,
                      Brought* brought) {
  const Way in_place =
      instance_of(region).can_move.load(std::memory_order_relaxed) ? Way::kMove : Way::kCopy;
  // Nothing, or swapped out: the page that comes in is the toucher's in any case.
  if (node < 0) return fill(region, begin, end, in_place, &brought->absent, brought);
  if (static_cast<uint32_t>(node) == target)
    return fill(region, begin, end, in_place, &brought->local, brought);
  const bool allowed = (region.all_nodes || region.nodes.has(target)) &&
                       node_is_allowed(target, pages_in(begin, end));
  if (!allowed) return return_pages(region, begin, end, brought);
  if (node_has_room(target, pages_in(begin, end)))
    return copy_to(region, begin, end, static_cast<uint32_t>(node), target, brought);
  Brought back;
  const uintptr_t at = return_pages(region, begin, end, &back);
  brought->no_room += back.stayed;
  brought->lost += back.lost;
  brought->copied += back.copied;
  return at;
}

uintptr_t bring_from_shadow(Region& region, uintptr_t begin, uintptr_t end, uint32_t target,
                            Brought* brought) {
  if (count_memory_nodes() == 1)
    return bring_alike(region, begin, end, static_cast<int>(target), target, brought);
  for (uintptr_t at = begin; at < end;) {
    int nodes[kNodesAtOnce];
    const uint32_t left = pages_in(at, end);
    const uint32_t count = left < kNodesAtOnce ? left : kNodesAtOnce;
    nodes_of_pages(region.shadow_of(at), count, nodes);
    for (uint32_t i = 0; i < count;) {
      uint32_t n = i + 1;
      while (n < count && nodes[n] == nodes[i]) ++n;
      const uintptr_t stop = at + n * base::kPage;
      const uintptr_t came =
          bring_alike(region, at + i * base::kPage, stop, nodes[i], target, brought);
      if (came < stop) return came;
      i = n;
    }
    at += count * base::kPage;
  }
  return end;
}

/// Protected pages are readable and writable where they are again.
void unprotect(Region& region, uintptr_t begin, uintptr_t end, Brought* brought) {
  const int file = file_of(region);
  if (userfault_protect(file, begin, end, false) != -ENOENT) {
    brought->stayed += pages_in(begin, end);
    return;
  }
  // The kernel ends at the first mapping that nobody watches: what the program has mapped anew. Behind it are more of ours.
  for (uintptr_t at = begin; at < end; at += base::kPage) {
    const bool gone = userfault_protect(file, at, at + base::kPage, false) == -ENOENT;
    ++(gone ? brought->lost : brought->stayed);
  }
}

uintptr_t bring(Region& region, uintptr_t begin, uintptr_t end, uint32_t target, Brought* brought) {
  if (!region.on_write) return bring_from_shadow(region, begin, end, target, brought);
  // One mapping, too, or mremap(2) may unmap the shadow and fail: see remap_back().
  if (!still_ours(region, begin, end) || failed(move_aside(file_of(region), region.prot, begin,
                                                           end - begin, region.shadow_of(begin)))) {
    unprotect(region, begin, end, brought);
    return end;
  }
  // Set bits mean "protected" here, and what is in the shadow now must not stay there.
  uintptr_t at = begin;
  while ((at = bring_from_shadow(region, at, end, target, brought)) < end)
    base::raw_syscall(SYS_sched_yield);  // no memory for a page: somebody gives some back, or dies
  return end;
}

uintptr_t put_back(Region& region, uintptr_t begin, uintptr_t end, Brought* brought) {
  if (!region.on_write) return return_pages(region, begin, end, brought);
  unprotect(region, begin, end, brought);
  return end;
}

bool touch_unmarked(Region& region, uintptr_t page) {
  // The program has discarded it, or nothing was there: it is zero, as it would be without us.
  const long result = userfault_zero(file_of(region), page, page + base::kPage);
  if (result == 0) return true;
  // There is a page, and yet it was a fault: a write to one that is protected still, or somebody was quicker.
  if (result == -EEXIST && region.on_write)
    userfault_protect(file_of(region), page, page + base::kPage, false);
  if (ours_wait(region)) userfault_wake(file_of(region), page, page + base::kPage);
  return result != -ENOENT && result != -EINVAL;
}

void drop_copies(Region& region, uintptr_t begin, uintptr_t end) {
  base::raw_syscall(SYS_madvise, static_cast<long>(region.shadow_of(begin)),
                    static_cast<long>(end - begin), MADV_DONTNEED);
}

void disarm(Region& region) {
  // Refused (EINVAL), and nothing done, if the program has mapped a file or the like into it meanwhile. What stayed watched
  // would kill whoever touches it once it has been discarded.
  if (userfault_unregister(file_of(region), region.begin, region.end) != 0) {
    Mapping mapping;
    for (uintptr_t at = region.begin; at < region.end && mapping_at_or_behind(at, &mapping);) {
      if (mapping.begin > at) at = mapping.begin;
      const uintptr_t stop = mapping.end < region.end ? mapping.end : region.end;
      if (at < stop) userfault_unregister(file_of(region), at, stop);
      at = stop > at ? stop : region.end;
    }
  }
  if (region.in_slot)
    give_slot_back(region.shadow, pages_in(region.begin, region.end));
  else if (region.shadow != 0)
    base::raw_syscall(SYS_munmap, static_cast<long>(region.shadow),
                      static_cast<long>(region.end - region.begin));
  region.shadow = 0;
  region.in_slot = false;
}

// ---- starting

bool open_instance(Instance& instance, bool kernel_faults, uint64_t needed) {
  if (instance.file.load(std::memory_order_relaxed) >= 0) return true;
  uint64_t features = 0;
  // MOVE is needed though there are other ways: on 6.1, which lacks it, areas that were marked again have
  // lost pages (docs/next-touch.md), so nothing older than 6.8 is trusted.
  const int file =
      open_userfault(kernel_faults, needed | UFFD_FEATURE_PAGEFAULT_FLAG_WP | kFeatureMove,
                     UFFD_FEATURE_THREAD_ID, &features);
  if (file < 0) return false;
  instance.can_move.store((features & kFeatureMove) != 0, std::memory_order_relaxed);
  // release: who finds the file finds the rest.
  instance.file.store(file, std::memory_order_release);
  return true;
}

bool start_here() {
  return have_pages_of_ours() && open_instance(instances[0], false, UFFD_FEATURE_SIGBUS);
}

bool start_thread() {
  return have_pages_of_ours() && open_instance(instances[1], true, UFFD_FEATURE_THREAD_ID) &&
         start_userfault_thread(instances[1].file.load(std::memory_order_relaxed));
}

void forget(Instance& instance) {
  const int file = instance.file.exchange(-1, std::memory_order_relaxed);
  if (file >= 0) base::raw_syscall(SYS_close, file);  // it is the parent's memory that it watches
}

}  // namespace

const Backend kUffdBackend = {NextTouchBackend::kUffd,
                              "uffd",
                              SIGBUS,
                              start_here,
                              false,
                              false,
                              arm,
                              set_aside,
                              bring,
                              put_back,
                              touch_unmarked,
                              still_ours,
                              drop_copies,
                              disarm,
                              [] { forget(instances[0]); }};

const Backend kUffdThreadBackend = {NextTouchBackend::kUffdThread,
                                    "uffd-thread",
                                    0,
                                    start_thread,
                                    false,
                                    true,
                                    arm,
                                    set_aside,
                                    bring,
                                    put_back,
                                    touch_unmarked,
                                    still_ours,
                                    drop_copies,
                                    disarm,
                                    [] { forget(instances[1]); }};

}  // namespace bosk::memory
