// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "abi/libc/of_libc.h"

#include <gnu/libc-version.h>
#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>

#include <atomic>

#include "base/cpu.h"
#include "base/loader.h"
#include "base/message.h"
#include "context/loaded_object.h"
#include "context/thread_errno.h"

namespace bosk::libc {
namespace {

struct Entry {
  const char* name;
  size_t offset;
};

#define BOSK_OF_LIBC(name) {#name, offsetof(LibcFunctions, name)}
constexpr Entry kEntries[] = {
    BOSK_OF_LIBC(clock_gettime),
    BOSK_OF_LIBC(clock_nanosleep),
    BOSK_OF_LIBC(getrusage),
    BOSK_OF_LIBC(inet_ntoa),
    BOSK_OF_LIBC(pthread_getaffinity_np),
    BOSK_OF_LIBC(pthread_getname_np),
    BOSK_OF_LIBC(pthread_getschedparam),
    BOSK_OF_LIBC(pthread_setaffinity_np),
    BOSK_OF_LIBC(pthread_setname_np),
    BOSK_OF_LIBC(pthread_setschedparam),
    BOSK_OF_LIBC(pthread_setschedprio),
    BOSK_OF_LIBC(strerror),
    BOSK_OF_LIBC(strerror_l),
    BOSK_OF_LIBC(strsignal),
};
#undef BOSK_OF_LIBC
static_assert(sizeof kEntries / sizeof *kEntries == sizeof(LibcFunctions) / sizeof(void*));

// Written by whoever comes first: the library's constructor, or one of another library's that calls one of them before. Several may, and
// write the same.
constinit LibcFunctions functions{};
constinit std::atomic<bool> are_found{false};

/// Where the search for what stands behind ours is.
struct Search {
  uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  bool behind_ours = false;
};

void take_from(const context::LoadedObject& object) {
  for (const Entry& entry : kEntries) {
    auto* to = reinterpret_cast<void**>(reinterpret_cast<char*>(&functions) + entry.offset);
    if (__atomic_load_n(to, __ATOMIC_RELAXED) != nullptr) continue;
    if (void* found = context::find_function(object, entry.name))
      __atomic_store_n(to, found, __ATOMIC_RELAXED);
  }
}

/// Not by dlsym(): a call of that, also one that finds, takes from the program what its last failed dlopen() has left for dlerror().
/// Objects come in the order in which the loader looks into them, so what another library preloads behind ours is found before libc's, as
/// its own callers would.
int look_in(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  const context::LoadedObject object{"", info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
  if (context::contains(object, reinterpret_cast<uintptr_t>(&gnu_get_libc_version))) {
    take_from(object);
    return 1;
  }
  if (search->behind_ours && !context::contains(object, search->vdso)) take_from(object);
  search->behind_ours |= context::contains(object, reinterpret_cast<uintptr_t>(&kEntries));
  return 0;
}

[[gnu::constructor]] void find_all() {
  const context::ErrnoKept kept;
  const base::LoaderLook alone;
  Search search;
  dl_iterate_phdr(look_in, &search);
  for (const Entry& entry : kEntries)
    if (*reinterpret_cast<void**>(reinterpret_cast<char*>(&functions) + entry.offset) == nullptr)
      base::gomp_fatal("libc has no %s", entry.name);
  // release pairs with the acquire below: who finds it done finds all of them.
  are_found.store(true, std::memory_order_release);
}

}  // namespace

const LibcFunctions& of_libc() {
  if (BOSK_UNLIKELY(!are_found.load(std::memory_order_acquire))) find_all();
  return functions;
}

}  // namespace bosk::libc
