// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Areas come, are looked up, are cut, and go.
#include "memory/area_table.h"

#include <bosk/error.h>

#include <algorithm>

#include "base/cpu.h"
#include "memory/area_table_locked.h"
#include "memory/page_nodes.h"

namespace bosk::memory {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
/// Write sections take well under a microsecond: who meets so many of them had better wait for his turn.
constexpr int kTries = 64;

}  // namespace

bool AreaTable::prepare(const topology::Machine& machine) {
  nodes_.set(machine);
  const size_t tail = machine.n_nodes * sizeof(std::atomic<uint64_t>);
  node_bytes_.set_tail(tail);
  free_owners_.set_tail(tail);
  on_nodes_ = node_bytes_.take();
  return on_nodes_ != nullptr;
}

/// Inside of a read section, or with the lock. What is in *info is of this area, if there is one.
Area* AreaTable::find(uintptr_t address, AreaInfo* info) const {
  Area* area = index_.at_or_before(address, info);
  return area != nullptr && address < info->end ? area : nullptr;
}

Area* AreaTable::find(uintptr_t address) const {
  AreaInfo info;
  return find(address, &info);
}

Area* AreaTable::find_begin(uintptr_t begin) const {
  AreaInfo info;
  Area* area = index_.at_or_before(begin, &info);
  return area != nullptr && info.begin == begin ? area : nullptr;
}

bool AreaTable::look_up(uintptr_t address, AreaInfo* info) const {
  for (int i = 0; i < kTries; ++i) {
    const uint32_t version = version_.load(std::memory_order_acquire);
    if ((version & 1) == 0) {
      const Found found = index_.look_up(address, version_, version, info);
      if (found != Found::kChanged) return found == Found::kYes;
    }
    base::cpu_pause();
  }
  lock_.lock();
  const Found found = index_.look_up(address, version_, version_.load(kRelaxed), info);
  lock_.unlock();
  return found == Found::kYes;
}

bool AreaTable::look_up(uintptr_t address, AreaInfo* info, uint64_t* bytes_on) const {
  AreaInfo found;
  const auto take = [&] {
    const Area* area = find(address, &found);
    for (uint32_t i = 0; area != nullptr && i < nodes_.count(); ++i)
      bytes_on[i] = area->bytes_on()[i].load(kRelaxed);
    return area != nullptr;
  };
  for (int i = 0; i < kTries; ++i) {
    const uint32_t version = version_.load(std::memory_order_acquire);
    if ((version & 1) == 0) {
      const bool is_there = take();
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version_.load(kRelaxed) == version) {
        if (is_there) *info = found;
        return is_there;
      }
    }
    base::cpu_pause();
  }
  lock_.lock();
  const bool is_there = take();
  lock_.unlock();
  if (is_there) *info = found;
  return is_there;
}

bool AreaTable::is_same(const AreaInfo& known) const {
  constexpr int kManyTries = 10'000;
  for (int i = 0; i < kManyTries; ++i) {
    const uint32_t version = version_.load(std::memory_order_acquire);
    if ((version & 1) == 0) {
      const Area* area = find_same(known);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version_.load(kRelaxed) == version) return area != nullptr;
    }
    base::cpu_pause();
  }
  return false;
}

Area* AreaTable::make_area(const NewArea& wanted) {
  Area* area = areas_.take();
  if (area == nullptr) return nullptr;
  if (area->on_nodes == nullptr) {
    NodeBytes* made = node_bytes_.take();
    if (made == nullptr) {
      areas_.give(area);
      return nullptr;
    }
    area->on_nodes = made->bytes();
  }
  area->info = {.begin = wanted.begin,
                .end = wanted.begin + wanted.bytes,
                .serial = ++last_serial_,
                .origin = wanted.origin,
                .placement = wanted.placement,
                .node = wanted.node,
                .attachments = 0,
                .huge_page = wanted.huge_page};
  area->first = nullptr;
  area->coming = Coming::kNo;
  for (uint32_t i = 0; i < nodes_.count(); ++i) {
    area->bytes_on()[i].store(0, kRelaxed);
    if (wanted.bytes_on != nullptr) count(*area, i, wanted.bytes_on[i]);
  }
  return area;
}

int AreaTable::add(const NewArea& wanted) {
  uintptr_t end;
  if (wanted.bytes == 0 || __builtin_add_overflow(wanted.begin, wanted.bytes, &end))
    return BOSK_EINVAL;
  Locked locked(*this);
  const Area* behind = index_.behind(wanted.begin);
  if (find(wanted.begin) != nullptr || (behind != nullptr && behind->info.begin < end))
    return BOSK_EOVERLAP;
  Writing writing(*this);
  Area* area = make_area(wanted);
  if (area == nullptr) return BOSK_ENOMEM;
  if (index_.insert(area->info, area)) return BOSK_OK;
  for (uint32_t i = 0; i < nodes_.count(); ++i) count(*area, i, 0);
  areas_.give(area);
  return BOSK_ENOMEM;
}

/// In a write section: it is nobody's any more, and not in the index.
void AreaTable::clear_area(Area& area) {
  while (area.first != nullptr) unlink(area.first);
  note_coming(area, Coming::kNo);
  for (uint32_t i = 0; i < nodes_.count(); ++i) count(area, i, 0);
  index_.erase(area.info.begin);
  areas_.give(&area);
}

int AreaTable::remove(uintptr_t begin, Origin origin, AreaInfo* removed) {
  Locked locked(*this);
  Area* area = find_begin(begin);
  if (area == nullptr) return BOSK_ENOAREA;
  const bool fits = origin == Origin::kPages ? area->info.is_own() : area->info.origin == origin;
  if (!fits) return BOSK_ENOAREA;
  *removed = area->info;
  Writing writing(*this);
  clear_area(*area);
  return BOSK_OK;
}

int AreaTable::remove_left_over(uintptr_t address, AreaInfo* removed) {
  Locked locked(*this);
  Area* area = find(address);
  if (area == nullptr || !area->info.is_left_over()) return BOSK_ENOAREA;
  *removed = area->info;
  Writing writing(*this);
  clear_area(*area);
  return BOSK_OK;
}

int AreaTable::adopt(uintptr_t begin, size_t bytes, AreaInfo* adopted) {
  Locked locked(*this);
  Area* area = find_begin(begin);
  if (area == nullptr || !area->info.is_own()) return BOSK_ENOAREA;
  AreaInfo& info = area->info;
  const size_t page = info.huge_page != 0 ? info.huge_page : page_size();
  // Into its last page, and not beyond.
  const bool is_all = bytes <= info.bytes() && bytes > info.bytes() - page;
  if (info.origin == Origin::kAdopted || !is_all) return BOSK_EOVERLAP;
  Writing writing(*this);
  info.origin = Origin::kAdopted;
  index_.set(info);
  *adopted = info;
  return BOSK_OK;
}

int AreaTable::disown(uintptr_t begin, AreaInfo* before) {
  Locked locked(*this);
  Area* area = find_begin(begin);
  if (area == nullptr || area->info.origin != Origin::kAdopted) return BOSK_ENOAREA;
  *before = area->info;
  Writing writing(*this);
  while (area->first != nullptr) unlink(area->first);
  area->info.origin = Origin::kPages;
  area->info.serial = ++last_serial_;
  note_coming(*area, Coming::kNo);
  index_.set(area->info);
  return BOSK_OK;
}

uint32_t AreaTable::list(uintptr_t from, AreaInfo* areas, uint32_t room) {
  Locked locked(*this);
  const Area* area = find_begin(from);
  if (area == nullptr) area = index_.behind(from);
  uint32_t n = 0;
  for (; n < room && area != nullptr; ++n) {
    areas[n] = area->info;
    area = index_.behind(areas[n].begin);
  }
  return n;
}

int AreaTable::check_split(const Area& area, size_t parts, size_t granule) const {
  const size_t bytes = area.info.bytes();
  // Each part but the first begins at a multiple; the shortest must not be empty.
  return parts >= 2 && bytes / granule >= parts ? BOSK_OK : BOSK_EINVAL;
}

/// Gives back the parts of a split that are not in the index yet, chained by next_free.
int AreaTable::undo_split(Area* first_made, int error) {
  while (first_made != nullptr) {
    Area* next = first_made->next_free;
    while (first_made->first != nullptr) unlink(first_made->first);
    note_coming(*first_made, Coming::kNo);
    areas_.give(first_made);
    first_made = next;
  }
  return error;
}

int AreaTable::split(uintptr_t begin, size_t parts, size_t granule, void** begins) {
  Locked locked(*this);
  Area* whole = find_begin(begin);
  if (whole == nullptr) return BOSK_ENOAREA;
  if (const int error = check_split(*whole, parts, granule)) return error;
  const uintptr_t end = whole->info.end;
  const size_t granules = (end - begin) / granule;
  const auto cut = [&](size_t part) {
    if (part == parts) return end;
    const auto whole_ones =
        static_cast<size_t>(static_cast<unsigned __int128>(part) * granules / parts);
    return (begin + whole_ones * granule + granule - 1) / granule * granule;
  };
  // What is known of the whole, evenly.
  const auto share = [&](uint32_t node, size_t part) {
    return static_cast<uint64_t>(
        static_cast<unsigned __int128>(whole->bytes_on()[node].load(kRelaxed)) *
        (cut(part + 1) - cut(part)) / (end - begin));
  };
  // Everything that may fail first.
  Writing writing(*this);
  Area* made = nullptr;
  for (size_t part = parts - 1; part > 0; --part) {
    NewArea wanted{cut(part),          cut(part + 1) - cut(part),
                   whole->info.origin, whole->info.placement,
                   whole->info.node,   whole->info.huge_page};
    Area* area = make_area(wanted);
    if (area == nullptr) return undo_split(made, BOSK_ENOMEM);
    area->next_free = made;
    made = area;
    note_coming(*area, whole->coming);
    for (const Attachment* a = whole->first; a != nullptr; a = a->next_of_area) {
      Attachment* copy = attachments_.take();
      if (copy == nullptr) return undo_split(made, BOSK_ENOMEM);
      copy->use = a->use;
      copy->times = a->times;
      link(*copy, *area, *a->owner);
    }
  }
  // First of all, for the index takes areas not to overlap.
  const auto set_end = [&](uintptr_t to) {
    whole->info.end = to;
    index_.set(whole->info);
  };
  set_end(cut(1));
  for (Area* area = made; area != nullptr; area = area->next_free) {
    if (index_.insert(area->info, area)) continue;
    for (Area* in = made; in != area; in = in->next_free) index_.erase(in->info.begin);
    set_end(end);
    return undo_split(made, BOSK_ENOMEM);
  }
  for (uint32_t node = 0; node < nodes_.count(); ++node) {
    uint64_t left = whole->bytes_on()[node].load(kRelaxed);
    size_t part = 1;
    for (Area* area = made; area != nullptr; area = area->next_free, ++part) {
      const uint64_t bytes = share(node, part);
      left -= bytes;
      count(*area, node, bytes);
    }
    count(*whole, node, left);
  }
  if (begins != nullptr) {
    *begins++ = reinterpret_cast<void*>(begin);
    for (const Area* area = made; area != nullptr; area = area->next_free)
      *begins++ = reinterpret_cast<void*>(area->info.begin);
  }
  return BOSK_OK;
}

/// The area has so many bytes on the node, and so have all its owners unless footprints leave it out.
void AreaTable::count(Area& area, uint32_t node, uint64_t bytes) {
  // By who holds the lock: no read-modify-write is needed. Sums of unsigned numbers may wrap on the way.
  const auto change = [&](std::atomic<uint64_t>& sum, uint64_t before) {
    sum.store(sum.load(kRelaxed) + bytes - before, kRelaxed);
  };
  const uint64_t before = area.bytes_on()[node].load(kRelaxed);
  area.bytes_on()[node].store(bytes, kRelaxed);
  change(on_nodes_->bytes()[node], before);
  for (const Attachment* a = area.first; a != nullptr && !area.is_left_out(); a = a->next_of_area)
    change(a->owner->footprint()[node], before);
}

/// Null: it is not this area any more. Inside of a read section, or with the lock.
Area* AreaTable::find_same(const AreaInfo& known) const {
  AreaInfo info;
  Area* area = index_.at_or_before(known.begin, &info);
  const bool same = area != nullptr && info.begin == known.begin && info.serial == known.serial &&
                    info.end == known.end;
  return same ? area : nullptr;
}

void AreaTable::set_pages(const AreaInfo& known, const uint64_t* bytes_on, NodeIndex node,
                          Placement placement) {
  Locked locked(*this);
  Area* area = find_same(known);
  if (area == nullptr) return;
  Writing writing(*this);
  area->info.node = node;
  area->info.placement = placement;
  index_.set(area->info);
  for (uint32_t i = 0; i < nodes_.count(); ++i) count(*area, i, bytes_on[i]);
}

void AreaTable::set_bytes(const AreaInfo& known, const uint64_t* bytes_on) {
  Locked locked(*this);
  Area* area = find_same(known);
  if (area == nullptr) return;
  Writing writing(*this);
  for (uint32_t i = 0; i < nodes_.count(); ++i) count(*area, i, bytes_on[i]);
}

/// The area alone, without footprints.
void AreaTable::note_coming(Area& area, Coming coming) {
  const bool was_listed = area.coming != Coming::kNo;
  const bool is_listed = coming != Coming::kNo;
  area.coming = coming;
  if (was_listed == is_listed) return;
  if (is_listed) {
    area.next_coming = nullptr;
    area.previous_coming = last_coming_;
    (last_coming_ != nullptr ? last_coming_->next_coming : first_coming_) = &area;
    last_coming_ = &area;
  } else {
    (area.previous_coming != nullptr ? area.previous_coming->next_coming : first_coming_) =
        area.next_coming;
    (area.next_coming != nullptr ? area.next_coming->previous_coming : last_coming_) =
        area.previous_coming;
  }
  n_coming_.store(n_coming_.load(kRelaxed) + (is_listed ? 1 : -1), kRelaxed);
}

uint32_t AreaTable::list_coming(AreaInfo* areas, uint32_t room) {
  Locked locked(*this);
  const uint32_t n = std::min(room, coming());
  for (uint32_t i = 0; i < n; ++i) {
    Area* area = first_coming_;
    const Coming how = area->coming;
    areas[i] = area->info;
    // To the end.
    note_coming(*area, Coming::kNo);
    note_coming(*area, how);
  }
  return n;
}

Coming AreaTable::coming_of(const AreaInfo& known) {
  Locked locked(*this);
  const Area* area = find_same(known);
  return area != nullptr ? area->coming : Coming::kNo;
}

void AreaTable::set_coming(const AreaInfo& known, Coming coming) {
  Locked locked(*this);
  Area* area = find_same(known);
  if (area == nullptr || area->coming == coming) return;
  Writing writing(*this);
  const bool was_left_out = area->is_left_out();
  note_coming(*area, coming);
  if (area->is_left_out() == was_left_out) return;
  for (const Attachment* a = area->first; a != nullptr; a = a->next_of_area)
    change_footprint(*a->owner, *area, area->is_left_out());
}

}  // namespace bosk::memory
