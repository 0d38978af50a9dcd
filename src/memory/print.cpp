// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints areas a handful at a time, so that nobody waits for the reader of a pipe.
#include "memory/print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/syscalls.h"
#include "memory/node_stats.h"

namespace bosk::memory {
namespace {

const char* name_of(Placement placement) {
  switch (placement) {
    case Placement::kOnNode:
      return "on node";
    case Placement::kLeastLoaded:
      return "least loaded";
    case Placement::kInterleaved:
      return "interleaved";
    case Placement::kWeighted:
      return "weighted";
    case Placement::kFirstTouch:
      return "first touch";
    case Placement::kNextTouch:
      return "next touch";
    default:
      return "default";
  }
}

bool write_all(int fd, const char* text, size_t length) {
  while (length != 0) {
    const long n =
        base::raw_syscall(SYS_write, fd, base::address_of(text), static_cast<long>(length));
    if (n == -EINTR) continue;
    if (n <= 0) return false;
    text += n;
    length -= static_cast<size_t>(n);
  }
  return true;
}

bool print_area(int fd, const AreaInfo& area) {
  char line[160];
  int n =
      snprintf(line, sizeof line, "area %#" PRIxPTR " %zu bytes, %s, %s", area.begin, area.bytes(),
               area.is_own() ? "allocated" : "registered", name_of(area.placement));
  const auto end = [&] { return line + n; };
  const auto room = [&] { return sizeof line - static_cast<size_t>(n); };
  if (area.node != kNone) n += snprintf(end(), room(), ", node %u", area.node);
  n += snprintf(end(), room(), ", attached to %u\n", area.attachments);
  return write_all(fd, line, static_cast<size_t>(n));
}

/// In KiB, or a question mark.
void put_amount(char (&text)[24], uint64_t bytes) {
  if (bytes == kUnknownAmount)
    snprintf(text, sizeof text, "?");
  else
    snprintf(text, sizeof text, "%" PRIu64, bytes >> 10);
}

bool print_node(int fd, const AreaTable& areas, NodeIndex node) {
  const NodeMemory known = memory_of_node(areas.nodes(), node);
  char total[24];
  char free[24];
  put_amount(total, known.total);
  put_amount(free, known.free);
  char line[160];
  const int n = snprintf(line, sizeof line, "node %u: %s KiB, %s free, %" PRIu64 " in areas\n",
                         node, total, free, areas.bytes_on(node) >> 10);
  return write_all(fd, line, static_cast<size_t>(n));
}

}  // namespace

bool print(AreaTable& areas, int fd) {
  constexpr uint32_t kBatch = 16;
  AreaInfo batch[kBatch];
  uintptr_t from = 0;
  for (;;) {
    const uint32_t n = areas.list(from, batch, kBatch);
    for (uint32_t i = 0; i < n; ++i)
      if (!print_area(fd, batch[i])) return false;
    if (n < kBatch) break;
    from = batch[n - 1].begin + 1;
  }
  for (NodeIndex node = 0; node < areas.nodes().count(); ++node)
    if (!print_node(fd, areas, node)) return false;
  return true;
}

}  // namespace bosk::memory
