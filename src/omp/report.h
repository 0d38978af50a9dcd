// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BOSK_REPORT: what the runtime did, told when the program ends. docs/run.md shows one.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/mapped_array.h"
#include "memory/next_touch/next_touch.h"
#include "omp/entity_report.h"
#include "omp/region_counts.h"
#include "policies/engine.h"
#include "policies/memory/decision_log.h"
#include "policies/memory/remote_watch.h"
#include "sched/worker.h"

namespace bosk::topology {
struct Level;
struct Machine;
}  // namespace bosk::topology

namespace bosk::omp {

struct Team;

/// Nesting levels that are told apart; the last one stands for all deeper ones too.
constexpr uint32_t kReportedLevels = 6;

/// What one worker did at one nesting level. Atomic, because initial threads have workers of the same
/// number and because a tick may come in the middle; relaxed, because nobody orders anything by it.
struct LevelCounts {
  std::atomic<uint64_t> regions{0};  ///< opened on this worker
  std::atomic<uint64_t> members{0};  ///< started on this worker
  std::atomic<uint32_t> smallest{UINT32_MAX};
  std::atomic<uint32_t> largest{0};
};

namespace detail {
extern bool watched;
extern bool counted;
}  // namespace detail

/// Does anybody want to hear of regions: the report, its details or OMP_DISPLAY_AFFINITY? Constant once the first thread is
/// known, but for forked children.
inline bool watching() { return detail::watched; }
/// … and of each member?
inline bool counting() { return detail::counted; }

/// Called before the first region, once or more often: if BOSK_REPORT is given, reads the machine and sees to it that
/// the report is written at exit. Sees to the display of affinity, too. Preemption must be on.
void start_report();

// The following only while watching(). None allocates or locks inside libc, but for the display of
// affinity, which is done with preemption on.

/// The calling thread is about to open a region, and nothing is sampled yet: what has to run beside the program does so from now on.
/// Preemption is on.
[[gnu::cold]] void keep_reporting(const sched::Thread* me);
/// It has opened one at `level`, and counting(). Preemption is off.
[[gnu::cold]] void note_region(sched::Thread* me, uint32_t level, uint32_t size);

/// It has more members than there are workers, and each has a kernel thread all the same: it is bound, or somebody could tell.
[[gnu::cold]] void note_kernel_threads(bool bound);
/// It starts a member of a team at `level`. Any state of preemption.
void note_member(sched::Thread* me, uint32_t level);
/// The member has ended. Any state of preemption.
[[gnu::cold]] void note_member_end(sched::Thread* me, const ImplicitTask* member);
/// A load was told for a member of a team at `level`.
void note_load(uint32_t level, uint32_t index, uint32_t load);
/// It has run a ghost of a team that was opened on worker `home`; undisturbed: the ghost was never
/// switched out, so that it needed no context of its own. Preemption is on.
[[gnu::cold]] void note_ghost(sched::Thread* me, const sched::Worker* home, bool undisturbed);
/// In the child of a fork, which writes no report.
void report_forget_after_fork();
/// The worker's record is about to be freed: keeps its counts. Called always.
void note_worker_end(const sched::Worker* w);

/// Of all workers, also of those that have ended. Any thread, preemption on.
sched::WorkerCounts counts_of_workers();

/// Why members had kernel threads of their own.
struct ReportModes {
  const char* why_kernel_threads = nullptr;  ///< all of them; null: user-level threads
  const char* observer = nullptr;  ///< because of whom large teams have them; null: nobody
  uint64_t observed_teams = 0;     ///< those
  uint64_t bound_teams = 0;        ///< large ones that have them because they are bound
};
ReportModes report_modes();

// ---- The report itself, apart from where the numbers come from.

/// Where a worker's kernel thread may run, and did last.
struct WorkerPlace {
  bool known = false;  ///< false: it has ended, or the kernel did not tell
  bool bound = false;  ///< to fewer CPUs than the process
  uint32_t cpus = 0;   ///< that it may use
  uint32_t last_cpu = 0;
};

struct LevelLine {
  uint64_t regions = 0;
  uint64_t members = 0;
  uint32_t smallest = 0;
  uint32_t largest = 0;
};

struct WorkerLine {
  uint32_t index = 0;
  WorkerPlace place;
  uint32_t pu = topology::kNone;  ///< its seat; kNone: it has none
  uint64_t members[kReportedLevels] = {};
};

/// How far from where it was something ran: by the depth of the smallest domain around both places, the last
/// entry for all deeper ones, and in levels up to there, in sum.
struct Distances {
  static constexpr uint32_t kDepths = 16;
  uint64_t within[kDepths] = {};
  uint64_t levels = 0;
};

/// Of the threads and bubbles that the program made.
struct EntitiesMade {
  Distances distances;  ///< of those that idle PUs took
  policies::EvolutionCounts evolution{};
  policies::MemoryCounts memory{};
};

/// Asks for them, who are above this layer; false: it made none. Null: nobody has.
inline constinit std::atomic<bool (*)(EntitiesMade*)> ask_entities_made{nullptr};

struct ReportData {
  const char* program = "";
  int process = 0;
  uint64_t elapsed_ns = 0;
  const topology::Machine* machine = nullptr;  ///< null: not known
  const char* policy = nullptr;                ///< that placed teams on the machine; null: none did
  const topology::Level* level = nullptr;      ///< the innermost that it names; null: it names none
  uint32_t process_cpus = 0;
  uint32_t pools = 0;  ///< initial threads that have workers now
  LevelLine levels[kReportedLevels];
  base::MappedArray<WorkerLine> workers;   ///< ascending by index
  base::MappedArray<EntityLine> entities;  ///< ascending by thread number
  base::MappedArray<RegionLine> regions;
  uint64_t before_ns =
      0;  ///< from the start of the process to the first look at where its time goes
  sched::WorkerCounts counts;  ///< of all workers together
  Distances ghost_distances;   ///< of ghosts that ran on another worker
  bool has_entities = false;   ///< the program made threads of its own
  EntitiesMade entities_made;  ///< of those and their bubbles
  memory::NextTouchStatistics next_touch{};
  uint64_t undisturbed = 0;          ///< ghosts that were never switched out
  policies::MemoryDecisions memory;  ///< under the policy memory
  policies::RemoteCounts remote;
  uint64_t donors = 0;
  uint64_t kernel_threads = 0;
  ReportModes modes;
};

/// Appends the text, at most 80 lines. False: out of memory.
bool format_report(const ReportData& data, base::MappedArray<char>* text);

}  // namespace bosk::omp
