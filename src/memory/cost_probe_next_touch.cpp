// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Marks pages, touches them, and touches them again.
#include "memory/cost_probe_next_touch.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/pages.h"
#include "base/syscalls.h"
#include "memory/cost_probe.h"
#include "memory/cost_probe_access.h"
#include "memory/next_touch/next_touch.h"

namespace bosk::memory {
namespace {

constexpr int kRounds = 3;

/// ns of going over the pages once.
double touch(volatile char* memory, size_t pages) {
  const double start = probe_now();
  for (size_t i = 0; i < pages; ++i) memory[i * base::kPage] = memory[i * base::kPage] + 1;
  return (probe_now() - start) * 1e9;
}

struct Times {
  double mark = 0;   ///< ns; 0: it does not work
  double touch = 0;  ///< ns more than touching takes
};

/// The best of a few: what disturbs makes it worse, never better.
Times time_pages(int kernel_node, size_t pages) {
  Times best;
  const size_t bytes = pages * base::kPage;
  for (int round = 0; round < kRounds; ++round) {
    // Pages that have come are no longer on the node: others each time.
    void* memory = map_on_node(bytes, kernel_node, false);
    if (memory == nullptr) return {};
    // They are there; what is bound stays.
    base::raw_syscall(SYS_mbind, base::address_of(memory), static_cast<long>(bytes), MPOL_DEFAULT,
                      0, 0, 0);
    const double start = probe_now();
    const bool marked = next_touch_mark(memory, bytes, {}) == kNextTouchOk;
    const double mark = (probe_now() - start) * 1e9;
    if (marked) {
      const double first = touch(static_cast<char*>(memory), pages);
      const double more = first - touch(static_cast<char*>(memory), pages);
      if (best.mark == 0 || mark < best.mark) best.mark = std::max(mark, 1.0);
      if (best.touch == 0 || more < best.touch) best.touch = std::max(more, 1.0);
      next_touch_cancel(memory, bytes);
    }
    unmap_from_node(memory, bytes);
    if (!marked) return {};
  }
  return best;
}

}  // namespace

bool measure_next_touch(int kernel_node, size_t most_pages, NextTouchCost* cost) {
  double x[24];
  double y[24];
  uint32_t count = 0;
  double last_touch = 0;
  for (size_t pages = 1; count < 24; pages = std::min(pages * 4, most_pages)) {
    const Times took = time_pages(kernel_node, pages);
    if (took.mark <= 0) break;
    x[count] = static_cast<double>(pages);
    y[count] = took.mark;
    ++count;
    // Of the largest group: the first pages of a row come one by one.
    last_touch = took.touch / static_cast<double>(pages);
    if (pages >= most_pages) break;
  }
  if (count < 2) return false;
  const Line line = fit_line(x, y, count, 1);
  const auto measured = [](double ns) {
    return Figure{static_cast<float>(ns), CostSource::kMeasured};
  };
  *cost = {measured(line.fixed), measured(line.each), measured(std::max(last_touch, 1.0))};
  return true;
}

}  // namespace bosk::memory
