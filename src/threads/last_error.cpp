// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A line for each thread whose last call failed.
#include "threads/last_error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "context/thread_errno.h"
#include "threads/api.h"

namespace bosk::threads {
namespace {

constexpr size_t kRoom = 480;
constexpr uint32_t kShelves = 128;
constexpr uint32_t kPlaces = 8;  ///< of a shelf
constexpr int kTries = 1000;

struct Place {
  uintptr_t owner = 0;
  uint64_t written = 0;  ///< when, in the shelf's own count; 0: never
  char text[kRoom] = "";
};
/// All but the lock belongs to who holds it.
struct Shelf {
  base::SpinLock lock;
  uint64_t count = 0;
  Place place[kPlaces];
};
constinit Shelf shelves[kShelves];

/// Whose call it is: of the library's threads each has a number of its own, others are told by what they run on.
uintptr_t owner_of(const sched::Thread* me) {
  const ThreadRecord* thread = running(me);
  return thread != nullptr ? ThreadTable::handle_of(thread) : reinterpret_cast<uintptr_t>(me);
}

/// The owner's shelf, locked; null: somebody else has it all the time. Preemption is off.
Shelf* lock_shelf(uintptr_t owner) {
  // Handles differ above their tag, records of threads by lines of cache.
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  static_assert(kShelves == 1u << 7);
  Shelf& shelf = shelves[uint64_t{owner} * kGolden >> 57];
  for (int i = 0; i < kTries; ++i) {
    if (shelf.lock.try_lock()) return &shelf;
    base::cpu_pause();
  }
  return nullptr;
}

/// The owner's place on it, else the one that was written longest ago.
Place& place_for(Shelf& shelf, uintptr_t owner) {
  Place* oldest = &shelf.place[0];
  for (Place& place : shelf.place) {
    if (place.owner == owner) return place;
    if (place.written < oldest->written) oldest = &place;
  }
  return *oldest;
}

/// A line that is put together piece by piece, cut where there is no more room.
class Line {
 public:
  template <typename... Values>
  void add(const char* format, Values... values) {
    const int n = snprintf(text_ + length_, kRoom - length_, format, values...);
    if (n > 0) length_ += static_cast<size_t>(n);
    if (length_ >= kRoom) length_ = kRoom - 1;
  }
  void add(const Concern& about, const char* before) {
    if (about.is_address && about.number == 0)
      add("%s%s null", before, about.kind);
    else if (about.name != nullptr)
      add("%s%s \"%.200s\"", before, about.kind, about.name);
    else if (about.is_address)
      add("%s%s %#" PRIxPTR, before, about.kind, about.number);
    else
      add("%s%s %" PRIdPTR, before, about.kind, static_cast<intptr_t>(about.number));
  }
  /// What a program's name has of control characters would make it several lines.
  void make_one() {
    for (size_t i = 0; i < length_; ++i)
      if (static_cast<unsigned char>(text_[i]) < ' ') text_[i] = ' ';
  }
  const char* text() const { return text_; }
  size_t length() const { return length_; }

 private:
  char text_[kRoom] = "";
  size_t length_ = 0;
};

}  // namespace

void note_failure(const char* function, std::initializer_list<Concern> about, const char* why) {
  const context::ErrnoKept kept;
  Line line;
  line.add("%s: ", function);
  const char* before = "";
  for (const Concern& concern : about) {
    if (concern.is_none()) continue;
    line.add(concern, before);
    before = ", ";
  }
  line.add("%s%s", before[0] != '\0' ? ": " : "", why);
  line.make_one();
  sched::Thread* me = omp::current_thread();
  {
    Inside inside(me);
    const uintptr_t owner = owner_of(me);
    if (Shelf* shelf = lock_shelf(owner)) {
      Place& place = place_for(*shelf, owner);
      place.owner = owner;
      place.written = ++shelf->count;
      memcpy(place.text, line.text(), line.length() + 1);
      shelf->lock.unlock();
    }
  }
}

size_t last_failure(char* text, size_t size) {
  text[0] = '\0';
  sched::Thread* me = context::self();
  if (me == nullptr) return 0;
  Inside inside(me);
  const uintptr_t owner = owner_of(me);
  Shelf* shelf = lock_shelf(owner);
  if (shelf == nullptr) return 0;
  size_t length = 0;
  if (const Place& place = place_for(*shelf, owner); place.owner == owner) {
    length = strlen(place.text);
    const size_t fits = length < size ? length : size - 1;
    memcpy(text, place.text, fits);
    text[fits] = '\0';
  }
  shelf->lock.unlock();
  return length;
}

}  // namespace bosk::threads
