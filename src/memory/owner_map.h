// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Owners by their numbers: a table of chains that doubles. The caller has a lock.
#pragma once

#include "base/pages.h"
#include "memory/area.h"

namespace bosk::memory {

class OwnerMap {
 public:
  Owner* find(OwnerId id) const {
    Owner* owner = buckets_ != nullptr ? buckets_[bucket(id)] : nullptr;
    while (owner != nullptr && owner->id != id) owner = owner->next;
    return owner;
  }
  /// It is not in it yet. False: no memory.
  bool insert(Owner* owner) {
    const bool full = buckets_ == nullptr || count_ >= size_t{1} << bits_;
    // Longer chains will do; no chains will not.
    if (full && !grow() && buckets_ == nullptr) return false;
    Owner** at = &buckets_[bucket(owner->id)];
    owner->next = *at;
    *at = owner;
    ++count_;
    return true;
  }
  void erase(Owner* owner) {
    Owner** at = &buckets_[bucket(owner->id)];
    while (*at != owner) at = &(*at)->next;
    *at = owner->next;
    --count_;
  }

 private:
  /// Fibonacci hashing: numbers of threads differ in few bits, in the middle.
  size_t bucket(OwnerId id) const { return (id * 0x9e3779b97f4a7c15u) >> (64 - bits_); }

  bool grow() {
    const unsigned bits = bits_ == 0 ? 10 : bits_ + 1;
    auto** grown = static_cast<Owner**>(base::map_pages(sizeof(Owner*) << bits));
    if (grown == nullptr) return false;
    Owner** old = buckets_;
    const size_t n = old != nullptr ? size_t{1} << bits_ : 0;
    const size_t bytes = n * sizeof(Owner*);
    buckets_ = grown;
    bits_ = bits;
    for (size_t i = 0; i < n; ++i) {
      for (Owner* owner = old[i]; owner != nullptr;) {
        Owner* next = owner->next;
        Owner** at = &grown[bucket(owner->id)];
        owner->next = *at;
        *at = owner;
        owner = next;
      }
    }
    base::unmap_pages(old, bytes);
    return true;
  }

  Owner** buckets_ = nullptr;
  size_t count_ = 0;
  unsigned bits_ = 0;
};

}  // namespace bosk::memory
