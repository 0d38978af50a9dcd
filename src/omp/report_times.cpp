// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The report's figures of time: where that of the CPUs went, in sum and by region.
#include <dlfcn.h>
#include <string.h>

#include <algorithm>

#include "omp/report_text.h"

namespace bosk::omp {
namespace {

using Number = unsigned long long;
using sched::TimeShare;

/// Regions that have lines of their own.
constexpr uint32_t kRegionLines = 8;

struct ShareName {
  TimeShare share;
  const char* name;
};
constexpr ShareName kNames[] = {
    {TimeShare::kComputing, "computing"}, {TimeShare::kImbalance, "imbalance"},
    {TimeShare::kBarrier, "barriers"},    {TimeShare::kWaiting, "locks, tasks"},
    {TimeShare::kYielding, "yields"},     {TimeShare::kPolling, "polling"},
    {TimeShare::kBlocked, "blocked"},     {TimeShare::kRuntime, "runtime"},
    {TimeShare::kSerial, "serial"},
};
static_assert(sizeof kNames / sizeof *kNames == sched::kTimeShares);

uint64_t share_of(const RegionLine& line, TimeShare share) {
  return line.shares_ns[static_cast<uint32_t>(share)];
}
uint64_t all_of(const RegionLine& line) {
  uint64_t sum = 0;
  for (const uint64_t ns : line.shares_ns) sum += ns;
  return sum;
}
double per_cent(uint64_t part, uint64_t all) {
  return all != 0 ? 100 * static_cast<double>(part) / static_cast<double>(all) : 0;
}

/// "app+0x11a9": what tools that know the source take.
void name_of_region(char* name, size_t size, const void* function) {
  Dl_info info;
  if (function == nullptr) {
    snprintf(name, size, "-");
  } else if (dladdr(function, &info) != 0 && info.dli_fname != nullptr) {
    const char* slash = strrchr(info.dli_fname, '/');
    snprintf(name, size, "%.60s+0x%zx", slash != nullptr ? slash + 1 : info.dli_fname,
             static_cast<size_t>(static_cast<const char*>(function) -
                                 static_cast<const char*>(info.dli_fbase)));
  } else {
    snprintf(name, size, "%p", function);
  }
}

void add_region(Text* text, const RegionLine& line) {
  char name[96];
  char sizes[32];
  name_of_region(name, sizeof name, line.function);
  snprintf(sizes, sizeof sizes, line.smallest == line.largest ? "%u" : "%u-%u", line.smallest,
           line.largest);
  const uint64_t all = all_of(line);
  const uint64_t waits = share_of(line, TimeShare::kWaiting) +
                         share_of(line, TimeShare::kYielding) +
                         share_of(line, TimeShare::kPolling) + share_of(line, TimeShare::kBlocked);
  text->add("            %-5u %12llu %10s %10.3f %12.4f %7.1f %7.1f %7.1f %7.1f  %s\n", line.level,
            Number{line.calls}, sizes, static_cast<double>(line.open_ns) / 1e9,
            static_cast<double>(line.open_ns) / 1e6 / static_cast<double>(line.calls),
            per_cent(share_of(line, TimeShare::kComputing), all),
            per_cent(share_of(line, TimeShare::kImbalance), all),
            per_cent(share_of(line, TimeShare::kBarrier), all), per_cent(waits, all), name);
}

void add_shares(Text* text, const ReportData& data) {
  uint64_t sums[sched::kTimeShares] = {};
  uint64_t all = 0;
  for (uint32_t at = 0; at < data.regions.size(); ++at) {
    const RegionLine& line = data.regions[at];
    for (uint32_t i = 0; i < sched::kTimeShares; ++i) sums[i] += line.shares_ns[i];
    all += all_of(line);
  }
  if (all == 0) return;
  text->add("time        %.3f s of CPUs:", static_cast<double>(all) / 1e9);
  const char* separator = " ";
  for (const ShareName& each : kNames) {
    const uint64_t part = sums[static_cast<uint32_t>(each.share)];
    if (part == 0) continue;
    text->add("%s%s %.1f %%", separator, each.name, per_cent(part, all));
    separator = ", ";
  }
  text->add("\n");
}

}  // namespace

void add_times(Text* text, const ReportData& data) {
  add_shares(text, data);
  uint32_t order[kRegionLines];
  uint32_t shown = 0;
  uint32_t opened = 0;
  // The longest, by insertion: there are few lines.
  for (uint32_t i = 0; i < data.regions.size(); ++i) {
    if (data.regions[i].calls == 0) continue;
    ++opened;
    uint32_t at = shown < kRegionLines ? shown++ : kRegionLines;
    while (at > 0 && data.regions[order[at - 1]].open_ns < data.regions[i].open_ns) {
      if (at < kRegionLines) order[at] = order[at - 1];
      --at;
    }
    if (at < kRegionLines) order[at] = i;
  }
  if (shown == 0) return;
  text->add("regions     %-5s %12s %10s %10s %12s %7s %7s %7s %7s  %s\n", "level", "calls",
            "threads", "s", "ms a call", "comp. %", "imb. %", "barr. %", "waits %", "code");
  for (uint32_t i = 0; i < shown; ++i) add_region(text, data.regions[order[i]]);
  if (opened > shown) text->add("            … and %u more\n", opened - shown);
}

}  // namespace bosk::omp
