// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Thread-local data.
//
// An identity's values hang on one key of pthreads: so they go where the identity goes, and a pthread that ends
// calls the destructors. A key is its place in a table and a number that is raised when it is made and when it is
// deleted, odd while it exists: values of a deleted key keep the old number and are taken for null.
#include "threads/sync/keys.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "base/cpu.h"
#include "bosk/error.h"

namespace bosk::threads {

/// Grown by the identity that has it, read by it alone.
struct KeyValues {
  struct Value {
    uint64_t number;  ///< of the key when it was set
    void* value;
  };
  uint32_t capacity;
  Value values[];
};

namespace {

constexpr uint32_t kKeys = 1024;
constexpr uint32_t kIndexBits = 10;
static_assert(kKeys == 1u << kIndexBits);

struct Key {
  /// Somebody has the place, to make a key there or because there is one. No lock: a child that is forked while
  /// another thread makes or deletes a key loses a place, not the functions.
  std::atomic<bool> taken{false};
  std::atomic<uint64_t> number{0};                   ///< odd: it exists
  std::atomic<void (*)(void*)> destructor{nullptr};  ///< written before the number is odd
};

constinit Key keys[kKeys];
constinit std::atomic<bool> in_use{false};
constinit pthread_once_t values_once = PTHREAD_ONCE_INIT;
constinit pthread_key_t values_key{};
constinit bool has_values_key = false;

/// A key of pthreads refused ENOMEM or EAGAIN leaves none.
void run_destructors(void* values);
void make_values_key() { has_values_key = pthread_key_create(&values_key, run_destructors) == 0; }

uint32_t index_of(uint64_t key) { return static_cast<uint32_t>(key & (kKeys - 1)); }
uint64_t number_of(uint64_t key) { return key >> kIndexBits; }

/// acquire: the destructor, and whatever was done before the key was made.
bool exists(uint64_t key) {
  return (number_of(key) & 1) != 0 &&
         keys[index_of(key)].number.load(std::memory_order_acquire) == number_of(key);
}

KeyValues* values_of_identity() {
  if (!in_use.load(std::memory_order_acquire)) return nullptr;
  return static_cast<KeyValues*>(pthread_getspecific(values_key));
}

KeyValues* grow(KeyValues* old, uint32_t index) {
  uint32_t capacity = 16;
  while (capacity <= index) capacity *= 2;
  const size_t bytes = sizeof(KeyValues) + capacity * sizeof(KeyValues::Value);
  auto* grown = static_cast<KeyValues*>(realloc(old, bytes));
  if (grown == nullptr) return nullptr;
  const uint32_t had = old != nullptr ? grown->capacity : 0;
  memset(grown->values + had, 0, (capacity - had) * sizeof(KeyValues::Value));
  grown->capacity = capacity;
  // The old one may have been freed: nothing may fail from here on. The place exists, so this cannot, for keys
  // of pthreads that were made early; else the first value that an identity sets finds it out.
  if (pthread_setspecific(values_key, grown) == 0) return grown;
  if (old == nullptr) free(grown);
  return nullptr;
}

/// One round. True: something was called.
bool call_destructors() {
  bool called = false;
  for (uint32_t i = 0; i < kKeys; ++i) {
    // Looked up again each time: destructors may set values.
    KeyValues* values = values_of_identity();
    if (values == nullptr || i >= values->capacity) break;
    KeyValues::Value& slot = values->values[i];
    void* value = slot.value;
    slot.value = nullptr;
    if (value == nullptr) continue;
    const uint64_t key = slot.number << kIndexBits | i;
    if (!exists(key)) continue;
    void (*destructor)(void*) = keys[i].destructor.load(std::memory_order_acquire);
    // Deleted since, and perhaps made anew: then it is not this one's.
    if (destructor == nullptr || !exists(key)) continue;
    destructor(value);
    called = true;
  }
  return called;
}

void destroy_values() {
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds && call_destructors(); ++round) {
  }
  KeyValues* values = values_of_identity();
  if (values == nullptr) return;
  pthread_setspecific(values_key, nullptr);
  free(values);
}

/// By a pthread that ends.
void run_destructors(void* values) {
  // libc has taken them away already; destructors look at their thread's values.
  if (pthread_setspecific(values_key, values) == 0) destroy_values();
}

}  // namespace

int create_key(uint64_t* key, void (*destructor)(void*)) {
  pthread_once(&values_once, make_values_key);
  if (!has_values_key) return BOSK_EAGAIN;
  in_use.store(true, std::memory_order_release);
  for (uint32_t index = 0; index < kKeys; ++index) {
    Key& place = keys[index];
    // acquire pairs with the release in delete_key(): the number is the one that was left there.
    if (place.taken.load(std::memory_order_relaxed) ||
        place.taken.exchange(true, std::memory_order_acquire))
      continue;
    const uint64_t number = place.number.load(std::memory_order_relaxed) + 1;
    // release: who reads it finds the number of the key before gone.
    place.destructor.store(destructor, std::memory_order_release);
    place.number.store(number, std::memory_order_release);
    *key = number << kIndexBits | index;
    return 0;
  }
  return BOSK_EAGAIN;
}

int delete_key(uint64_t key) {
  if ((number_of(key) & 1) == 0) return BOSK_EINVAL;
  Key& place = keys[index_of(key)];
  uint64_t number = number_of(key);
  // relaxed: of those who delete it, one does; who makes the next one comes after `taken`.
  if (!place.number.compare_exchange_strong(number, number + 1, std::memory_order_relaxed))
    return BOSK_EINVAL;
  place.taken.store(false, std::memory_order_release);
  return 0;
}

void* value_of_key(uint64_t key) {
  const KeyValues* values = values_of_identity();
  const uint32_t index = index_of(key);
  if (values == nullptr || index >= values->capacity) return nullptr;
  const KeyValues::Value& slot = values->values[index];
  return slot.number == number_of(key) && exists(key) ? slot.value : nullptr;
}

int set_value_of_key(uint64_t key, void* value) {
  if (!exists(key)) return BOSK_EINVAL;
  const uint32_t index = index_of(key);
  KeyValues* values = values_of_identity();
  if (values == nullptr || index >= values->capacity) {
    if (value == nullptr) return 0;
    values = grow(values, index);
    if (values == nullptr) return BOSK_ENOMEM;
  }
  values->values[index] = {number_of(key), value};
  return 0;
}

void run_key_destructors() {
  if (values_of_identity() != nullptr) destroy_values();
}

KeyValues* exchange_key_values(KeyValues* values) {
  KeyValues* had = values_of_identity();
  if (had != values) pthread_setspecific(values_key, values);
  return had;
}

}  // namespace bosk::threads
