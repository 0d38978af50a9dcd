// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is kept of places in the nest (place_key()), by the initial thread that everything there is opened for. Found without a lock;
// entries are added in front of their bucket and stay until the book is thrown away.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include <atomic>
#include <new>

namespace bosk::omp {

/// `Entry` has `uint64_t key` and `Entry* next`.
template <typename Entry>
struct PlaceBook {
  static constexpr uint32_t kBuckets = 64;
  std::atomic<Entry*> bucket[kBuckets] = {};

  /// The entry of that key of which `is(entry)`; null: there is none.
  template <typename Is>
  Entry* find(uint64_t key, Is is) const {
    return find_from(bucket[key % kBuckets].load(std::memory_order_acquire), key, is);
  }
  Entry* find(uint64_t key) const {
    return find(key, [](const Entry&) { return true; });
  }

  /// Adds what `make()` allocates if there is none. Several may come for the same place at once: all get the same entry, and those
  /// that came too late free() theirs by `drop`. Null: make() had no memory. `added`: it was made by this call.
  template <typename Is, typename Make, typename Drop>
  Entry* find_or_add(uint64_t key, Is is, Make make, Drop drop, bool* added) {
    *added = false;
    std::atomic<Entry*>& first_of = bucket[key % kBuckets];
    Entry* first = first_of.load(std::memory_order_acquire);
    if (Entry* found = find_from(first, key, is)) return found;
    Entry* made = make();
    if (made == nullptr) return nullptr;
    do {
      if (Entry* found = find_from(first, key, is)) {
        drop(made);
        return found;
      }
      made->next = first;
      // release: the object; acquire: those that others put in front meanwhile.
    } while (!first_of.compare_exchange_weak(first, made, std::memory_order_acq_rel,
                                             std::memory_order_acquire));
    *added = true;
    return made;
  }

  /// `visit(entry)` may free it if nobody else reads the book any more.
  template <typename Visit>
  void visit(Visit visit) const {
    for (const std::atomic<Entry*>& first : bucket)
      for (Entry* at = first.load(std::memory_order_acquire); at != nullptr;) {
        Entry* next = at->next;
        visit(at);
        at = next;
      }
  }

 private:
  template <typename Is>
  static Entry* find_from(Entry* first, uint64_t key, Is is) {
    while (first != nullptr && (first->key != key || !is(*first))) first = first->next;
    return first;
  }
};

/// The book that is kept there; made if there is none. Null: no memory. `made`: by this call.
template <typename Book>
Book* book_in(std::atomic<Book*>& where, bool* made) {
  *made = false;
  // acquire pairs with the release below: the buckets are empty before anybody sees them.
  Book* book = where.load(std::memory_order_acquire);
  if (book != nullptr) return book;
  void* memory = malloc(sizeof(Book));
  if (memory == nullptr) return nullptr;
  auto* fresh = new (memory) Book;
  if (where.compare_exchange_strong(book, fresh, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
    *made = true;
    return fresh;
  }
  free(fresh);
  return book;
}

}  // namespace bosk::omp
