// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/spare_cpus.h"

#include <atomic>

#include "base/cpu.h"
#include "base/cpu_mask.h"
#include "base/parse.h"
#include "base/read_text.h"

namespace bosk::base {
namespace {

/// "0-3,6"; 0: it cannot be told.
uint32_t count_list(const char* text) {
  TextReader reader(text);
  uint64_t count = 0;
  uint64_t first;
  while (reader.take_digits(&first)) {
    uint64_t last = first;
    if (reader.take('-') && !reader.take_digits(&last)) return 0;
    count += last - first + 1;
    if (!reader.take(',')) break;
  }
  return count < INT32_MAX ? static_cast<uint32_t>(count) : 0;
}

uint32_t cpus_of_machine() {
  // relaxed: whoever asks finds the same.
  static constinit std::atomic<uint32_t> known{0};
  uint32_t count = known.load(std::memory_order_relaxed);
  if (count == 0) {
    char text[512];
    count = read_text("/sys/devices/system/cpu/online", text) ? count_list(text) : 0;
    if (count == 0) count = INT32_MAX;
    known.store(count, std::memory_order_relaxed);
  }
  return count;
}

/// "0.10 0.20 0.30 RUNNABLE/THREADS LAST"
bool count_runnable(uint64_t* count) {
  char text[80];
  if (!read_text("/proc/loadavg", text)) return false;
  const char* at = strchr(text, '/');
  if (at == nullptr) return false;
  while (at > text && is_digit(at[-1])) --at;
  return TextReader(at).take_digits(count) && *count <= INT32_MAX;
}

}  // namespace

int32_t spare_cpus() {
  uint64_t runnable;
  if (!count_runnable(&runnable)) return INT32_MAX;
  const uint32_t own = cpus_of_calling_thread().count();
  const int32_t spare = static_cast<int32_t>(own) - static_cast<int32_t>(runnable);
  return spare > 0 || own >= cpus_of_machine() ? spare : INT32_MAX;
}

bool is_a_cpu_free() {
  // relaxed: an estimate; who reads an old answer with a new time goes by it for a millisecond.
  static constinit std::atomic<uint64_t> asked_at{0};
  static constinit std::atomic<bool> answer{true};
  const uint64_t now = cycles();
  const uint64_t before = asked_at.load(std::memory_order_relaxed);
  if (before == 0 || now - before > 1000 * cycles_per_microsecond()) {
    answer.store(spare_cpus() > 0, std::memory_order_relaxed);
    asked_at.store(now, std::memory_order_relaxed);
  }
  return answer.load(std::memory_order_relaxed);
}

}  // namespace bosk::base
