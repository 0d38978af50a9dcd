// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Imports and TLS segment of a loaded ELF object.
#include "context/loaded_object.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "base/syscalls.h"

namespace bosk::context {
namespace {

// 32-bit words on both architectures that we know.
using HashWord = uint32_t;

struct DynamicTables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  size_t strings_size = 0;
  const HashWord* sysv_hash = nullptr;
  const HashWord* gnu_hash = nullptr;
  const ElfW(Half) * versions = nullptr;
  const ElfW(Rela) * relocations[2] = {};
  size_t relocation_bytes[2] = {};
};

/// The loader writes absolute addresses into most dynamic segments, but leaves the kernel's vDSO
/// (read-only) with offsets. Null: neither reading falls into the object.
template <typename T>
const T* mapped(const LoadedObject& object, uintptr_t value) {
  if (contains(object, value)) return reinterpret_cast<const T*>(value);
  if (contains(object, object.base + value)) return reinterpret_cast<const T*>(object.base + value);
  return nullptr;
}

DynamicTables read_tables(const LoadedObject& object, const ElfW(Dyn) * dynamic) {
  DynamicTables tables;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t value = dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        tables.symbols = mapped<ElfW(Sym)>(object, value);
        break;
      case DT_STRTAB:
        tables.strings = mapped<char>(object, value);
        break;
      case DT_STRSZ:
        tables.strings_size = value;
        break;
      case DT_HASH:
        tables.sysv_hash = mapped<HashWord>(object, value);
        break;
      case DT_GNU_HASH:
        tables.gnu_hash = mapped<HashWord>(object, value);
        break;
      case DT_VERSYM:
        tables.versions = mapped<ElfW(Half)>(object, value);
        break;
      case DT_RELA:
        tables.relocations[0] = mapped<ElfW(Rela)>(object, value);
        break;
      case DT_RELASZ:
        tables.relocation_bytes[0] = value;
        break;
      case DT_JMPREL:
        tables.relocations[1] = mapped<ElfW(Rela)>(object, value);
        break;
      case DT_PLTRELSZ:
        tables.relocation_bytes[1] = value;
        break;
      default:
        break;
    }
  }
  return tables;
}

/// One more than the highest symbol that a relocation names.
size_t symbols_named_by_relocations(const DynamicTables& tables) {
  size_t count = 0;
  for (int table = 0; table < 2; ++table) {
    if (tables.relocations[table] == nullptr) continue;
    const size_t entries = tables.relocation_bytes[table] / sizeof(ElfW(Rela));
    for (size_t i = 0; i < entries; ++i) {
      const size_t symbol = ELF64_R_SYM(tables.relocations[table][i].r_info);
      if (symbol >= count) count = symbol + 1;
    }
  }
  return count;
}

/// The GNU hash table does not say how many symbols there are: the last chain's end does.
size_t symbols_by_gnu_hash(const DynamicTables& tables) {
  const HashWord* table = tables.gnu_hash;
  const HashWord bucket_count = table[0];
  const HashWord first_hashed = table[1];
  const HashWord bloom_words = table[2];
  const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(table + 4);
  const auto* buckets = reinterpret_cast<const HashWord*>(bloom + bloom_words);
  const HashWord* chain = buckets + bucket_count;
  HashWord last = 0;
  for (HashWord b = 0; b < bucket_count; ++b)
    if (buckets[b] > last) last = buckets[b];
  if (last < first_hashed || last == 0) {
    // An object that exports nothing. GNU ld then says 1 for the first hashed symbol, however many
    // imports there are; an import that is used has a relocation.
    const size_t named = symbols_named_by_relocations(tables);
    return named > first_hashed ? named : first_hashed;
  }
  while ((chain[last - first_hashed] & 1) == 0) ++last;
  return size_t{last} + 1;
}

/// Asked of the kernel, by adding no bit to the word: what the page allows now. Negative: -EFAULT if it is read-only.
long try_writing(uintptr_t* word) {
  static constinit std::atomic<uint32_t> nobody_waits{0};
  return base::raw_syscall(SYS_futex, base::address_of(&nobody_waits), FUTEX_WAKE_OP_PRIVATE, 0, 0,
                           base::address_of(word), FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0));
}

const ElfW(Dyn) * dynamic_segment(const LoadedObject& object) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (size_t i = 0; i < object.header_count; ++i)
    if (object.headers[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.base + object.headers[i].p_vaddr);
  return dynamic;
}

}  // namespace

bool has_tls_segment(const LoadedObject& object) {
  for (size_t i = 0; i < object.header_count; ++i)
    if (object.headers[i].p_type == PT_TLS && object.headers[i].p_memsz != 0) return true;
  return false;
}

bool contains(const LoadedObject& object, uintptr_t address) {
  for (size_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& header = object.headers[i];
    if (header.p_type == PT_LOAD && address - (object.base + header.p_vaddr) < header.p_memsz)
      return true;
  }
  return false;
}

void* find_function(const LoadedObject& object, const char* name) {
  const ElfW(Dyn)* dynamic = dynamic_segment(object);
  if (dynamic == nullptr) return nullptr;
  const DynamicTables tables = read_tables(object, dynamic);
  if (tables.symbols == nullptr || tables.strings == nullptr || tables.gnu_hash == nullptr)
    return nullptr;
  uint32_t hash = 5381;
  for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
  const HashWord bucket_count = tables.gnu_hash[0];
  const HashWord first_hashed = tables.gnu_hash[1];
  const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(tables.gnu_hash + 4);
  const auto* buckets = reinterpret_cast<const HashWord*>(bloom + tables.gnu_hash[2]);
  const HashWord* chain = buckets + bucket_count;
  if (bucket_count == 0 || buckets[hash % bucket_count] < first_hashed) return nullptr;
  for (HashWord at = buckets[hash % bucket_count];; ++at) {
    constexpr ElfW(Half) kOldVersion = 0x8000;
    const HashWord found = chain[at - first_hashed];
    const ElfW(Sym)& symbol = tables.symbols[at];
    if ((found | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
        ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        (tables.versions == nullptr || (tables.versions[at] & kOldVersion) == 0) &&
        symbol.st_name < tables.strings_size && strcmp(tables.strings + symbol.st_name, name) == 0)
      return reinterpret_cast<void*>(object.base + symbol.st_value);
    if ((found & 1) != 0) return nullptr;
  }
}

void for_each_slot(const LoadedObject& object, void (*visit)(const char*, uintptr_t*, void*),
                   void* context) {
  const ElfW(Dyn)* dynamic = dynamic_segment(object);
  if (dynamic == nullptr) return;
  const DynamicTables tables = read_tables(object, dynamic);
  if (tables.symbols == nullptr || tables.strings == nullptr) return;
  for (int table = 0; table < 2; ++table) {
    if (tables.relocations[table] == nullptr) continue;
    const size_t entries = tables.relocation_bytes[table] / sizeof(ElfW(Rela));
    for (size_t i = 0; i < entries; ++i) {
      const ElfW(Rela)& relocation = tables.relocations[table][i];
      const size_t symbol = ELF64_R_SYM(relocation.r_info);
      if (symbol == 0 || relocation.r_addend != 0) continue;
      const ElfW(Sym)& import = tables.symbols[symbol];
      const uintptr_t slot = object.base + relocation.r_offset;
      if (import.st_shndx != SHN_UNDEF || import.st_name >= tables.strings_size ||
          slot % sizeof slot != 0 || !contains(object, slot))
        continue;
      visit(tables.strings + import.st_name, reinterpret_cast<uintptr_t*>(slot), context);
    }
  }
}

bool change_slot(const LoadedObject& object, uintptr_t* slot, uintptr_t before, uintptr_t after) {
  const auto change = [&] {
    // Whole for whoever calls through it meanwhile; relaxed: what it leads to is code.
    return __atomic_compare_exchange_n(slot, &before, after, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
  };
  const long writable = try_writing(slot);
  if (writable >= 0) return change();
  if (writable != -EFAULT) return false;
  // Read-only since the loader has done with the object: never while it is still at it, in another thread.
  const auto page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t page = reinterpret_cast<uintptr_t>(slot) & ~(page_size - 1);
  for (size_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& header = object.headers[i];
    if (header.p_type != PT_GNU_RELRO || page - object.base < (header.p_vaddr & ~(page_size - 1)) ||
        page - object.base >= header.p_vaddr + header.p_memsz)
      continue;
    const auto protect = [&](int protection) {
      return base::raw_syscall(SYS_mprotect, static_cast<long>(page), static_cast<long>(page_size),
                               protection) == 0;
    };
    if (!protect(PROT_READ | PROT_WRITE)) return false;
    const bool changed = change();
    protect(PROT_READ);
    return changed;
  }
  return false;
}

ImportScan for_each_import(const LoadedObject& object, bool (*visit)(const char*, void*),
                           void* context) {
  const ElfW(Dyn)* dynamic = dynamic_segment(object);
  if (dynamic == nullptr) return ImportScan::kDone;
  const DynamicTables tables = read_tables(object, dynamic);
  if (tables.symbols == nullptr || tables.strings == nullptr) return ImportScan::kUnreadable;
  size_t count;
  if (tables.sysv_hash != nullptr)
    count = tables.sysv_hash[1];
  else if (tables.gnu_hash != nullptr)
    count = symbols_by_gnu_hash(tables);
  else
    count = symbols_named_by_relocations(tables);
  for (size_t i = 1; i < count; ++i) {
    const ElfW(Sym)& symbol = tables.symbols[i];
    if (symbol.st_shndx != SHN_UNDEF || symbol.st_name >= tables.strings_size) continue;
    if (visit(tables.strings + symbol.st_name, context)) return ImportScan::kStopped;
  }
  return ImportScan::kDone;
}

}  // namespace bosk::context
