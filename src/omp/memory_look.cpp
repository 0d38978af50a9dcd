// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/memory_look.h"

#include <algorithm>

#include "base/read_text.h"
#include "base/text_lines.h"
#include "sched/clock.h"

namespace bosk::omp {
namespace {

constexpr uint64_t kFirstNs = 100'000'000;
constexpr uint64_t kPauseOfCost = 100;

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
    if (has_several_nodes()) {
      base::TextLines maps("/proc/self/numa_maps");
      for (char line[4096]; maps.next(line);) add_numa_line(line, &memory);
    }
    most_ = memory;
  }
  const uint64_t end = sched::clock_now();
  next_ = end + std::max(end - began, kPauseOfCost * (end - now));
}

}  // namespace bosk::omp
