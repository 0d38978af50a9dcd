// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace bosk::tools {
namespace {

/// Less is not worth a user's time, nor is it known exactly.
constexpr double kLeastLost = 0.05;
constexpr double kLeastSeconds = 0.03;
/// A region that is open for less costs as much by being opened and closed.
constexpr double kSmallSeconds = 50e-6;
constexpr uint64_t kManyCalls = 1000;

double part_of(double seconds, const ProcessReport& report) {
  const double all = report.shares.sum();
  return all > 0 ? seconds / all : 0;
}

double seconds_a_call(const RegionReport& region) {
  return region.calls != 0 ? region.open / static_cast<double>(region.calls) : 0;
}

bool is_small(const RegionReport& region) {
  return region.calls >= kManyCalls && seconds_a_call(region) < kSmallSeconds;
}

/// The region that has most of it.
template <typename Amount>
const RegionReport* most(const ProcessReport& report, Amount amount) {
  const auto found = std::max_element(
      report.regions.begin(), report.regions.end(),
      [&](const RegionReport& a, const RegionReport& b) { return amount(a) < amount(b); });
  return found != report.regions.end() && amount(*found) > 0 ? &*found : nullptr;
}

bool is_of_blas(const RegionReport& region) {
  constexpr std::array<const char*, 5> kLibraries = {"openblas", "libmkl", "libblis", "libblas",
                                                     "libatlas"};
  const std::string name = std::filesystem::path(region.file).filename().string();
  return std::any_of(kLibraries.begin(), kLibraries.end(),
                     [&](const char* library) { return name.find(library) != std::string::npos; });
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

/// Who waits for a lock comes late to the end, or to the barrier: then the lock is why the others wait there.
bool waits_for_locks(const RegionReport& region) {
  return region.shares.waiting > 0.25 * region.shares.for_others() &&
         region.shares.waiting > 0.1 * region.shares.sum();
}

using Findings = std::vector<Advice>;

void find_imbalance(const ProcessReport& report, Findings* findings) {
  const auto amount = [](const RegionReport& r) {
    return is_small(r) || waits_for_locks(r) ? 0 : r.shares.for_others();
  };
  const RegionReport* worst = most(report, amount);
  if (worst == nullptr) return;
  const bool at_barriers = worst->shares.barrier > worst->shares.imbalance;
  const double lost = part_of(worst->shares.for_others(), report);
  if (at_barriers)
    findings->push_back(
        {AdviceKind::kBarrier, lost,
         fmt::format("threads that wait at the barriers of the region at {}", worst->where),
         "give all threads as much to do between two barriers, or leave out those that are not needed (nowait)"});
  else
    findings->push_back(
        {AdviceKind::kImbalance, lost,
         fmt::format("threads that wait for the slowest one in the region at {}", worst->where),
         "schedule(dynamic) or schedule(guided) for its loops, or tasks; if some threads have more to do by nature, "
         "tell bosk (docs/hints.md)"});
}

void find_small_regions(const ProcessReport& report, Findings* findings) {
  const auto amount = [](const RegionReport& r) {
    return is_small(r) ? r.shares.sum() - r.shares.computing : 0;
  };
  const RegionReport* worst = most(report, amount);
  if (worst == nullptr) return;
  findings->push_back(
      {AdviceKind::kSmallRegions, part_of(amount(*worst), report),
       fmt::format("the region at {}, which is too small: opened {} times for {} each",
                   worst->where, worst->calls, duration(seconds_a_call(*worst))),
       "open it once around the loop that it is in, or run it by one thread when there is little to do (if clause)"});
}

void find_serial_part(const ProcessReport& report, Findings* findings) {
  const double cpus = report.used_cpus();
  const double serial = report.shares.serial / cpus;
  if (cpus < 2 || serial <= 0) return;
  findings->push_back(
      {AdviceKind::kSerial,
       // What the one that runs it does is work.
       part_of(report.shares.serial, report) * (cpus - 1) / cpus,
       fmt::format("the part of the program outside of parallel regions, {:.0f} % of its time",
                   100 * part_of(report.shares.serial, report)),
       fmt::format("make some of it parallel: as it is, with any number of CPUs the program is at "
                   "most {:.1f} times as fast as with one (Amdahl's law)",
                   (serial + report.shares.computing) / serial)});
}

void find_locks(const ProcessReport& report, Findings* findings) {
  const auto amount = [](const RegionReport& r) {
    return r.shares.waiting + (waits_for_locks(r) ? r.shares.for_others() : 0);
  };
  const RegionReport* worst = most(report, amount);
  if (worst == nullptr) return;
  findings->push_back(
      {AdviceKind::kLocks, part_of(amount(*worst), report),
       fmt::format("threads that wait for critical constructs, locks or tasks in the region at {}",
                   worst->where),
       "do less under the lock: a reduction, atomic, or results that each thread keeps for itself"});
}

void find_yields(const ProcessReport& report, Findings* findings) {
  const RegionReport* worst = most(report, [](const RegionReport& r) { return r.shares.yielding; });
  if (worst == nullptr) return;
  findings->push_back(
      {AdviceKind::kYields, part_of(worst->shares.yielding, report),
       fmt::format("threads that wait for each other by sched_yield in the region at {}",
                   worst->where),
       "let them wait by OpenMP (barrier, depend, ordered), where bosk knows whom they wait for"});
}

void find_polling(const ProcessReport& report, Findings* findings) {
  const RegionReport* worst = most(report, [](const RegionReport& r) { return r.shares.polling; });
  if (worst == nullptr) return;
  findings->push_back(
      {AdviceKind::kPolling, part_of(worst->shares.polling, report),
       fmt::format("threads that wait for each other in loops of their own in the region at {}",
                   worst->where),
       "let them wait by OpenMP (barrier, depend, ordered, locks), or call sched_yield in the loop: then bosk runs those that can go on"});
}

/// Without a CPU: because another process has it, or in system calls. Who was preempted a thousand times a second had company.
void find_blocked(const ProcessReport& report, Findings* findings) {
  constexpr double kPreemptionsASecond = 50;
  const RegionReport* worst = most(report, [](const RegionReport& r) { return r.shares.blocked; });
  if (worst == nullptr) return;
  const double lost = part_of(report.shares.blocked, report);
  const double preemptions =
      static_cast<double>(report.preempted) / std::max(report.elapsed * report.used_cpus(), 1e-9);
  if (preemptions > kPreemptionsASecond)
    findings->push_back(
        {AdviceKind::kOtherProcesses, lost,
         fmt::format("other processes on the same CPUs (threads were preempted {} times)",
                     report.preempted),
         "run on CPUs of its own (taskset, Slurm), or use fewer threads"});
  else
    findings->push_back(
        {AdviceKind::kBlocked, lost,
         fmt::format("threads that are blocked in system calls in the region at {}", worst->where),
         "read and write outside of the region, or have more threads than CPUs, so that others run meanwhile"});
}

void find_nested_blas(const ProcessReport& report, Findings* findings) {
  const auto amount = [](const RegionReport& r) {
    return r.level > 1 && is_of_blas(r) && r.largest > 1 ? r.shares.sum() - r.shares.computing : 0;
  };
  const RegionReport* worst = most(report, amount);
  if (worst == nullptr) return;
  findings->push_back(
      {AdviceKind::kNestedBlas, part_of(amount(*worst), report),
       fmt::format("a BLAS library ({}) that opens teams of its own inside of regions, {} times",
                   std::filesystem::path(worst->file).filename().string(), worst->calls),
       "set OPENBLAS_NUM_THREADS=1 or its like, so that each of the outer threads computes alone"});
}

void find_kernel_threads(const ProcessReport& report, Findings* findings) {
  const bool all = !report.why_kernel_threads.empty();
  if (report.largest_team() <= report.cpus) return;
  if (!all && report.observed_teams + report.bound_teams == 0) return;
  const double lost =
      part_of(report.shares.sum() - report.shares.computing - report.shares.serial, report);
  const std::string why = all                          ? report.why_kernel_threads
                          : report.observed_teams != 0 ? report.observer
                                                       : "they are bound to places";
  findings->push_back(
      {AdviceKind::kKernelThreads, lost / 2,
       fmt::format("teams of {} on {} CPUs with a kernel thread for each: {}",
                   report.largest_team(), report.cpus, why),
       fmt::format("--threads {}, or leave out what forces them (docs/design/identity.md)",
                   report.cpus)});
}

/// User-level threads that wait do not poll, whatever the policy.
void find_active_wait(const ProcessReport& report, Findings* findings) {
  if (report.wait_policy != "active" || report.largest_team() <= report.cpus) return;
  const auto amount = [](const RegionReport& r) {
    const bool kernel_threads =
        std::find(r.modes.begin(), r.modes.end(), "kernel-threads") != r.modes.end();
    return kernel_threads ? r.shares.for_others() + r.shares.blocked : 0;
  };
  const RegionReport* worst = most(report, amount);
  if (worst == nullptr) return;
  findings->push_back(
      {AdviceKind::kActiveWait, part_of(amount(*worst), report) / 2,
       fmt::format("threads that poll while they wait (OMP_WAIT_POLICY=active), {} on {} CPUs",
                   worst->largest, report.cpus),
       "leave OMP_WAIT_POLICY unset"});
}

void find_passive_wait(const ProcessReport& report, Findings* findings) {
  /// Falling asleep and being woken takes some 5 to 60 us: nothing to a region that takes longer.
  constexpr double kShortSeconds = 1e-3;
  if (report.wait_policy != "passive") return;
  uint64_t calls = 0;
  double waits = 0;
  for (const RegionReport& region : report.regions) {
    if (seconds_a_call(region) > kShortSeconds) continue;
    calls += region.calls;
    waits += region.shares.for_others();
  }
  const uint64_t sleeps = report.counter("sleeps");
  if (calls == 0 || sleeps < calls / 2) return;
  findings->push_back(
      {AdviceKind::kPassiveWait, part_of(waits, report),
       fmt::format(
           "threads that are asleep when the next region begins (OMP_WAIT_POLICY=passive): {} times, for {} short regions",
           sleeps, calls),
       "leave OMP_WAIT_POLICY unset: then they poll for a moment first, if there are CPUs for it"});
}

std::string bytes(uint64_t amount) {
  const auto mib = static_cast<double>(amount) / (1 << 20);
  return mib < 1024 ? fmt::format("{:.0f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

void find_page_faults(const ProcessReport& report, Findings* findings) {
  /// That the kernel takes to find a page and clear it. It has other things to do, so no more than its time.
  constexpr double kSeconds = 0.7e-6;
  const double lost =
      std::min(report.system_time, kSeconds * static_cast<double>(report.page_faults));
  const MemoryReport& memory = report.memory;
  // Where each page was touched once, more or less, there is nothing but larger ones.
  const uint64_t most = std::max(memory.own, report.memory_kib << 10);
  const bool is_touched_once = 4096 * report.page_faults < 2 * most;
  if (is_touched_once && memory.huge < memory.own / 2)
    findings->push_back(
        {AdviceKind::kHugePages, part_of(lost, report),
         fmt::format(
             "{} page faults, as memory is touched for the first time: of its {} only {} are in huge pages",
             report.page_faults, bytes(memory.own), bytes(memory.huge)),
         "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 has malloc ask for huge pages; madvise(MADV_HUGEPAGE) does for other memory"});
  else if (!is_touched_once)
    findings->push_back(
        {AdviceKind::kPageFaults, part_of(lost, report),
         fmt::format(
             "{} page faults, as memory is given back and touched anew: at most {} are in use at a time",
             report.page_faults, bytes(most)),
         "allocate large arrays once, or have free keep them: "
         "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296"});
}

void find_memory_on_one_node(const ProcessReport& report, Findings* findings) {
  constexpr double kMost = 0.8;
  constexpr uint64_t kWorthIt = 64 << 20;
  /// Of what CPUs of other nodes compute a third is waiting for memory that is far away, say.
  constexpr double kWaits = 1.0 / 3;
  const MemoryReport& memory = report.memory;
  uint64_t all = 0;
  uint32_t cpus = 0;
  for (const uint64_t amount : memory.nodes) all += amount;
  for (const uint32_t count : memory.node_cpus) cpus += count;
  if (all < kWorthIt || cpus == 0 || memory.node_cpus.size() != memory.nodes.size()) return;
  const auto fullest = std::max_element(memory.nodes.begin(), memory.nodes.end());
  const uint32_t cpus_there = memory.node_cpus[fullest - memory.nodes.begin()];
  const double part = static_cast<double>(*fullest) / static_cast<double>(all);
  if (part < kMost) return;
  const double elsewhere = 1 - static_cast<double>(cpus_there) / cpus;
  findings->push_back(
      {AdviceKind::kMemoryOnOneNode, kWaits * elsewhere * part_of(report.shares.computing, report),
       fmt::format(
           "memory on one NUMA node: {:.0f} % of {} are on node {}, which has {} of its {} CPUs (an estimate)",
           100 * part, bytes(all), fullest - memory.nodes.begin(), cpus_there, cpus),
       "let each thread write first what it uses later (initialize in parallel), or --policy memory, which brings threads and memory together"});
}

}  // namespace

const char* advice_name(AdviceKind kind) {
  switch (kind) {
    case AdviceKind::kImbalance:
      return "imbalance";
    case AdviceKind::kBarrier:
      return "barrier";
    case AdviceKind::kSmallRegions:
      return "small-regions";
    case AdviceKind::kSerial:
      return "serial";
    case AdviceKind::kLocks:
      return "locks";
    case AdviceKind::kYields:
      return "yields";
    case AdviceKind::kPolling:
      return "polling";
    case AdviceKind::kBlocked:
      return "blocked";
    case AdviceKind::kOtherProcesses:
      return "other-processes";
    case AdviceKind::kNestedBlas:
      return "nested-blas";
    case AdviceKind::kKernelThreads:
      return "kernel-threads";
    case AdviceKind::kActiveWait:
      return "active-wait";
    case AdviceKind::kPassiveWait:
      return "passive-wait";
    case AdviceKind::kHugePages:
      return "huge-pages";
    case AdviceKind::kPageFaults:
      return "page-faults";
    case AdviceKind::kMemoryOnOneNode:
      return "memory-on-one-node";
  }
  return "?";
}

std::vector<Advice> advice_for(const ProcessReport& report) {
  Findings findings;
  if (report.regions.empty()) return findings;
  for (auto* find :
       {find_passive_wait, find_imbalance, find_small_regions, find_serial_part, find_locks,
        find_yields, find_polling, find_blocked, find_nested_blas, find_kernel_threads,
        find_active_wait, find_page_faults, find_memory_on_one_node})
    find(report, &findings);
  std::erase_if(findings, [&](const Advice& advice) {
    return advice.lost < kLeastLost || advice.lost * report.shares.sum() < kLeastSeconds;
  });
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Advice& a, const Advice& b) { return a.lost > b.lost; });
  return findings;
}

}  // namespace bosk::tools
