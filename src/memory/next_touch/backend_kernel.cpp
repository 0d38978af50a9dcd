// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel patch: is it there? madvise(2) with the advice that the patch brings. Never 12, which the
// first patches had taken: Linux has given it another meaning (MADV_MERGEABLE).
#include <errno.h>
#include <sys/mman.h>

#include "memory/next_touch/backend.h"

namespace bosk::memory {
namespace {

constexpr int kAdvice = 200;

long advise(void* page, int advice) {
  return base::raw_syscall(SYS_madvise, base::address_of(page), base::kPage, advice);
}

}  // namespace

bool kernel_next_touch_available() {
  // A page of our own, so that whatever the advice may mean elsewhere happens to nobody's data. Its
  // neighbours must be refused: there are kernels and sandboxes that take any advice and do nothing.
  auto* page = static_cast<char*>(base::map_pages(base::kPage));
  if (page == nullptr) return false;
  *page = 1;
  const bool there = advise(page, kAdvice) == 0 && advise(page, kAdvice - 1) == -EINVAL &&
                     advise(page, kAdvice + 1) == -EINVAL &&
                     *static_cast<volatile char*>(page) == 1;
  base::unmap_pages(page, base::kPage);
  return there;
}

}  // namespace bosk::memory
