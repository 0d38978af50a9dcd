// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Opens libmimalloc.
#include "memory/heap_library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/loader.h"
namespace bosk::memory {
namespace {

struct Entry {
  const char* name;
  size_t offset;
};

constexpr Entry kEntries[] = {
    {"mi_heap_malloc", offsetof(HeapLibrary, heap_malloc)},
    {"mi_heap_zalloc", offsetof(HeapLibrary, heap_zalloc)},
    {"mi_free", offsetof(HeapLibrary, free)},
    {"mi_usable_size", offsetof(HeapLibrary, usable_size)},
    {"mi_heap_new_in_arena", offsetof(HeapLibrary, heap_new_in_arena)},
    {"mi_manage_os_memory_ex", offsetof(HeapLibrary, manage_os_memory_ex)},
    {"mi_heap_collect", offsetof(HeapLibrary, heap_collect)},
};

// Arenas came with 2.0.7; 3.x is another library.
constexpr int kOldest = 207;
constexpr int kNewest = 299;

bool fill(void* handle, HeapLibrary* library) {
  int (*version)();
  void* const asked = dlsym(handle, "mi_version");
  if (asked == nullptr) return false;
  memcpy(&version, &asked, sizeof version);
  const int number = version();
  if (number < kOldest || number > kNewest) return false;
  for (const Entry& entry : kEntries) {
    void* const function = dlsym(handle, entry.name);
    if (function == nullptr) return false;
    memcpy(reinterpret_cast<char*>(library) + entry.offset, &function, sizeof function);
  }
  return true;
}

}  // namespace

bool open_heap_library(HeapLibrary* library) {
#if defined(BOSK_TSAN) || defined(BOSK_ASAN)
  // They know what malloc does, and nothing of it.
  (void)library;
  return false;
#else
  constexpr const char* kFiles[] = {"libmimalloc.so.2.0", "libmimalloc.so.2"};
  for (const char* file : kFiles) {
    const char* why = nullptr;
    void* handle = base::open_library(file, RTLD_NOW | RTLD_LOCAL, &why);
    if (handle == nullptr) continue;
    if (fill(handle, library)) return true;
    dlclose(handle);
  }
  return false;
#endif
}

}  // namespace bosk::memory
