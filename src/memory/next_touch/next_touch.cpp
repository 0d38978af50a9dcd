// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The facade: arguments, choice of the backend, locks.
#include "memory/next_touch/next_touch.h"

#include "base/message.h"
#include "memory/next_touch/marking.h"
#include "memory/next_touch/reserve.h"
#include "memory/next_touch/resolve.h"
#include "memory/next_touch/signals.h"
#include "memory/next_touch/state.h"

namespace bosk::memory {
namespace {

struct Pages {
  uintptr_t begin;
  uintptr_t end;  ///< never less than `begin`
};

/// The pages that lie wholly inside.
int whole_pages(const void* begin, size_t bytes, Pages* pages) {
  const auto from = reinterpret_cast<uintptr_t>(begin);
  uintptr_t to;
  if (begin == nullptr || __builtin_add_overflow(from, bytes, &to) ||
      from > UINTPTR_MAX - base::kPage)
    return kNextTouchBadRange;
  pages->begin = (from + base::kPage - 1) & ~(base::kPage - 1);
  pages->end = to & ~(base::kPage - 1);
  if (pages->end < pages->begin) pages->end = pages->begin;
  return kNextTouchOk;
}

uint32_t at_most_a_chunk(uint32_t pages) { return pages < kChunkPages ? pages : kChunkPages; }

int choose(const NextTouchOptions& options, Choice* choice) {
  choice->options = options;
  choice->options.window = at_most_a_chunk(options.window);
  choice->options.granularity = at_most_a_chunk(options.granularity);
  choice->for_files = nullptr;
  NextTouchBackend id = options.backend;
  if (static_cast<uint32_t>(id) >= kNextTouchBackends) return kNextTouchNoBackend;
  if (id == NextTouchBackend::kAuto) {
    id = options.calls_must_work ? NextTouchBackend::kUffdThread : NextTouchBackend::kUffd;
    if (!options.calls_must_work) {
      choice->for_files = &kSigsegvBackend;
      if (!next_touch_available(id)) id = NextTouchBackend::kSigsegv;
    }
  }
  if (!next_touch_available(id)) return kNextTouchNoBackend;
  choice->preferred = backend_of(id);
  // The kernel's own is found, but marks through it come with the patch.
  if (choice->preferred == nullptr) return kNextTouchUnsupported;
  if (options.calls_must_work && !choice->preferred->calls_work) return kNextTouchUnsupported;
  return kNextTouchOk;
}

bool caller_stands_on(const Pages& pages) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here >= pages.begin && here - base::kPage < pages.end;
}

/// Calls work(begin, end, choice) for the pages of a mark.
template <typename Work>
int with_gate(void* begin, size_t bytes, const NextTouchOptions& options, Work work) {
  Pages pages;
  if (const int error = whole_pages(begin, bytes, &pages); error != kNextTouchOk) return error;
  Choice choice;
  if (const int error = choose(options, &choice); error != kNextTouchOk) return error;
  if (pages.begin == pages.end) return kNextTouchOk;
  if (caller_stands_on(pages)) return kNextTouchStack;
  const SignalsBlocked blocked;
  state.gate.lock();
  const int error = work(pages.begin, pages.end, choice);
  state.gate.unlock();
  return error;
}

}  // namespace

int next_touch_mark(void* begin, size_t bytes, const NextTouchOptions& options) {
  return with_gate(begin, bytes, options, mark_pages);
}

int next_touch_mark_if(void* begin, size_t bytes, const NextTouchOptions& options,
                       const StillThere& there) {
  // Before it is asked. seq_cst: who gives the memory back finds either this, and then waits at the gate until the mark is made and
  // cancels it, or nothing, and then is seen by `ask`.
  state.marking.fetch_add(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const int error =
      with_gate(begin, bytes, options, [&](uintptr_t from, uintptr_t to, const Choice& choice) {
        return there.ask(there.context) ? mark_pages(from, to, choice) : int{kNextTouchNotMapped};
      });
  // release: the regions, counted before, are seen by who does not see this any more.
  state.marking.fetch_sub(1, std::memory_order_release);
  return error;
}

int next_touch_check(void* begin, size_t bytes, const NextTouchOptions& options, bool any_policy) {
  return with_gate(begin, bytes, options, [&](uintptr_t from, uintptr_t to, const Choice& choice) {
    return check_pages(from, to, choice, any_policy);
  });
}

int next_touch_query(const void* begin, size_t bytes, NextTouchState* answer) {
  Pages pages;
  if (const int error = whole_pages(begin, bytes, &pages); error != kNextTouchOk) return error;
  NextTouchState found = {};
  found.pages = (pages.end - pages.begin) / base::kPage;
  {
    const SignalsBlocked blocked;
    state.gate.lock_shared();
    for (uintptr_t at = pages.begin; at < pages.end;) {
      Region* region = state.table.first_after(at);
      if (region == nullptr || region->begin >= pages.end) break;
      if (region->begin > at) at = region->begin;
      const uintptr_t chunk_end = (at & ~(kChunkBytes - 1)) + kChunkBytes;
      uintptr_t stop = region->end < pages.end ? region->end : pages.end;
      if (chunk_end < stop) stop = chunk_end;
      const uint32_t first = page_in_chunk(at);
      base::SleepingLock& lock = lock_of_chunk(at);
      lock.lock();
      const uint32_t n = region->chunk_of(at).count(
          first, first + static_cast<uint32_t>((stop - at) / base::kPage));
      lock.unlock();
      if (n != 0 && found.marked == 0) {
        found.backend = region->backend->id;
        found.on_write = region->on_write;
      }
      found.marked += n;
      at = stop;
    }
    state.gate.unlock_shared();
  }
  // Written without locks: it may itself lie on marked memory.
  *answer = found;
  return kNextTouchOk;
}

NextTouchPage next_touch_look_at(const void* address) {
  NextTouchPage found{};
  const uintptr_t at = reinterpret_cast<uintptr_t>(address) & ~(base::kPage - 1);
  if (!next_touch_anywhere()) return found;
  const SignalsBlocked blocked;
  state.gate.lock_shared();
  if (Region* region = state.table.find(at)) {
    base::SleepingLock& lock = lock_of_chunk(at);
    lock.lock();
    found.marked = region->chunk_of(at).is_marked(page_in_chunk(at));
    if (found.marked) {
      found.on_write = region->on_write;
      // Asked under the lock: whoever touches the page takes it out of its shadow under that. Backends that have one may
      // leave data in place all the same (on_write).
      nodes_of_pages(at, 1, &found.node);
      if (found.node < 0 && region->shadow != 0)
        nodes_of_pages(region->shadow_of(at), 1, &found.node);
    }
    lock.unlock();
  }
  state.gate.unlock_shared();
  return found;
}

int next_touch_cancel(void* begin, size_t bytes) {
  Pages pages;
  if (const int error = whole_pages(begin, bytes, &pages); error != kNextTouchOk) return error;
  const SignalsBlocked blocked;
  cancel_marks(pages.begin, pages.end);
  return kNextTouchOk;
}

bool next_touch_anywhere() {
  // acquire, and in this order: see next_touch_mark_if().
  return state.marking.load(std::memory_order_acquire) != 0 ||
         state.regions.load(std::memory_order_relaxed) != 0;
}

void next_touch_keep_handlers() {
  // relaxed: see state.h.
  const bool bus = state.need_bus.load(std::memory_order_relaxed) != 0;
  const bool segv = state.need_segv.load(std::memory_order_relaxed) != 0;
  if ((!bus || has_handler(SIGBUS)) && (!segv || has_handler(SIGSEGV))) return;
  const SignalsBlocked blocked;
  state.gate.lock();
  const bool kept = (!bus || keep_handler(SIGBUS)) && (!segv || keep_handler(SIGSEGV));
  state.gate.unlock();
  if (kept) return;
  // Better where they are than lost to somebody else's handler.
  cancel_marks(0, UINTPTR_MAX);
  static constinit std::atomic<bool> said{false};
  if (!said.exchange(true, std::memory_order_relaxed))
    base::say(
        "next-touch: the program has installed too many handlers of %s over bosk's; data stay where they are",
        bus ? "SIGBUS" : "SIGSEGV");
}

void next_touch_trim() {
  const SignalsBlocked blocked;
  empty_reserve();
}

void next_touch_resolve_all() {
  const SignalsBlocked blocked;
  cancel_marks(0, UINTPTR_MAX);
  empty_reserve();
}

const char* next_touch_error_text(int error) {
  switch (error) {
    case kNextTouchOk:
      return "next-touch: no error";
    case kNextTouchBadRange:
      return "next-touch: the range is null or wraps around";
    case kNextTouchNotMapped:
      return "next-touch: a part of the range is not mapped";
    case kNextTouchClosed:
      return "next-touch: a part of the range is closed to every access";
    case kNextTouchShared:
      return "next-touch: the range is a shared mapping; only private memory can be marked";
    case kNextTouchFile:
      return "next-touch: a kind of mapping that cannot be marked (a file, reserved huge pages)";
    case kNextTouchLocked:
      return "next-touch: the range is locked (mlock); unlock it first";
    case kNextTouchStack:
      return "next-touch: the range is a stack in use; arrays on the heap can be marked";
    case kNextTouchPolicy:
      return "next-touch: mbind has said where these pages are, whoever touches them";
    case kNextTouchInUse:
      return "next-touch: the program itself watches the range by a userfaultfd";
    case kNextTouchNoMemory:
      return "next-touch: no memory, or too many mappings (vm.max_map_count)";
    case kNextTouchNoBackend:
      return "next-touch: the kernel does not allow the backend that this needs";
    case kNextTouchUnsupported:
      return "next-touch: the backend cannot do this";
    default:
      return "next-touch: not an error of next-touch";
  }
}

NextTouchStatistics next_touch_statistics() {
  const Counters& c = state.counters;
  // relaxed: counts.
  const auto value = [](const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  return {value(c.marked),  value(c.moved),  value(c.local),     value(c.stayed),
          value(c.no_room), value(c.absent), value(c.cancelled), value(c.lost),
          value(c.faults),  value(c.late),   value(c.chained),   value(c.exchanged)};
}

}  // namespace bosk::memory
