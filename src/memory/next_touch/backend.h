// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a backend of next-touch is: one table of functions. Runs of pages given to them lie in one chunk,
// whose lock is held, or the gate is held alone; all are marked, or none is.
#pragma once

#include <stdint.h>

#include "memory/next_touch/region.h"

namespace bosk::memory {

/// What became of the pages of a run.
struct Brought {
  uint32_t moved = 0;
  uint32_t local = 0;
  uint32_t stayed = 0;
  uint32_t no_room = 0;
  uint32_t absent = 0;
  uint32_t lost = 0;
  uint32_t exchanged = 0;  ///< of those moved, into a page of the reserve
  uint32_t copied = 0;     ///< of all these, those whose old page is still in the shadow
};

struct Backend {
  NextTouchBackend id;
  const char* name;
  int signal;  ///< by which it hears of touches; 0: none

  /// Can it be used here? Asked once, outside of the lock; opens what it needs.
  bool (*start)();
  /// Does it take private mappings of files?
  bool takes_files;
  /// Do system calls work on marked pages?
  bool calls_work;

  /// Before pages of this part of the region are marked, also again; of no others: where the program has unmapped what was
  /// beside them there may be somebody else's memory by now. A NextTouchError.
  int (*arm)(Region& region, uintptr_t begin, uintptr_t end);
  /// Marks pages (any number of chunks; the gate is held alone). From here to the end of the caller's
  /// turn nobody resolves. A NextTouchError; none is marked then.
  int (*set_aside)(Region& region, uintptr_t begin, uintptr_t end);
  /// Makes marked pages accessible again, on `target` if that can be. Returns how far it came: short of
  /// `end` only where there is no memory, and the caller lets the thread touch again.
  uintptr_t (*bring)(Region& region, uintptr_t begin, uintptr_t end, uint32_t target,
                     Brought* brought);
  /// The same where they were.
  uintptr_t (*put_back)(Region& region, uintptr_t begin, uintptr_t end, Brought* brought);
  /// A touch at a page of the region that is not marked. True: touching again is worth it.
  bool (*touch_unmarked)(Region& region, uintptr_t page);
  /// Is the marked run still what was marked, or has the program unmapped it?
  bool (*still_ours)(Region& region, uintptr_t begin, uintptr_t end);
  /// The old copies of these pages are not needed any more. May be null.
  void (*drop_copies)(Region& region, uintptr_t begin, uintptr_t end);
  /// Nothing is marked any more.
  void (*disarm)(Region& region);
  void (*forget_after_fork)();
};

/// Null: kAuto.
const Backend* backend_of(NextTouchBackend id);
extern const Backend kUffdBackend;
extern const Backend kUffdThreadBackend;
extern const Backend kSigsegvBackend;

/// No backend is being started.
void lock_starts_for_fork();
void unlock_starts_after_fork();
/// In a forked child, before the latter: each is started anew. False: none was in use.
bool forget_started_backends();

/// The kernel patch: is it there? Safe to ask any kernel.
bool kernel_next_touch_available();

}  // namespace bosk::memory
