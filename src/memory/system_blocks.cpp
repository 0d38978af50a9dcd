// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// malloc with a header.
#include "memory/system_blocks.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/syscalls.h"

// What glibc calls its own, for those who put another malloc in front of it.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void __libc_free(void* block);
}

namespace bosk::memory {
namespace {

constexpr size_t kAlignment = 16;

struct alignas(kAlignment) Header {
  size_t bytes;
  uint64_t in_use;  ///< kInUse ^ address, with Flags
};
constexpr uint64_t kInUse = 0x626f736b6d616c6c;

/// In the last bits of the mark.
enum Flags : uint64_t {
  kOfGlibc = 1,  ///< not of malloc, which may be the program's
  kAligned = 2,  ///< the word before the header is the address that malloc gave
  kAllFlags = 3,
};
static_assert((kInUse & kAllFlags) == 0);

constinit thread_local bool asking = false;

uint64_t mark_of(const void* block) { return kInUse ^ reinterpret_cast<uintptr_t>(block); }

/// What cannot be read is mapped perhaps (a guard page, the part of a heap that is only reserved), but no header.
/// The kernel reads a set of signals there before it finds that it is asked to do nothing with it.
bool can_be_read(uintptr_t at) {
  constexpr long kNothing = -1;
  return base::raw_syscall(SYS_rt_sigprocmask, kNothing, static_cast<long>(at), 0,
                           sizeof(uint64_t)) != -EFAULT;
}

/// Null: it is not the header of a block in use. Whose memory it is nobody knows, so it may not be there; nor is it
/// AddressSanitizer's business, to which what lies before a variable of the program's is not to be read.
__attribute__((no_sanitize("address"))) Header* header_of(const void* block) {
  const auto at = reinterpret_cast<uintptr_t>(block);
  // The mark of it is read first: no set lies at 0.
  if (at % alignof(Header) != 0 || at < sizeof(Header) || !can_be_read(at - sizeof(uint64_t)))
    return nullptr;
  Header* header = static_cast<Header*>(const_cast<void*>(block)) - 1;
  return (header->in_use & ~kAllFlags) == mark_of(block) ? header : nullptr;
}

}  // namespace

void* system_allocate(size_t bytes, size_t alignment, bool zeroed) {
  const bool aligned = alignment > kAlignment;
  size_t total;
  if (__builtin_add_overflow(bytes, aligned ? alignment + 2 * sizeof(Header) : sizeof(Header),
                             &total))
    return nullptr;
  const bool of_glibc = asking;
  void* start;
  if (of_glibc) {
    start = zeroed ? __libc_calloc(1, total) : __libc_malloc(total);
  } else {
    asking = true;
    start = zeroed ? calloc(1, total) : malloc(total);
    asking = false;
  }
  if (start == nullptr) return nullptr;
  auto at = reinterpret_cast<uintptr_t>(start) + sizeof(Header);
  if (aligned) at = (at + sizeof(Header) + alignment - 1) & ~(alignment - 1);
  auto* block = reinterpret_cast<void*>(at);
  auto* header = static_cast<Header*>(block) - 1;
  if (aligned) reinterpret_cast<void**>(header)[-1] = start;
  *header = {bytes, mark_of(block)};
  if (of_glibc) header->in_use |= kOfGlibc;
  if (aligned) header->in_use |= kAligned;
  return block;
}

bool system_free(void* block) {
  Header* header = header_of(block);
  if (header == nullptr) return false;
  void* const start =
      (header->in_use & kAligned) != 0 ? reinterpret_cast<void**>(header)[-1] : header;
  const bool of_glibc = (header->in_use & kOfGlibc) != 0;
  header->in_use = 0;
  if (of_glibc)
    __libc_free(start);
  else
    free(start);
  return true;
}

bool system_size(const void* block, size_t* bytes) {
  const Header* header = header_of(block);
  if (header == nullptr) return false;
  *bytes = header->bytes;
  return true;
}

}  // namespace bosk::memory
