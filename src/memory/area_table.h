// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of areas: what memory the manager knows, who works on it, and how much of it lies on which
// node. Facade of areas and attachments; knows nothing of threads.
//
// Who owns what: everything changes under `lock_`, which sleeps: callers have preemption on and hold no
// other lock of bosk's. Two things need no lock:
//   - look_up() and the footprints. What look_up() reads is changed inside of write sections only: the
//     version is odd meanwhile. A reader takes the version (acquire: it sees at least what was written
//     before), copies what it wants with relaxed loads, and looks at the version again behind an
//     acquire fence. If it copied anything of a later section, that store comes after the release fence
//     behind the odd version, so the second look sees that version or a later one, and the copy is thrown
//     away. ThreadSanitizer does not know fences, but every word is atomic, so there is nothing for it to
//     complain about. A reader that is disturbed again and again takes the lock.
//   - owner_gone(), which the scheduler may call with preemption off: it pushes the owner on a list, which
//     whoever has the lock next takes as a whole (so there is no ABA). release and acquire hand on the link.
// A fork holds the lock, so the child finds the table whole.
#pragma once

#include "base/sleeping_lock.h"
#include "memory/area.h"
#include "memory/area_index.h"
#include "memory/owner_map.h"
#include "memory/record_store.h"

namespace bosk::memory {

struct NewArea {
  uintptr_t begin;
  size_t bytes;
  Origin origin = Origin::kForeign;
  Placement placement = Placement::kDefault;
  NodeIndex node = kNone;
  uint32_t huge_page = 0;
  const uint64_t* bytes_on = nullptr;  ///< per node; null: nothing is known
};

/// An owner's use of an area.
struct AreaUse {
  AreaInfo area;
  uint32_t times;
  uint8_t use;
};

/// Functions return 0 or a code of bosk/error.h, and change nothing if it is one.
class AreaTable {
 public:
  /// Asked whether the owner may have something attached, with the table's lock held: what it returns, if not 0,
  /// is what attach() returns. The footprint is valid until the owner has gone.
  using Admit = int (*)(void* context, const std::atomic<uint64_t>* footprint);

  /// First of all, once. `machine` stays. False: no memory.
  bool prepare(const topology::Machine& machine);
  const MachineNodes& nodes() const { return nodes_; }

  /// BOSK_EINVAL: empty, or past the end of memory; BOSK_EOVERLAP; BOSK_ENOMEM. O(log areas).
  int add(const NewArea& area);
  /// The area that begins there; it is in *removed. BOSK_ENOAREA: there is none of this origin. kPages: adopted or not.
  int remove(uintptr_t begin, Origin origin, AreaInfo* removed);
  /// The area that the address is in, if it is left over: who attaches it at this moment either has it, or finds none. BOSK_ENOAREA:
  /// there is none, or it is in use.
  int remove_left_over(uintptr_t address, AreaInfo* removed);
  /// The pages of our own that begin there are the program's area as well, and were none before: so much in *adopted.
  /// BOSK_ENOAREA: there are none; BOSK_EOVERLAP: they are adopted already, or they are not the pages of so many bytes.
  int adopt(uintptr_t begin, size_t bytes, AreaInfo* adopted);
  /// It is no longer, and nothing is attached to it. For who has looked it up before it is not the same one. What it was is
  /// in *before. BOSK_ENOAREA: none that is adopted begins there.
  int disown(uintptr_t begin, AreaInfo* before);
  /// The area that the address is in. O(log areas), no lock.
  bool look_up(uintptr_t address, AreaInfo* info) const;
  /// The same, with the bytes per node.
  bool look_up(uintptr_t address, AreaInfo* info, uint64_t* bytes_on) const;
  /// Is it in the table, as it was looked up? Waits for no lock: false also if others do not stop changing the table.
  bool is_same(const AreaInfo& known) const;
  /// Makes `parts` areas of the one that begins there, cut at multiples of `granule`; each keeps all
  /// attachments. Their begins, if `begins` is not null. BOSK_EINVAL: one would be empty.
  int split(uintptr_t begin, size_t parts, size_t granule, void** begins);

  /// The area works for the owner now, too; if it did before, `use` and `times` are the new ones. O(1) but for
  /// the shorter of the two lists of attachments.
  int attach(uintptr_t address, OwnerId owner, uint8_t use, uint32_t times, Admit admit,
             void* context);
  /// BOSK_ENOENT: it is not attached.
  int detach(uintptr_t address, OwnerId owner);
  int detach_all_of_area(uintptr_t address);
  void detach_all(OwnerId owner);
  /// No attach() with this owner can come any more: all of its are undone, soon. Any context, also with
  /// preemption off.
  void owner_gone(const std::atomic<uint64_t>* footprint);

  /// Owners of which owner_gone() has been said by now are out of the table when this returns.
  void forget_gone_owners();

  /// Adds up what is known to be attached; false: nothing ever was.
  bool footprint(OwnerId owner, uint64_t* bytes) const;
  /// Fills in at most `room` of what the owner uses; returns how many there are.
  uint32_t uses_of(OwnerId owner, AreaUse* uses, uint32_t room);
  /// The same, of whoever has the footprint now.
  uint32_t uses_of(const std::atomic<uint64_t>* footprint, AreaUse* uses, uint32_t room);
  /// Areas of at least `from`, in order; at most `room`; returns how many were filled in.
  uint32_t list(uintptr_t from, AreaInfo* areas, uint32_t room);

  /// How many bytes of the area lie where, as somebody has found out; and where it is as a whole now (kNone: in
  /// several places). Nothing happens if it is not this area any more.
  void set_pages(const AreaInfo& area, const uint64_t* bytes_on, NodeIndex node,
                 Placement placement);

  /// The same, with nothing new about where it is as a whole: somebody else may have said that meanwhile.
  void set_bytes(const AreaInfo& area, const uint64_t* bytes_on);

  /// What is known of its marks. set_pages() changes nothing about that.
  void set_coming(const AreaInfo& area, Coming coming);

  /// How many areas are listed as coming. No lock.
  uint32_t coming() const { return n_coming_.load(std::memory_order_relaxed); }
  /// Fills in at most `room` of them, those first that have not been asked for longest; returns how many.
  uint32_t list_coming(AreaInfo* areas, uint32_t room);
  Coming coming_of(const AreaInfo& area);

  /// Held by who asks the kernel where pages are, or which are marked, until he has said so here: of two that do so at the same time
  /// the one that asked last has the last word. Taken before the table's own lock, never with that held.
  base::SleepingLock& asking() { return asking_; }

  /// Known to lie on the node, of all areas.
  uint64_t bytes_on(NodeIndex node) const {
    return on_nodes_->bytes()[node].load(std::memory_order_relaxed);
  }

  /// Around fork().
  void lock_for_fork() {
    asking_.lock();
    lock_.lock();
  }
  void unlock_after_fork() {
    lock_.unlock();
    asking_.unlock();
  }

 private:
  class Writing;
  struct Locked;

  Area* find(uintptr_t address, AreaInfo* info) const;
  Area* find(uintptr_t address) const;
  Area* find_begin(uintptr_t begin) const;
  Area* make_area(const NewArea& area);
  void clear_area(Area& area);
  int check_split(const Area& area, size_t parts, size_t granule) const;
  int undo_split(Area* first_made, int error);
  void take_gone_owners();
  Owner* make_owner(OwnerId id);
  void drop_owner(Owner* owner);
  static Attachment* find_attachment(const Area& area, const Owner& owner);
  void change_footprint(Owner& owner, const Area& area, bool take);
  void link(Attachment& attachment, Area& area, Owner& owner);
  void unlink(Attachment* attachment);
  void unlink_all(Owner& owner);
  static uint32_t copy_uses(const Owner& owner, AreaUse* uses, uint32_t room);
  Area* find_same(const AreaInfo& known) const;
  void count(Area& area, uint32_t node, uint64_t bytes);
  void note_coming(Area& area, Coming coming);

  mutable base::SleepingLock lock_;
  base::SleepingLock asking_;
  std::atomic<uint32_t> version_{0};
  MachineNodes nodes_;
  AreaIndex index_;
  OwnerMap owners_;
  uint64_t last_serial_ = 0;
  NodeBytes* on_nodes_ = nullptr;  ///< the sums of all areas
  Area* first_coming_ = nullptr;
  Area* last_coming_ = nullptr;
  std::atomic<uint32_t> n_coming_{0};  ///< relaxed: a number to go by
  std::atomic<Owner*> gone_{nullptr};
  RecordStore<Area, &Area::next_free> areas_;
  RecordStore<NodeBytes, &NodeBytes::next_free> node_bytes_;
  RecordStore<Owner, &Owner::next> free_owners_;
  RecordStore<Attachment, &Attachment::next_of_area> attachments_;
};

}  // namespace bosk::memory
