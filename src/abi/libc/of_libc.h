// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of libc's that the library has, too, as libc has them.
#pragma once

#include <gnu/libc-version.h>
#include <link.h>

#include <atomic>

#include "base/cpu.h"
#include "base/loader_looks.h"
#include "base/message.h"
#include "context/loaded_object.h"
#include "context/thread_errno.h"

namespace bosk::libc {

struct Search {
  const char* name;
  void* found;
};

inline int look_in(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  const context::LoadedObject object{"", info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
  if (!context::contains(object, reinterpret_cast<uintptr_t>(&gnu_get_libc_version))) return 0;
  search->found = context::find_function(object, search->name);
  return 1;
}

/// libc's own. Not by dlsym(): a call of that, also one that finds, takes from the program what its last failed
/// dlopen() has left for dlerror().
template <typename Function>
Function of_libc(std::atomic<Function>& cache, const char* name) {
  // relaxed: the pointer is all there is to see.
  Function known = cache.load(std::memory_order_relaxed);
  if (BOSK_LIKELY(known != nullptr)) return known;
  const context::ErrnoKept kept;
  Search search{name, nullptr};
  {
    const base::LoaderLook alone;
    dl_iterate_phdr(look_in, &search);
  }
  if (search.found == nullptr) base::gomp_fatal("libc has no %s", name);
  known = reinterpret_cast<Function>(search.found);
  cache.store(known, std::memory_order_relaxed);
  return known;
}

}  // namespace bosk::libc
