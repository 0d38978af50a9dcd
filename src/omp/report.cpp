// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collects what the report tells, and writes it at exit.
#include "omp/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "base/message.h"
#include "base/report_name.h"
#include "base/settings.h"
#include "base/syscalls.h"
#include "context/identity.h"
#include "context/observers.h"
#include "omp/affinity_display.h"
#include "omp/environment.h"
#include "omp/placing.h"
#include "omp/report_data.h"
#include "omp/team.h"
#include "sched/kernel_threads.h"
#include "sched/pool_list.h"
#include "sched/scheduler.h"
#include "topology/source.h"

namespace bosk::omp {

namespace detail {
constinit bool watched = false;
constinit bool counted = false;
}  // namespace detail

namespace {

struct WorkerLevels {
  LevelCounts at[kReportedLevels];
};

// By worker number; made when the worker first has something to tell.
constinit std::atomic<WorkerLevels*> worker_levels[sched::kMaxWorkers]{};

// Of workers that have ended. By number, so that one total can be given.
constinit std::atomic<uint64_t> ended_counts[sizeof(sched::WorkerCounts) / sizeof(uint64_t)]{};

constinit std::atomic<uint64_t> undisturbed_ghosts{0};
constinit std::atomic<uint64_t> observed_teams{0};
constinit std::atomic<uint64_t> bound_teams{0};

constinit const topology::Machine* machine = nullptr;
constinit uint64_t started_ns = 0;
constinit int started_process = 0;
constinit bool report_is_on = false;

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

LevelCounts* counts_of(const sched::Thread* me, uint32_t level) {
  // A promoted thread has lost its worker, but is still counted where it was.
  const sched::Worker* w = me->worker != nullptr ? me->worker : me->last_worker;
  if (w == nullptr || w->index >= sched::kMaxWorkers || level == 0) return nullptr;
  std::atomic<WorkerLevels*>& slot = worker_levels[w->index];
  // acquire pairs with the release below: the zeros are seen.
  WorkerLevels* levels = slot.load(std::memory_order_acquire);
  if (levels == nullptr) {
    // From the kernel: malloc may not be called with preemption off.
    void* memory = base::map_pages(sizeof(WorkerLevels));
    if (memory == nullptr) return nullptr;
    auto* made = new (memory) WorkerLevels;
    if (slot.compare_exchange_strong(levels, made, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      levels = made;
    } else {
      base::unmap_pages(memory, sizeof(WorkerLevels));
    }
  }
  return &levels->at[(level <= kReportedLevels ? level : kReportedLevels) - 1];
}

void lower(std::atomic<uint32_t>& least, uint32_t value) {
  uint32_t seen = least.load(std::memory_order_relaxed);
  while (value < seen && !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void raise(std::atomic<uint32_t>& most, uint32_t value) {
  uint32_t seen = most.load(std::memory_order_relaxed);
  while (value > seen && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// The counters as an array: they are all alike, and each is written by one kernel thread only.
static_assert(sizeof(sched::WorkerCounts) % sizeof(uint64_t) == 0);
constexpr size_t kCounters = sizeof(sched::WorkerCounts) / sizeof(uint64_t);

uint64_t read_counter(const sched::WorkerCounts& counts, size_t i) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(&counts) + i, __ATOMIC_RELAXED);
}

void add_counts(sched::WorkerCounts* sum, const sched::WorkerCounts& counts) {
  for (size_t i = 0; i < kCounters; ++i) {
    reinterpret_cast<uint64_t*>(sum)[i] += read_counter(counts, i);
  }
}

/// Field 39 of /proc/self/task/TID/stat: the CPU it ran on last.
bool last_cpu_of(int tid, uint32_t* cpu) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[1024];
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = '\0';
  // The name in parentheses may hold blanks and parentheses; field 3 follows its last one.
  const char* at = strrchr(text, ')');
  for (int field = 3; at != nullptr && field <= 39; ++field) at = strchr(at + 1, ' ');
  if (at == nullptr) return false;
  *cpu = static_cast<uint32_t>(strtoul(at, nullptr, 10));
  return true;
}

WorkerPlace place_of_worker(const sched::Worker* w) {
  WorkerPlace place;
  const context::Identity* kernel = w->kernel.load(std::memory_order_acquire);
  const int tid = kernel != nullptr ? kernel->tid : 0;
  if (tid == 0 || !last_cpu_of(tid, &place.last_cpu)) return place;
  constexpr size_t kBytes = 8192 / 8;  // CPUs that Linux can have
  alignas(8) unsigned char mask[kBytes];
  const long bytes = base::raw_syscall(SYS_sched_getaffinity, tid, kBytes, base::address_of(mask));
  if (bytes <= 0) return place;
  for (long i = 0; i < bytes; ++i) place.cpus += static_cast<uint32_t>(__builtin_popcount(mask[i]));
  place.known = true;
  place.bound = place.cpus < process_icvs().available_cpus;
  return place;
}

/// The worker's line, which is made where it belongs in the order of numbers.
WorkerLine* line_of(ReportData* data, uint32_t index) {
  uint32_t at = data->workers.size();
  while (at > 0 && data->workers[at - 1].index >= index) --at;
  if (at < data->workers.size() && data->workers[at].index == index) return &data->workers[at];
  if (!data->workers.push(WorkerLine{})) return nullptr;
  WorkerLine* lines = data->workers.data();
  memmove(static_cast<void*>(lines + at + 1), lines + at,
          (data->workers.size() - 1 - at) * sizeof *lines);
  lines[at] = WorkerLine{};
  lines[at].index = index;
  return &lines[at];
}

void collect_levels(ReportData* data) {
  for (uint32_t index = 0; index < sched::kMaxWorkers; ++index) {
    const WorkerLevels* levels = worker_levels[index].load(std::memory_order_acquire);
    if (levels == nullptr) continue;
    WorkerLine* line = line_of(data, index);
    for (uint32_t i = 0; i < kReportedLevels; ++i) {
      const LevelCounts& from = levels->at[i];
      LevelLine& to = data->levels[i];
      const uint64_t regions = from.regions.load(std::memory_order_relaxed);
      const uint64_t members = from.members.load(std::memory_order_relaxed);
      to.members += members;
      if (line != nullptr) line->members[i] += members;
      if (regions == 0) continue;
      const uint32_t smallest = from.smallest.load(std::memory_order_relaxed);
      const uint32_t largest = from.largest.load(std::memory_order_relaxed);
      if (to.regions == 0 || smallest < to.smallest) to.smallest = smallest;
      if (largest > to.largest) to.largest = largest;
      to.regions += regions;
    }
  }
}

constinit std::atomic<uint64_t> ghosts_within[Distances::kDepths];
constinit std::atomic<uint64_t> ghost_levels{0};

void note_ghost_distance(const sched::Worker* w, const sched::Worker* home) {
  if (machine == nullptr) return;
  const topology::Domain& here = machine->pu(sched::pu_of(w->pool, *machine, w->index));
  const topology::Domain& there = machine->pu(sched::pu_of(home->pool, *machine, home->index));
  const uint32_t depth = machine->common_ancestor(here, there).depth;
  // relaxed: figures.
  ghosts_within[depth < Distances::kDepths ? depth : Distances::kDepths - 1].fetch_add(
      1, std::memory_order_relaxed);
  ghost_levels.fetch_add(here.depth - depth, std::memory_order_relaxed);
}

void collect_workers(ReportData* data) {
  for (size_t i = 0; i < kCounters; ++i) {
    reinterpret_cast<uint64_t*>(&data->counts)[i] +=
        ended_counts[i].load(std::memory_order_relaxed);
  }
  for (const sched::Pool* pool = sched::first_pool(); pool != nullptr; pool = pool->next) {
    if (pool->outer == nullptr) ++data->pools;
    const uint32_t count = pool->worker_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count && i < sched::kMaxWorkers; ++i) {
      const sched::Worker* w = pool->worker(i);
      if (w == nullptr) continue;
      add_counts(&data->counts, w->counts);
      WorkerLine* line = line_of(data, i);
      if (line == nullptr || line->place.known) continue;
      line->place = place_of_worker(w);
      const sched::Seats* seats = pool->seats.load(std::memory_order_acquire);
      if (seats != nullptr && i < seats->count) line->pu = seats->pu_of_worker()[i];
    }
  }
}

bool write_all(int file, const char* text, size_t length) {
  while (length != 0) {
    const ssize_t written = write(file, text, length);
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    text += written;
    length -= static_cast<size_t>(written);
  }
  return true;
}

void write_report() {
  // A forked child inherits this handler with the parent's numbers; they are not its own.
  if (getpid() != started_process) return;
  ReportData data;
  data.program = program_invocation_name;
  data.process = started_process;
  data.elapsed_ns = now_ns() - started_ns;
  data.machine = machine;
  const PlacedBy placed = placed_by();
  data.policy = placed.policy;
  data.level = placed.level;
  data.memory = policies::memory_decisions();
  data.remote = policies::remote_counts();
  data.process_cpus = process_icvs().available_cpus;
  collect_levels(&data);
  collect_workers(&data);
  sched::sample_now();
  const bool has_entities = collect_entities(&data.entities) && collect_regions(&data.regions);
  data.undisturbed = undisturbed_ghosts.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < Distances::kDepths; ++i)
    data.ghost_distances.within[i] = ghosts_within[i].load(std::memory_order_relaxed);
  data.ghost_distances.levels = ghost_levels.load(std::memory_order_relaxed);
  if (auto* ask = ask_entities_made.load(std::memory_order_acquire))
    data.has_entities = ask(&data.entities_made);
  data.next_touch = memory::next_touch_statistics();
  const context::IdentityCounts identities = context::identity_counts();
  data.donors = identities.donors;
  data.kernel_threads = identities.kernel_threads;
  data.modes = report_modes();
  base::MappedArray<char> text;
  const char* path = base::settings().report;
  if (!has_entities || !format_report(data, &text)) {
    base::say("out of memory: no report");
  } else if (strcmp(path, "-") == 0) {
    if (!write_all(STDERR_FILENO, text.data(), text.size())) {
      base::say("cannot write the report to standard error: %s", strerror(errno));
    }
  } else {
    // Appended: programs that start others with OpenMP write one report each.
    char name[PATH_MAX];
    const bool fits = base::expand_report_name(path, started_process, name, sizeof name);
    if (!fits) errno = ENAMETOOLONG;
    path = name;
    const int file = !fits ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0 || !write_all(file, text.data(), text.size())) {
      base::say("cannot write the report to %s: %s", path, strerror(errno));
    }
    if (file >= 0) close(file);
  }
  text.release();
  data.workers.release();
  data.entities.release();
  data.regions.release();
}

}  // namespace

void start_report() {
  if (process_icvs().display_affinity) detail::watched = detail::counted = true;
  if (started_process != 0) return;
  if (base::settings().report_data != nullptr) {
    started_process = getpid();
    if (atexit(end_report_data) != 0)
      base::say("out of memory: the report lacks the end of the program");
    detail::watched = true;
  }
  if (base::settings().report == nullptr) return;
  started_ns = now_ns();
  started_process = getpid();
  machine = topology::process_machine(process_icvs().cpus);
  if (atexit(write_report) != 0) {
    base::say("out of memory: no report");
    return;
  }
  report_is_on = true;
  detail::watched = detail::counted = true;
}

void keep_reporting(const sched::Thread* me) {
  if (!report_is_on && base::settings().report_data == nullptr) return;
  // Before the sampler, which looks at once what memory there is: much of it may be given back before its next look.
  if (base::settings().report_data != nullptr) keep_report_data();
  if (const int error = sched::ensure_sampling(me, process_icvs().available_cpus))
    base::say("the report cannot tell where time goes: no thread for it (%s)", strerror(error));
}

ReportModes report_modes() {
  ReportModes modes;
  modes.why_kernel_threads = sched::why_kernel_threads.load(std::memory_order_relaxed);
  modes.observer = context::kernel_thread_observer_name();
  modes.observed_teams = observed_teams.load(std::memory_order_relaxed);
  modes.bound_teams = bound_teams.load(std::memory_order_relaxed);
  return modes;
}

void note_region(sched::Thread* me, uint32_t level, uint32_t size) {
  if (!report_is_on) return;
  LevelCounts* counts = counts_of(me, level);
  if (counts == nullptr) return;
  counts->regions.fetch_add(1, std::memory_order_relaxed);
  lower(counts->smallest, size);
  raise(counts->largest, size);
}

void note_kernel_threads(bool bound) {
  (bound ? bound_teams : observed_teams).fetch_add(1, std::memory_order_relaxed);
}

void note_member(sched::Thread* me, uint32_t level) {
  if (process_icvs().display_affinity) display_member_affinity(me);
  if (!report_is_on) return;
  LevelCounts* counts = counts_of(me, level);
  if (counts != nullptr) counts->members.fetch_add(1, std::memory_order_relaxed);
  note_entity_begin(me);
}

void note_member_end(sched::Thread* me, const ImplicitTask* member) {
  if (report_is_on) note_entity_end(me, member);
}

void note_load(uint32_t level, uint32_t index, uint32_t load) {
  if (report_is_on && level == 1) note_entity_load(index, load);
}

void note_ghost(sched::Thread* me, const sched::Worker* home, bool undisturbed) {
  if (!report_is_on) return;
  if (undisturbed) undisturbed_ghosts.fetch_add(1, std::memory_order_relaxed);
  note_entity_ghost(me);
  sched::Worker* w = sched::enter(me);
  ++w->counts.ghosts_run;
  if (w != home) {
    ++w->counts.ghosts_stolen;
    note_ghost_distance(w, home);
  }
  sched::leave(me);
}

void report_forget_after_fork() {
  // Nor does it count: another thread may have been in the middle of it.
  report_is_on = false;
  observed_teams.store(0, std::memory_order_relaxed);
  bound_teams.store(0, std::memory_order_relaxed);
  forget_region_counts_after_fork();
  report_data_forget_after_fork();
  detail::counted = process_icvs().display_affinity;
  detail::watched = detail::counted || base::settings().report_data != nullptr;
}

sched::WorkerCounts counts_of_workers() {
  sched::WorkerCounts sum;
  for (size_t i = 0; i < kCounters; ++i)
    reinterpret_cast<uint64_t*>(&sum)[i] = ended_counts[i].load(std::memory_order_relaxed);
  context::preempt_disable();
  {
    base::SpinGuard guard(sched::pools.lock);
    sched::for_each_worker([&](const sched::Pool*, const sched::Worker* w) {
      if (w != nullptr) add_counts(&sum, w->counts);
    });
  }
  context::preempt_enable();
  return sum;
}

void note_worker_end(const sched::Worker* w) {
  for (size_t i = 0; i < kCounters; ++i) {
    ended_counts[i].fetch_add(read_counter(w->counts, i), std::memory_order_relaxed);
  }
}

}  // namespace bosk::omp
