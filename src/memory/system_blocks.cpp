// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// malloc with 16 bytes more.
#include "memory/system_blocks.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/syscalls.h"

namespace bosk::memory {
namespace {

struct alignas(16) Header {
  size_t bytes;
  uint64_t in_use;  ///< kInUse ^ address
};
constexpr uint64_t kInUse = 0x626f736b6d616c6c;

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
  return header->in_use == mark_of(block) ? header : nullptr;
}

}  // namespace

void* system_allocate(size_t bytes, bool zeroed) {
  if (asking) return nullptr;
  asking = true;
  const size_t total = bytes + sizeof(Header);
  auto* header = static_cast<Header*>(zeroed ? calloc(1, total) : malloc(total));
  asking = false;
  if (header == nullptr) return nullptr;
  *header = {bytes, mark_of(header + 1)};
  return header + 1;
}

bool system_free(void* block) {
  Header* header = header_of(block);
  if (header == nullptr) return false;
  header->in_use = 0;
  free(header);
  return true;
}

bool system_size(const void* block, size_t* bytes) {
  const Header* header = header_of(block);
  if (header == nullptr) return false;
  *bytes = header->bytes;
  return true;
}

}  // namespace bosk::memory
