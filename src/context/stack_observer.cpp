// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Does the program ask where its threads' stacks are? (Conservative collectors and sanitizers do.)
#include <gnu/libc-version.h>
#include <string.h>

#include <atomic>

#include "base/cpu.h"
#include "base/loader.h"
#include "context/observers.h"

namespace bosk::context {
namespace {

struct Search {
  uint64_t loads = 0;
  bool first = true;
  bool found = false;
};

constinit std::atomic<uint64_t> loads_seen{0};
constinit std::atomic<uint64_t> looked_at{0};
constinit std::atomic<bool> seen{false};  // only ever rises

bool asks_for_stack(const char* symbol, void*) { return strcmp(symbol, "pthread_getattr_np") == 0; }

int look_at(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  if (search->first) {
    search->first = false;
    search->loads = ((info->dlpi_adds << 32) ^ info->dlpi_subs) | uint64_t{1} << 63;
    // acquire: and what was found there.
    if (search->loads == loads_seen.load(std::memory_order_acquire)) return 1;
  }
  const LoadedObject object{info->dlpi_name != nullptr ? info->dlpi_name : "", info->dlpi_addr,
                            info->dlpi_phdr, info->dlpi_phnum};
  // bosk and libc; the latter by a function that nobody interposes: what strcmp() belongs to may be a
  // sanitizer's run-time, which does ask.
  if (contains(object, reinterpret_cast<uintptr_t>(&look_at)) ||
      contains(object, reinterpret_cast<uintptr_t>(&gnu_get_libc_version)))
    return 0;
  search->found = for_each_import(object, asks_for_stack, nullptr) == ImportScan::kStopped;
  return search->found;
}

}  // namespace

// Several may ask first at the same time, and one who finds that somebody has looked goes by what that one has found: `seen` is written
// before all that tells of a look, and read after it. A look under way tells nothing: who comes then looks himself.
bool stacks_observable_cached(uint64_t now_cycles) {
  const uint64_t before = looked_at.load(std::memory_order_acquire);
  if (seen.load(std::memory_order_relaxed)) return true;
  if (before != 0 && now_cycles - before < 1000 * base::cycles_per_microsecond()) return false;
  if (!base::LoaderLook::is_possible()) return true;
  Search search;
  {
    const base::LoaderLook alone;
    dl_iterate_phdr(look_at, &search);
  }
  if (search.found) seen.store(true, std::memory_order_relaxed);
  // release, both: with the acquires above.
  loads_seen.store(search.loads, std::memory_order_release);
  looked_at.store(now_cycles | 1, std::memory_order_release);
  return seen.load(std::memory_order_relaxed);
}

}  // namespace bosk::context
