// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// msync and move_pages as questions.
#include "memory/page_nodes.h"

#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/syscalls.h"

namespace bosk::memory {
namespace {

/// MachineNodes of `n` pages in status[], negative where there is none. False: the kernel does not say.
bool ask(void* const* pages, uint32_t n, int* status) {
  return base::raw_syscall(SYS_move_pages, 0, n, base::address_of(pages), 0,
                           base::address_of(status), 0) == 0;
}

/// Adds what `most` pages at even distances stand for: each for the bytes from its place to the next one's. `phase` says
/// which of the pages of a place is asked for.
void ask_for_pages(const MachineNodes& nodes, uintptr_t begin, size_t bytes, size_t most,
                   uint32_t phase, uint64_t* bytes_on) {
  if (!nodes.real() || bytes == 0) return;
  const uintptr_t page = page_size();
  const uintptr_t first = begin & ~(page - 1);
  const size_t pages = (begin + bytes - first + page - 1) / page;
  const size_t looks = pages < most ? pages : most;
  const auto place_of = [&](size_t look) {
    return static_cast<size_t>(static_cast<unsigned __int128>(look) * pages / looks);
  };
  // On the caller's stack, which may be a member's.
  constexpr uint32_t kBatch = 64;
  void* at[kBatch];
  int status[kBatch];
  for (size_t look = 0; look < looks;) {
    uint32_t n = 0;
    for (; n < kBatch && look + n < looks; ++n) {
      const size_t place = place_of(look + n);
      at[n] = reinterpret_cast<void*>(first +
                                      (place + phase % (place_of(look + n + 1) - place)) * page);
    }
    if (!ask(at, n, status)) return;
    for (uint32_t i = 0; i < n; ++i, ++look) {
      if (status[i] < 0) continue;
      const NodeIndex node = nodes.from_kernel(static_cast<uint32_t>(status[i]));
      const uintptr_t from = look == 0 ? begin : first + place_of(look) * page;
      const uintptr_t to = look + 1 == looks ? begin + bytes : first + place_of(look + 1) * page;
      if (node < nodes.count()) bytes_on[node] += to - from;
    }
  }
}

}  // namespace

size_t page_size() { return getauxval(AT_PAGESZ); }

bool is_mapped(uintptr_t begin, size_t bytes) {
  const uintptr_t page = page_size();
  const uintptr_t first = begin & ~(page - 1);
  // Asynchronously it writes nothing: it has been a walk over the mappings since Linux 2.6.19.
  return base::raw_syscall(SYS_msync, static_cast<long>(first),
                           static_cast<long>(begin + bytes - first), MS_ASYNC) == 0;
}

NodeIndex node_of_page(const MachineNodes& nodes, uintptr_t address) {
  void* page = reinterpret_cast<void*>(address & ~(page_size() - 1));
  int status = -1;
  return ask(&page, 1, &status) && status >= 0 ? nodes.from_kernel(static_cast<uint32_t>(status))
                                               : kNone;
}

void look_at_pages(const MachineNodes& nodes, uintptr_t begin, size_t bytes, uint64_t* bytes_on) {
  for (uint32_t i = 0; i < nodes.count(); ++i) bytes_on[i] = 0;
  if (nodes.count() == 1) {
    bytes_on[0] = bytes;
    return;
  }
  ask_for_pages(nodes, begin, bytes, kPagesLookedAt, 0, bytes_on);
}

void sample_pages(const MachineNodes& nodes, uintptr_t begin, size_t bytes, size_t looks,
                  uint32_t phase, uint64_t* bytes_on) {
  for (uint32_t i = 0; i < nodes.count(); ++i) bytes_on[i] = 0;
  ask_for_pages(nodes, begin, bytes, looks, phase, bytes_on);
}

}  // namespace bosk::memory
