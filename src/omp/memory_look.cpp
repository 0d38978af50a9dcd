// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/memory_look.h"

#include <algorithm>

#include "base/read_text.h"
#include "sched/clock.h"

namespace bosk::omp {
namespace {

constexpr uint64_t kFirstNs = 100'000'000;
constexpr uint64_t kPauseOfCost = 100;

/// A line that is longer than the buffer names a file, at its beginning, and is cut there.
template <typename Body>
void for_each_line(const char* path, Body body) {
  const long fd =
      base::raw_syscall(SYS_openat, AT_FDCWD, base::address_of(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char text[8192];
  size_t kept = 0;
  for (;;) {
    const long n = base::raw_syscall(SYS_read, fd, base::address_of(&text[kept]),
                                     static_cast<long>(sizeof text - 1 - kept));
    if (n <= 0) break;
    const size_t size = kept + static_cast<size_t>(n);
    text[size] = '\0';
    char* line = text;
    while (char* end = strchr(line, '\n')) {
      *end = '\0';
      body(line);
      line = end + 1;
    }
    kept = static_cast<size_t>(text + size - line);
    if (kept == sizeof text - 1) kept = 0;
    memmove(text, line, kept);
  }
  base::raw_syscall(SYS_close, fd);
}

bool has_several_nodes() {
  char text[256];
  return base::read_text("/sys/devices/system/node/has_memory", text) &&
         strpbrk(text, ",-") != nullptr;
}

}  // namespace

void add_numa_line(const char* line, OwnMemory* memory) {
  if (strstr(line, " anon=") == nullptr) return;
  uint64_t page_bytes = 4096;
  if (const char* size = strstr(line, " kernelpagesize_kB="))
    page_bytes = strtoull(size + strlen(" kernelpagesize_kB="), nullptr, 10) << 10;
  // Names have no blanks: they are written as \040.
  for (const char* at = strstr(line, " N"); at != nullptr; at = strstr(at, " N")) {
    at += strlen(" N");
    char* end;
    const uint64_t node = strtoull(at, &end, 10);
    if (end == at || *end != '=') continue;
    const auto index = static_cast<uint32_t>(std::min<uint64_t>(node, OwnMemory::kNodes - 1));
    memory->of_node[index] += strtoull(end + 1, nullptr, 10) * page_bytes;
    memory->nodes = std::max(memory->nodes, index + 1);
  }
}

void MemoryLook::look(uint64_t began, uint64_t now, bool is_end) {
  if (!is_end && now < std::max(next_, began + kFirstNs)) return;
  char text[4096];
  OwnMemory memory;
  if (base::read_text("/proc/self/smaps_rollup", text)) {
    memory.all = base::amount_of(text, "\nAnonymous:", 0);
    memory.huge = base::amount_of(text, "\nAnonHugePages:", 0);
  }
  if (memory.all > most_.all) {
    if (has_several_nodes())
      for_each_line("/proc/self/numa_maps",
                    [&](const char* line) { add_numa_line(line, &memory); });
    most_ = memory;
  }
  const uint64_t end = sched::clock_now();
  next_ = end + std::max(end - began, kPauseOfCost * (end - now));
}

}  // namespace bosk::omp
