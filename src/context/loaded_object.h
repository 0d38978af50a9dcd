// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads what a loaded ELF object imports and whether it has a TLS segment, from its mapped image.
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

namespace bosk::context {

/// An object as dl_iterate_phdr shows it; valid as long as the loader's lock is held.
struct LoadedObject {
  const char* name;  ///< path, "" for the main program
  uintptr_t base;    ///< load address
  const ElfW(Phdr) * headers;
  size_t header_count;
};

/// The object has a TLS segment that is not empty.
bool has_tls_segment(const LoadedObject& object);

/// The object contains `address`.
bool contains(const LoadedObject& object, uintptr_t address);

enum class ImportScan : uint8_t {
  kDone,        ///< every import was visited
  kStopped,     ///< a visit returned true
  kUnreadable,  ///< the object has a symbol table whose size or place cannot be told
};

/// Calls visit(symbol, context) for every symbol that the object takes from others, without its
/// version, until one returns true. An object without a dynamic segment imports nothing.
ImportScan for_each_import(const LoadedObject& object, bool (*visit)(const char*, void*),
                           void* context);

/// Of a function that the object takes from others: false if it gets another one than `function` (its loader's scope is not the
/// process's). Where it was not called yet the loader still has to look for it: true.
bool may_get(const LoadedObject& object, const char* name, uintptr_t function);

/// The function that the object offers under this name; null: none. Not for names of which it has several versions.
void* find_function(const LoadedObject& object, const char* name);

}  // namespace bosk::context
