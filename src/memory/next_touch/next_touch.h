// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Next-touch: marked pages go to the NUMA node of whoever touches them next. Facade of this folder; the
// rules and why nothing is lost: docs/next-touch.md. Knows nothing of threads, teams or areas.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::memory {

/// How marked pages are noticed and brought.
enum class NextTouchBackend : uint8_t {
  kAuto,        ///< what is allowed and fits the request
  kUffd,        ///< userfaultfd, the faulting thread resolves (SIGBUS)
  kUffdThread,  ///< userfaultfd, a thread of ours resolves: system calls work; needs privileges
  kSigsegv,     ///< mprotect and move_pages
  kKernel,      ///< our kernel patch
};
constexpr uint32_t kNextTouchBackends = 5;

struct NextTouchOptions {
  NextTouchBackend backend = NextTouchBackend::kAuto;
  /// Reads leave pages where they are, and marked; the next write takes them along.
  bool on_write = false;
  /// System calls must work on the pages while they are marked. Without it the caller vouches that the
  /// program has agreed to EFAULT (docs/next-touch.md): areas that it registered itself.
  bool calls_must_work = false;
  /// Pages brought by one touch: 0: adapts from 1 to 512 to how the pages are touched; else always so
  /// many, at most 512.
  uint32_t window = 0;
  /// What belongs together and never is brought in parts: pages, 0 or 1: nothing; at most 512. Counted
  /// from the start of each 2 MiB of addresses.
  uint32_t granularity = 0;
};

/// What the functions return: 0, or why not. Nothing has changed then, unless the function says so.
enum NextTouchError : int {
  kNextTouchOk = 0,
  kNextTouchBadRange = -1,   ///< null, wraps around, larger than can be
  kNextTouchNotMapped = -2,  ///< a part is not mapped
  kNextTouchShared = -3,     ///< a shared mapping: other processes use the pages, too
  kNextTouchFile = -4,      ///< a kind of mapping that this backend cannot take (files, huge pages)
  kNextTouchLocked = -5,    ///< mlock(2) promises that touching does not wait
  kNextTouchStack = -6,     ///< the stack of the main thread, or the page the caller stands on
  kNextTouchPolicy = -7,    ///< mbind(2) has said where the pages are, whoever touches them
  kNextTouchInUse = -8,     ///< another userfaultfd watches the range
  kNextTouchNoMemory = -9,  ///< no memory, or no more mappings (vm.max_map_count)
  kNextTouchNoBackend = -10,    ///< no backend that does this is allowed here
  kNextTouchUnsupported = -11,  ///< the backend cannot do this
  kNextTouchClosed = -12        ///< nothing may be done in a part of it (PROT_NONE)
};
/// One line, constant. Never null.
const char* next_touch_error_text(int error);

/// The pages that lie wholly inside are marked; what was marked before may be marked again, touched
/// or not. A failure in the middle (kNextTouchNoMemory) leaves some marked: that is a hint lost. Any
/// thread, with preemption on. The memory stays as it is until the marks are gone: who frees, resizes
/// or discards it cancels first.
int next_touch_mark(void* begin, size_t bytes, const NextTouchOptions& options);

/// For who marks memory that its owner may give back at any time. `ask`: is it still there? It is called where no mark can begin or
/// end, and must wait for nobody. Whoever gives memory back first sees to it that the answer is no, then has a full fence, then
/// cancels if next_touch_anywhere(), and only then lets the memory go.
struct StillThere {
  bool (*ask)(const void* context);
  const void* context;
};
/// kNextTouchNotMapped: it is not, and nothing is marked.
int next_touch_mark_if(void* begin, size_t bytes, const NextTouchOptions& options,
                       const StillThere& there);

/// Would such a mark be refused? Changes nothing. `any_policy`: whatever mbind(2) has said.
int next_touch_check(void* begin, size_t bytes, const NextTouchOptions& options, bool any_policy);

struct NextTouchState {
  uint64_t pages;            ///< whole pages in the range
  uint64_t marked;           ///< of these, marked and not yet brought
  NextTouchBackend backend;  ///< of the first marked page; kAuto: none is marked
  bool on_write;
};
int next_touch_query(const void* begin, size_t bytes, NextTouchState* state);

/// The page at the address.
struct NextTouchPage {
  bool marked;
  bool on_write;
  int node;  ///< if it is marked: that its data are on, as Linux has it; negative: on none, or not known
};
NextTouchPage next_touch_look_at(const void* address);

/// Marks are gone, data are where they were. Pages that are not marked are left alone.
int next_touch_cancel(void* begin, size_t bytes);

/// Are there marks, of any memory, or is somebody about to make some?
bool next_touch_anywhere();

/// While there are marks that need a handler of ours: puts it in front of one that the program has installed since. If it
/// cannot, all marks are cancelled. Cheap where there are none. Any thread, not in a handler.
void next_touch_keep_handlers();

/// Where touchers belong who are only passing by: asked by each touch, in the handler of its signal; kUffdThread has none and does not ask. A node as Linux has it;
/// topology::kNone: where they are. Not given: that for all.
void next_touch_goes_by(uint32_t (*node_of_toucher)());

/// Gives back the pages that are kept for exchanges between nodes (reserve.h).
void next_touch_trim();

/// Cancels everything, and next_touch_trim(): before a fork (by itself), and before the library is paused.
void next_touch_resolve_all();

/// Is the backend allowed here? Asks the kernel once.
bool next_touch_available(NextTouchBackend backend);
/// "auto", "uffd", "uffd-thread", "sigsegv", "kernel".
const char* next_touch_backend_name(NextTouchBackend backend);
bool next_touch_parse_backend(const char* word, NextTouchBackend* backend);

/// Counts since the start of the process. All are pages but the last three.
struct NextTouchStatistics {
  uint64_t marked;     ///< also again
  uint64_t moved;      ///< brought to the node of the toucher
  uint64_t local;      ///< were there already
  uint64_t stayed;     ///< left where they were: policy or cpuset forbid it, pinned
  uint64_t no_room;    ///< left where they were: the node is full
  uint64_t absent;     ///< nothing was there: the first touch decides
  uint64_t cancelled;  ///< by cancel, fork, resolve_all
  uint64_t lost;       ///< marks whose memory was unmapped under them
  uint64_t faults;     ///< touches that met a mark
  uint64_t late;       ///< touches that met one which somebody else had just resolved
  uint64_t chained;    ///< faults that were not ours and went to the program's handler
  uint64_t exchanged;  ///< of those moved, into pages that others had left on the node
};
NextTouchStatistics next_touch_statistics();

}  // namespace bosk::memory
