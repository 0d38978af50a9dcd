// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The allocator for small blocks: mimalloc, opened at run time and seen by nobody else. The library needs
// glibc only, and no malloc of the process is replaced: libmimalloc's own is not in the global scope.
//
// Why mimalloc 2 (docs/memory.md): heaps bound to an arena of memory that we give it, and 9 bytes of TLS. jemalloc
// takes 2.6 KiB of static TLS, which is more than a plug-in's loader has to spare.
#pragma once

#include <stddef.h>

namespace bosk::memory {

struct MiHeap;

/// The functions that we use, with the types they have in mimalloc 2.0 and 2.1.
struct HeapLibrary {
  void* (*heap_malloc)(MiHeap* heap, size_t size);
  void* (*heap_zalloc)(MiHeap* heap, size_t size);
  void (*free)(void* block);
  size_t (*usable_size)(const void* block);
  MiHeap* (*heap_new_in_arena)(int arena);
  bool (*manage_os_memory_ex)(void* start, size_t size, bool is_committed, bool is_large,
                              bool is_zero, int numa_node, bool exclusive, int* arena);
  void (*heap_collect)(MiHeap* heap, bool force);
};

/// Opens it. False: it is not installed, or not a version that we know. Once; on a thread with a stack of ordinary
/// size.
bool open_heap_library(HeapLibrary* library);

}  // namespace bosk::memory
