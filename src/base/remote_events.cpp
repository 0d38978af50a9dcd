// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tries the kernel's generic event, then those of processors for which it has none.
#include "base/remote_events.h"

#include <linux/perf_event.h>

#include "base/cache_counter.h"
#if defined(__x86_64__)
#include <cpuid.h>
#include <string.h>
#endif

namespace bosk::base {
namespace {

constexpr uint64_t node_reads(uint64_t result) {
  return PERF_COUNT_HW_CACHE_NODE | PERF_COUNT_HW_CACHE_OP_READ << 8 | result << 16;
}

/// Intel: reads that missed the last cache. The kernel's "access" is of any node up to Broadwell, of the own one since Skylake.
constexpr RemoteEvents kGeneric = {
    PERF_TYPE_HW_CACHE, node_reads(PERF_COUNT_HW_CACHE_RESULT_ACCESS),
    node_reads(PERF_COUNT_HW_CACHE_RESULT_MISS), "node-loads, node-load-misses"};

#if defined(__x86_64__)
/// AMD, Zen 1 to 5: event 0x43, demand fills of the first cache by where they came from; bit 3 memory of the own node,
/// bit 6 of another one. The kernel has no generic names for them.
constexpr RemoteEvents kZen = {PERF_TYPE_RAW, 0x0843, 0x4043, "demand fills from memory, by node"};

bool is_zen() {
  unsigned a;
  unsigned b;
  unsigned c;
  unsigned d;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return false;
  const unsigned words[3] = {b, d, c};
  if (memcmp(words, "AuthenticAMD", sizeof words) != 0 || __get_cpuid(1, &a, &b, &c, &d) == 0)
    return false;
  // The family and, where that is 15, the extended one.
  return ((a >> 8) & 15) == 15 && ((a >> 20) & 255) >= 0x17 - 0xf;
}
#endif

bool can_count(const RemoteEvents& events) {
  CacheCounter counter;
  if (!counter.open(events.type, events.loads, events.remote)) return false;
  counter.close();
  return true;
}

}  // namespace

bool find_remote_events(RemoteEvents* events) {
  if (can_count(kGeneric)) {
    *events = kGeneric;
    return true;
  }
#if defined(__x86_64__)
  if (is_zen() && can_count(kZen)) {
    *events = kZen;
    return true;
  }
#endif
  return false;
}

}  // namespace bosk::base
