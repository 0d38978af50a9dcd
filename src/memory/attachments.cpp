// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who works on what.
#include <bosk/error.h>
#include <string.h>

#include "memory/area_table_locked.h"

namespace bosk::memory {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

Owner* AreaTable::make_owner(OwnerId id) {
  Owner* owner = free_owners_.take();
  if (owner == nullptr) return nullptr;
  owner->id = id;
  owner->first = nullptr;
  owner->attachments = 0;
  for (uint32_t i = 0; i < nodes_.count(); ++i) owner->footprint()[i].store(0, kRelaxed);
  if (owners_.insert(owner)) return owner;
  free_owners_.give(owner);
  return nullptr;
}

void AreaTable::drop_owner(Owner* owner) {
  owners_.erase(owner);
  free_owners_.give(owner);
}

Attachment* AreaTable::find_attachment(const Area& area, const Owner& owner) {
  if (area.info.attachments <= owner.attachments) {
    for (Attachment* a = area.first; a != nullptr; a = a->next_of_area)
      if (a->owner == &owner) return a;
  } else {
    for (Attachment* a = owner.first; a != nullptr; a = a->next_of_owner)
      if (a->area == &area) return a;
  }
  return nullptr;
}

/// The area's bytes are added to what the owner has, or taken away. Sums of unsigned numbers may wrap on the way.
void AreaTable::change_footprint(Owner& owner, const Area& area, bool take) {
  for (uint32_t i = 0; i < nodes_.count(); ++i) {
    auto& sum = owner.footprint()[i];
    const uint64_t bytes = area.bytes_on()[i].load(kRelaxed);
    sum.store(take ? sum.load(kRelaxed) - bytes : sum.load(kRelaxed) + bytes, kRelaxed);
  }
}

/// The index is told by who calls this, or unlink(), if the area is in it and stays there.
void AreaTable::link(Attachment& attachment, Area& area, Owner& owner) {
  attachment.area = &area;
  attachment.owner = &owner;
  attachment.previous_of_area = nullptr;
  attachment.next_of_area = area.first;
  if (area.first != nullptr) area.first->previous_of_area = &attachment;
  area.first = &attachment;
  attachment.previous_of_owner = nullptr;
  attachment.next_of_owner = owner.first;
  if (owner.first != nullptr) owner.first->previous_of_owner = &attachment;
  owner.first = &attachment;
  ++owner.attachments;
  ++area.info.attachments;
  if (!area.is_left_out()) change_footprint(owner, area, false);
}

void AreaTable::unlink(Attachment* attachment) {
  Area& area = *attachment->area;
  Owner& owner = *attachment->owner;
  (attachment->previous_of_area != nullptr ? attachment->previous_of_area->next_of_area
                                           : area.first) = attachment->next_of_area;
  if (attachment->next_of_area != nullptr)
    attachment->next_of_area->previous_of_area = attachment->previous_of_area;
  (attachment->previous_of_owner != nullptr ? attachment->previous_of_owner->next_of_owner
                                            : owner.first) = attachment->next_of_owner;
  if (attachment->next_of_owner != nullptr)
    attachment->next_of_owner->previous_of_owner = attachment->previous_of_owner;
  --owner.attachments;
  --area.info.attachments;
  if (!area.is_left_out()) change_footprint(owner, area, true);
  attachments_.give(attachment);
}

int AreaTable::attach(uintptr_t address, OwnerId id, uint8_t use, uint32_t times, Admit admit,
                      void* context) {
  Locked locked(*this);
  Area* area = find(address);
  if (area == nullptr) return BOSK_ENOAREA;
  Owner* owner = owners_.find(id);
  const bool is_new = owner == nullptr;
  if (is_new) owner = make_owner(id);
  if (owner == nullptr) return BOSK_ENOMEM;
  Attachment* attachment = is_new ? nullptr : find_attachment(*area, *owner);
  Attachment* made = nullptr;
  int error = BOSK_OK;
  if (attachment == nullptr) {
    attachment = made = attachments_.take();
    if (made == nullptr) error = BOSK_ENOMEM;
  }
  // Last, for it may hand on the footprint.
  if (error == BOSK_OK && admit != nullptr) error = admit(context, owner->footprint());
  if (error != BOSK_OK) {
    if (made != nullptr) attachments_.give(made);
    if (is_new) drop_owner(owner);
    return error;
  }
  attachment->use = use;
  attachment->times = times;
  if (made != nullptr) {
    Writing writing(*this);
    link(*made, *area, *owner);
    index_.set(area->info);
  }
  return BOSK_OK;
}

int AreaTable::detach(uintptr_t address, OwnerId id) {
  Locked locked(*this);
  Area* area = find(address);
  if (area == nullptr) return BOSK_ENOAREA;
  const Owner* owner = owners_.find(id);
  Attachment* attachment = owner != nullptr ? find_attachment(*area, *owner) : nullptr;
  if (attachment == nullptr) return BOSK_ENOENT;
  Writing writing(*this);
  unlink(attachment);
  index_.set(area->info);
  return BOSK_OK;
}

int AreaTable::detach_all_of_area(uintptr_t address) {
  Locked locked(*this);
  Area* area = find(address);
  if (area == nullptr) return BOSK_ENOAREA;
  Writing writing(*this);
  while (area->first != nullptr) unlink(area->first);
  index_.set(area->info);
  return BOSK_OK;
}

void AreaTable::detach_all(OwnerId id) {
  Locked locked(*this);
  Owner* owner = owners_.find(id);
  if (owner == nullptr) return;
  Writing writing(*this);
  unlink_all(*owner);
}

/// In a write section.
void AreaTable::unlink_all(Owner& owner) {
  while (owner.first != nullptr) {
    const Area& area = *owner.first->area;
    unlink(owner.first);
    index_.set(area.info);
  }
}

void AreaTable::owner_gone(const std::atomic<uint64_t>* footprint) {
  Owner* owner = Owner::of_footprint(footprint);
  Owner* first = gone_.load(kRelaxed);
  do {
    owner->next_gone = first;
  } while (!gone_.compare_exchange_weak(first, owner, std::memory_order_release, kRelaxed));
}

void AreaTable::take_gone_owners() {
  if (gone_.load(kRelaxed) == nullptr) return;
  Owner* owner = gone_.exchange(nullptr, std::memory_order_acquire);
  Writing writing(*this);
  while (owner != nullptr) {
    Owner* next = owner->next_gone;
    unlink_all(*owner);
    drop_owner(owner);
    owner = next;
  }
}

void AreaTable::forget_gone_owners() {
  // relaxed: who has joined a thread has seen it go.
  if (gone_.load(kRelaxed) != nullptr) const Locked locked(*this);
}

bool AreaTable::footprint(OwnerId id, uint64_t* bytes) const {
  lock_.lock();
  Owner* owner = owners_.find(id);
  for (uint32_t i = 0; i < nodes_.count(); ++i)
    bytes[i] = owner != nullptr ? owner->footprint()[i].load(kRelaxed) : 0;
  lock_.unlock();
  return owner != nullptr;
}

uint32_t AreaTable::uses_of(OwnerId id, AreaUse* uses, uint32_t room) {
  Locked locked(*this);
  const Owner* owner = owners_.find(id);
  return owner != nullptr ? copy_uses(*owner, uses, room) : 0;
}

uint32_t AreaTable::uses_of(const std::atomic<uint64_t>* footprint, AreaUse* uses, uint32_t room) {
  Locked locked(*this);
  return copy_uses(*Owner::of_footprint(footprint), uses, room);
}

uint32_t AreaTable::copy_uses(const Owner& owner, AreaUse* uses, uint32_t room) {
  uint32_t n = 0;
  for (const Attachment* a = owner.first; a != nullptr && n < room; a = a->next_of_owner, ++n) {
    uses[n].area = a->area->info;
    uses[n].times = a->times;
    uses[n].use = a->use;
  }
  return owner.attachments;
}

}  // namespace bosk::memory
