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

/// Calls visit(symbol, slot, context) for each word of the object through which it calls a function of others, or has its address.
/// Where the function was not called yet the loader may still have to look for it: the slot then leads back into the object.
void for_each_slot(const LoadedObject& object, void (*visit)(const char*, uintptr_t*, void*),
                   void* context);

/// Writes to a slot of the object, whatever its page allows, if it has `before`. False: it has not, or cannot be written.
bool change_slot(const LoadedObject& object, uintptr_t* slot, uintptr_t before, uintptr_t after);

/// The function that the object offers under this name, of several versions the one that new programs get; null: none.
void* find_function(const LoadedObject& object, const char* name);

}  // namespace bosk::context
