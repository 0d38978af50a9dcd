// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moves pages to other nodes: large batches of move_pages(2), by several threads where somebody lends them.
//
// A call of move_pages has a price of its own (it makes all CPUs give back the pages that they hold in lists of
// their own): 39 to 72 us, whatever it moves (measured; also Goglin 2009, section 4.2). So pages go in batches. Data
// are never at risk: a page that cannot go stays where it was, and is counted by the reason. Nobody else's pages move: a
// huge page of which only a part is to go is split first (huge_pages.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/nodes.h"

namespace bosk::memory {

/// What became of a page.
enum class PageOutcome : uint8_t {
  kMoved,
  kAlready,  ///< it was there before
  kAbsent,  ///< nobody has touched it yet, it is the shared page of zeros, or nothing is mapped there
  kRefused,  ///< pinned, locked by the kernel, shared with another process, or the node is forbidden
  kNoMemory,  ///< the node is full
  kUnsplit,  ///< a part of a huge page that cannot be split: it is locked, shared with another process, or reserved
};

/// How many pages met which fate. Where only sums are wanted, single pages that were there before, among many that were
/// not, may be counted as moved: nobody has asked about them.
struct Moved {
  uint64_t moved = 0;
  uint64_t already = 0;
  uint64_t absent = 0;
  uint64_t refused = 0;
  uint64_t no_memory = 0;
  uint64_t unsplit = 0;

  uint64_t pages() const { return moved + already + absent + refused + no_memory + unsplit; }
  /// Every page that exists is where it should be.
  bool complete() const { return refused == 0 && no_memory == 0 && unsplit == 0; }
  void count(PageOutcome outcome, uint64_t pages = 1);
  void add(const Moved& other);
  bool operator==(const Moved&) const = default;
};

/// Pages of this process that shall move: all that [begin, begin + bytes) touches.
struct Migration {
  void* begin = nullptr;
  size_t bytes = 0;
  NodeIndex node = kNoNode;          ///< where all of them go, unless `nodes` is given
  const NodeIndex* nodes = nullptr;  ///< one for each page
  PageOutcome* outcomes = nullptr;   ///< one for each page, filled in; null: not wanted
  /// The caller knows that none is there yet: of a few pages it is not asked first. One that is there all the same is counted
  /// as moved.
  bool elsewhere = false;
};

/// Moves them. Any thread, at any time, also several for the same pages; not in a signal handler (a large
/// range maps memory to work with). With preemption on or off: it calls nothing but the kernel.
Moved migrate_pages(const Migration& migration);
Moved migrate_pages(void* begin, size_t bytes, NodeIndex node);

/// How many pages the range touches.
size_t pages_of(const void* begin, size_t bytes);

/// Where each page is: the node, or kNoNode (it is absent). False: the kernel does not say.
bool locate_pages(const void* begin, size_t bytes, NodeIndex* nodes);

/// Threads for large migrations, lent by a layer that has some: `run` calls work(context) at least once, if it can
/// on threads of `node`, by at most `most` at the same time, and returns when all calls have returned. The calls
/// share out the batches among themselves, so it does not matter how many there are.
struct Crew {
  void (*run)(void* data, NodeIndex node, uint32_t most, void (*work)(void* context),
              void* context);
  void* data;
};

/// For all migrations that begin from now on; null: the caller of migrate_pages does all by itself. The crew must
/// live as long as the process.
void set_migration_crew(const Crew* crew);

/// move_pages(2) of this process: for tests, which put a kernel of their own in its place. `nodes` null: where are
/// they? As the system call: negative errno; or how many pages are left, with nothing said of them in `status`.
using MovePages = long (*)(unsigned long count, void** pages, const int* nodes, int* status);
/// Null: the kernel's own.
void set_move_pages(MovePages call);

}  // namespace bosk::memory
