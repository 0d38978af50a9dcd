// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Areas come, are looked up, are cut, and go.
#include "memory/area_table.h"

#include <bosk/error.h>

#include "base/cpu.h"
#include "memory/area_table_locked.h"

namespace bosk::memory {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
/// Write sections take well under a microsecond: who meets so many of them had better wait for his turn.
constexpr int kTries = 64;

}  // namespace

bool AreaTable::prepare(const topology::Machine& machine) {
  nodes_.set(machine);
  const size_t tail = machine.n_nodes * sizeof(std::atomic<uint64_t>);
  areas_.set_tail(tail);
  free_owners_.set_tail(tail);
  on_nodes_ = areas_.take();
  return on_nodes_ != nullptr;
}

/// Inside of a read section, or with the lock.
Area* AreaTable::find(uintptr_t address) const {
  Area* area = index_.at_or_before(address);
  return area != nullptr && address < area->end.load(kRelaxed) ? area : nullptr;
}

Area* AreaTable::find_begin(uintptr_t begin) const {
  Area* area = index_.at_or_before(begin);
  return area != nullptr && area->begin.load(kRelaxed) == begin ? area : nullptr;
}

void AreaTable::copy(const Area& area, AreaInfo* info) {
  info->begin = area.begin.load(kRelaxed);
  info->end = area.end.load(kRelaxed);
  info->serial = area.serial.load(kRelaxed);
  info->origin = area.origin.load(kRelaxed);
  info->placement = area.placement.load(kRelaxed);
  info->node = area.node.load(kRelaxed);
  info->attachments = area.attachments.load(kRelaxed);
  info->huge_page = area.huge_page.load(kRelaxed);
}

bool AreaTable::look_up(uintptr_t address, AreaInfo* info) const {
  return look_up(address, info, nullptr);
}

bool AreaTable::look_up(uintptr_t address, AreaInfo* info, uint64_t* bytes_on) const {
  const auto take = [&](const Area* area) {
    copy(*area, info);
    for (uint32_t i = 0; bytes_on != nullptr && i < nodes_.count(); ++i)
      bytes_on[i] = area->bytes_on()[i].load(kRelaxed);
  };
  for (int i = 0; i < kTries; ++i) {
    const uint32_t version = version_.load(std::memory_order_acquire);
    if ((version & 1) == 0) {
      const Area* area = find(address);
      if (area != nullptr) take(area);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version_.load(kRelaxed) == version) return area != nullptr;
    }
    base::cpu_pause();
  }
  lock_.lock();
  const Area* area = find(address);
  if (area != nullptr) take(area);
  lock_.unlock();
  return area != nullptr;
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
  area->begin.store(wanted.begin, kRelaxed);
  area->end.store(wanted.begin + wanted.bytes, kRelaxed);
  area->serial.store(++last_serial_, kRelaxed);
  area->origin.store(wanted.origin, kRelaxed);
  area->placement.store(wanted.placement, kRelaxed);
  area->node.store(wanted.node, kRelaxed);
  area->attachments.store(0, kRelaxed);
  area->huge_page.store(wanted.huge_page, kRelaxed);
  area->first = nullptr;
  area->coming = false;
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
  const Area* before = index_.at_or_before(wanted.begin);
  const Area* behind = index_.behind(wanted.begin);
  if ((before != nullptr && before->end.load(kRelaxed) > wanted.begin) ||
      (behind != nullptr && behind->begin.load(kRelaxed) < end))
    return BOSK_EOVERLAP;
  Writing writing(*this);
  Area* area = make_area(wanted);
  if (area == nullptr) return BOSK_ENOMEM;
  if (index_.insert(wanted.begin, area)) return BOSK_OK;
  for (uint32_t i = 0; i < nodes_.count(); ++i) count(*area, i, 0);
  areas_.give(area);
  return BOSK_ENOMEM;
}

/// In a write section: it is nobody's any more, and not in the index.
void AreaTable::clear_area(Area& area) {
  while (area.first != nullptr) unlink(area.first);
  for (uint32_t i = 0; i < nodes_.count(); ++i) count(area, i, 0);
  index_.erase(area.begin.load(kRelaxed));
  areas_.give(&area);
}

int AreaTable::remove(uintptr_t begin, Origin origin, AreaInfo* removed) {
  Locked locked(*this);
  Area* area = find_begin(begin);
  if (area == nullptr || area->origin.load(kRelaxed) != origin) return BOSK_ENOAREA;
  copy(*area, removed);
  Writing writing(*this);
  clear_area(*area);
  return BOSK_OK;
}

uint32_t AreaTable::list(uintptr_t from, AreaInfo* areas, uint32_t room) {
  Locked locked(*this);
  const Area* area = find_begin(from);
  if (area == nullptr) area = index_.behind(from);
  uint32_t n = 0;
  for (; n < room && area != nullptr; ++n) {
    copy(*area, &areas[n]);
    area = index_.behind(areas[n].begin);
  }
  return n;
}

int AreaTable::check_split(const Area& area, size_t parts, size_t granule) const {
  const uintptr_t begin = area.begin.load(kRelaxed);
  const size_t bytes = area.end.load(kRelaxed) - begin;
  // Each part but the first begins at a multiple; the shortest must not be empty.
  return parts >= 2 && bytes / granule >= parts ? BOSK_OK : BOSK_EINVAL;
}

/// Gives back the parts of a split that are not in the index yet, chained by next_free.
int AreaTable::undo_split(Area* first_made, int error) {
  while (first_made != nullptr) {
    Area* next = first_made->next_free;
    while (first_made->first != nullptr) unlink(first_made->first);
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
  const uintptr_t end = whole->end.load(kRelaxed);
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
    NewArea wanted{cut(part),
                   cut(part + 1) - cut(part),
                   whole->origin.load(kRelaxed),
                   whole->placement.load(kRelaxed),
                   whole->node.load(kRelaxed),
                   whole->huge_page.load(kRelaxed)};
    Area* area = make_area(wanted);
    if (area == nullptr) return undo_split(made, BOSK_ENOMEM);
    area->next_free = made;
    made = area;
    area->coming = whole->coming;
    for (const Attachment* a = whole->first; a != nullptr; a = a->next_of_area) {
      Attachment* copy = attachments_.take();
      if (copy == nullptr) return undo_split(made, BOSK_ENOMEM);
      copy->use = a->use;
      copy->times = a->times;
      link(*copy, *area, *a->owner);
    }
  }
  for (Area* area = made; area != nullptr; area = area->next_free) {
    if (index_.insert(area->begin.load(kRelaxed), area)) continue;
    for (Area* in = made; in != area; in = in->next_free) index_.erase(in->begin.load(kRelaxed));
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
  whole->end.store(cut(1), kRelaxed);
  if (begins != nullptr) {
    *begins++ = reinterpret_cast<void*>(begin);
    for (const Area* area = made; area != nullptr; area = area->next_free)
      *begins++ = reinterpret_cast<void*>(area->begin.load(kRelaxed));
  }
  return BOSK_OK;
}

/// The area has so many bytes on the node, and so have all its owners unless it is coming to them.
void AreaTable::count(Area& area, uint32_t node, uint64_t bytes) {
  // By who holds the lock: no read-modify-write is needed. Sums of unsigned numbers may wrap on the way.
  const auto change = [&](std::atomic<uint64_t>& sum, uint64_t before) {
    sum.store(sum.load(kRelaxed) + bytes - before, kRelaxed);
  };
  const uint64_t before = area.bytes_on()[node].load(kRelaxed);
  area.bytes_on()[node].store(bytes, kRelaxed);
  change(on_nodes_->bytes_on()[node], before);
  for (const Attachment* a = area.first; a != nullptr && !area.coming; a = a->next_of_area)
    change(a->owner->footprint()[node], before);
}

/// Null: it is not this area any more. Inside of a read section, or with the lock.
Area* AreaTable::find_same(const AreaInfo& known) const {
  Area* area = find_begin(known.begin);
  const bool same = area != nullptr && area->serial.load(kRelaxed) == known.serial &&
                    area->end.load(kRelaxed) == known.end;
  return same ? area : nullptr;
}

void AreaTable::set_pages(const AreaInfo& known, const uint64_t* bytes_on, NodeIndex node,
                          Placement placement) {
  Locked locked(*this);
  Area* area = find_same(known);
  if (area == nullptr) return;
  Writing writing(*this);
  area->node.store(node, kRelaxed);
  area->placement.store(placement, kRelaxed);
  for (uint32_t i = 0; i < nodes_.count(); ++i) count(*area, i, bytes_on[i]);
}

void AreaTable::set_bytes(const AreaInfo& known, const uint64_t* bytes_on) {
  Locked locked(*this);
  Area* area = find_same(known);
  if (area == nullptr) return;
  Writing writing(*this);
  for (uint32_t i = 0; i < nodes_.count(); ++i) count(*area, i, bytes_on[i]);
}

void AreaTable::set_coming(const AreaInfo& known, bool coming) {
  Locked locked(*this);
  Area* area = find_same(known);
  if (area == nullptr || area->coming == coming) return;
  Writing writing(*this);
  area->coming = coming;
  for (const Attachment* a = area->first; a != nullptr; a = a->next_of_area)
    change_footprint(*a->owner, *area, coming);
}

}  // namespace bosk::memory
