// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who owns what: the mapping is made by whoever opens the process's first region, under `lock`, and stays. Texts are written under
// `lock`, too, by the sampler and at exit: the text that the head's count does not point to, then the count, with release.
#include "omp/report_data.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "base/message.h"
#include "base/report_name.h"
#include "base/settings.h"
#include "base/sleeping_lock.h"
#include "omp/code_places.h"
#include "omp/environment.h"
#include "omp/memory_look.h"
#include "omp/other_runtimes.h"
#include "omp/placing.h"
#include "omp/report.h"
#include "omp/report_text.h"
#include "sched/clock.h"

namespace bosk::omp {
namespace {

struct Shared {
  base::SleepingLock lock;
  std::atomic<ReportDataHead*> head{nullptr};
  uint64_t loaded_at = 0;  ///< CLOCK_MONOTONIC, in ns: the library was
  int loaded_by = 0;       ///< the process, before it forked
  std::atomic<bool> failed{
      false};  ///< and that was said; relaxed: who sees it late looks under the lock
  // Guarded by the lock:
  CodePlaces places;
  MemoryLook memory;
};
constinit Shared shared;

constexpr size_t kFileBytes = kReportDataHeadBytes + 2 * size_t{ReportDataHead::kTextBytes};

/// A process ends that has opened no region here: it may have opened those of others. Forked children are what their parents are.
void tell_of_others() {
  char file[PATH_MAX];
  if (shared.head.load(std::memory_order_relaxed) != nullptr || getpid() != shared.loaded_by ||
      !find_other_runtime(file, sizeof file))
    return;
  keep_report_data();
  end_report_data();
}

/// Before the program's own constructors, mostly: its serial part begins there.
[[gnu::constructor]] void note_load() {
  shared.loaded_at = sched::clock_now();
  shared.loaded_by = getpid();
  // Not by the settings, which are read, and complained of, where there is OpenMP.
  if (getenv("BOSK_REPORT_DATA") != nullptr && atexit(tell_of_others) != 0)
    base::say("out of memory: the report lacks what other OpenMP libraries there are");
}

char* text_of(ReportDataHead* head, uint32_t which) {
  return reinterpret_cast<char*>(head) + kReportDataHeadBytes +
         size_t{which} * ReportDataHead::kTextBytes;
}

ReportDataHead* make_file() {
  char path[PATH_MAX];
  const int length = snprintf(path, sizeof path, "%s/%d", base::settings().report_data,
                              static_cast<int>(getpid()));
  if (length < 0 || static_cast<size_t>(length) >= sizeof path) {
    errno = ENAMETOOLONG;
    return nullptr;
  }
  // A process that execs has the number of the one it was: that one's file goes, with what it has written.
  unlink(path);
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return nullptr;
  void* memory = MAP_FAILED;
  // All of it now: where the file system is full later, a store would be a SIGBUS.
  int error = posix_fallocate(file, 0, kFileBytes);
  if (error == 0) {
    memory = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    error = errno;
  }
  close(file);
  errno = error;
  return memory != MAP_FAILED ? new (memory) ReportDataHead : nullptr;
}

// ---- The text. Numbers are plain, times in ns.

using Number = unsigned long long;

/// As JSON has it. What is not UTF-8 becomes U+FFFD.
void add_string(Text* text, const char* value) {
  text->add("\"");
  const auto* at = reinterpret_cast<const unsigned char*>(value);
  while (*at != 0) {
    const uint32_t length = *at < 0x80    ? 1
                            : *at >= 0xf0 ? 4
                            : *at >= 0xe0 ? 3
                            : *at >= 0xc2 ? 2
                                          : 0;
    bool good = length != 0 && *at < 0xf5;
    for (uint32_t i = 1; good && i < length; ++i) good = (at[i] & 0xc0) == 0x80;
    if (!good) {
      text->add("\\ufffd");
      ++at;
      continue;
    }
    if (length == 1 && (*at < 0x20 || *at == '"' || *at == '\\' || *at == 0x7f))
      text->add("\\u%04x", *at);
    else
      text->add("%.*s", static_cast<int>(length), reinterpret_cast<const char*>(at));
    at += length;
  }
  text->add("\"");
}

void add_shares(Text* text, const uint64_t (&shares)[sched::kTimeShares]) {
  // In the order of TimeShare.
  constexpr const char* kNames[] = {"computing", "imbalance", "barrier", "waiting", "yielding",
                                    "polling",   "blocked",   "runtime", "serial"};
  static_assert(sizeof kNames / sizeof *kNames == sched::kTimeShares);
  text->add("{");
  for (uint32_t i = 0; i < sched::kTimeShares; ++i)
    text->add("%s\"%s\": %llu", i == 0 ? "" : ", ", kNames[i], Number{shares[i]});
  text->add("}");
}

/// Those that there were.
void add_events(Text* text, const uint64_t (&events)[sched::kTeamEvents]) {
  // In the order of TeamEvent.
  constexpr const char* kNames[] = {"placed",         "placed_by_hints", "seated",
                                    "taken_whole",    "kept_elsewhere",  "seats_exchanged",
                                    "opened_as_gang", "gang_turns",      "polling_turns"};
  static_assert(sizeof kNames / sizeof *kNames == sched::kTeamEvents);
  text->add("{");
  const char* separator = "";
  for (uint32_t i = 0; i < sched::kTeamEvents; ++i) {
    if (events[i] == 0) continue;
    text->add("%s\"%s\": %llu", separator, kNames[i], Number{events[i]});
    separator = ", ";
  }
  text->add("}");
}

void add_region(Text* text, const RegionLine& line) {
  text->add("{\"function\": %llu, ", Number{reinterpret_cast<uintptr_t>(line.function)});
  if (const CodePlace* place = shared.places.find(line.function)) {
    text->add("\"file\": ");
    add_string(text, place->file);
    text->add(", \"offset\": %llu, ", Number{place->offset});
  }
  constexpr const char* kModes[] = {"cpus", "user-level", "kernel-threads"};
  text->add("\"modes\": [");
  const char* separator = "";
  for (uint32_t i = 0; i < sizeof kModes / sizeof *kModes; ++i) {
    if ((line.modes & 1U << i) == 0) continue;
    text->add("%s\"%s\"", separator, kModes[i]);
    separator = ", ";
  }
  text->add(
      "], \"level\": %u, \"threads\": [%u, %u], \"calls\": %llu, \"open\": %llu, \"longest\": %llu, ",
      line.level, line.smallest, line.largest, Number{line.calls}, Number{line.open_ns},
      Number{line.longest_ns});
  text->add("\"shares\": ");
  add_shares(text, line.shares_ns);
  text->add(", \"teams\": ");
  add_events(text, line.events);
  text->add("}");
}

void add_modes(Text* text) {
  const ReportModes modes = report_modes();
  text->add("\"modes\": {\"why_kernel_threads\": ");
  modes.why_kernel_threads != nullptr ? add_string(text, modes.why_kernel_threads)
                                      : text->add("null");
  text->add(", \"observed_teams\": %llu, \"observer\": ", Number{modes.observed_teams});
  modes.observer != nullptr ? add_string(text, modes.observer) : text->add("null");
  text->add(", \"bound_teams\": %llu},\n", Number{modes.bound_teams});
}

void add_usage(Text* text) {
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
  const auto ns = [](const timeval& t) {
    return Number{static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u +
                  static_cast<uint64_t>(t.tv_usec) * 1000u};
  };
  text->add(
      "\"usage\": {\"user\": %llu, \"system\": %llu, \"memory_kib\": %llu, \"preempted\": %llu, \"page_faults\": %llu},\n",
      ns(usage.ru_utime), ns(usage.ru_stime), Number{static_cast<uint64_t>(usage.ru_maxrss)},
      Number{static_cast<uint64_t>(usage.ru_nivcsw)},
      Number{static_cast<uint64_t>(usage.ru_minflt)});
}

void add_memory(Text* text) {
  const OwnMemory& memory = shared.memory.most();
  text->add("\"memory\": {\"own\": %llu, \"huge\": %llu, \"nodes\": [", Number{memory.all},
            Number{memory.huge});
  for (uint32_t i = 0; i < memory.nodes; ++i)
    text->add("%s%llu", i == 0 ? "" : ", ", Number{memory.of_node[i]});
  text->add("]},\n");
}

/// What the runtime did, of all workers together.
void add_counters(Text* text) {
  const sched::WorkerCounts counts = counts_of_workers();
  const context::IdentityCounts identities = context::identity_counts();
  const struct {
    const char* name;
    uint64_t count;
  } kCounters[] = {
      {"ghosts_run", counts.ghosts_run},
      {"ghosts_stolen", counts.ghosts_stolen},
      {"teams_taken", counts.teams_taken},
      {"teams_resettled", counts.teams_resettled},
      {"switches", counts.switches},
      {"waits_that_switched", counts.blocked},
      {"threads_stolen", counts.threads_stolen},
      {"preemptions", counts.preemptions},
      {"yields", counts.yields},
      {"promotions", counts.promotions},
      {"sleeps", counts.parks},
      {"joint_turns", counts.joint_turns},
      {"gangs", counts.gangs},
      {"outside_pauses", counts.outside_pauses},
      {"homecomings", counts.homecomings},
      {"donors", identities.donors},
      {"kernel_threads", identities.kernel_threads},
  };
  text->add("\"counters\": {");
  for (const auto& each : kCounters)
    text->add("%s\"%s\": %llu", &each == kCounters ? "" : ", ", each.name, Number{each.count});
  text->add("},\n");
}

bool write_text(base::MappedArray<char>* to, bool has_ended) {
  base::MappedArray<RegionLine> regions;
  Text text(to);
  const ProcessIcvs& icvs = process_icvs();
  text.add("{\"process\": %d, \"program\": ", static_cast<int>(getpid()));
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = '\0';
  add_string(&text, program_invocation_name);
  text.add(", \"file\": ");
  add_string(&text, program);
  text.add(", \"rank\": ");
  const char* rank = base::mpi_rank();
  rank != nullptr ? text.add("%s", rank) : text.add("null");
  char other[PATH_MAX];
  text.add(",\n\"other_runtime\": ");
  // It is looked for once.
  has_ended&& find_other_runtime(other, sizeof other) ? add_string(&text, other) : text.add("null");
  const uint64_t first = sched::sampled_since();
  text.add(
      ",\n\"has_ended\": %s, \"elapsed\": %llu, \"before\": %llu, \"cpus\": %u, \"wait_policy\": %s,\n",
      has_ended ? "true" : "false", Number{sched::clock_now() - shared.loaded_at},
      Number{first > shared.loaded_at ? first - shared.loaded_at : 0}, icvs.available_cpus,
      icvs.wait_policy == WaitPolicy::kActive    ? "\"active\""
      : icvs.wait_policy == WaitPolicy::kPassive ? "\"passive\""
                                                 : "null");
  text.add("\"policy\": ");
  const char* policy = placed_by().policy;
  policy != nullptr ? add_string(&text, policy) : text.add("null");
  text.add(",\n");
  add_modes(&text);
  add_usage(&text);
  shared.memory.look(shared.loaded_at, sched::clock_now(), has_ended);
  add_memory(&text);
  add_counters(&text);
  text.add("\"regions\": [");
  const bool collected = collect_regions(&regions);
  shared.places.look_for(regions);
  // Room for the longest line.
  constexpr uint32_t kFull = ReportDataHead::kTextBytes - 2 * PATH_MAX * 6;
  for (uint32_t i = 0; i < regions.size() && to->size() < kFull; ++i) {
    text.add(i == 0 ? "\n" : ",\n");
    add_region(&text, regions[i]);
  }
  text.add("]}\n");
  regions.release();
  return collected && text.good();
}

void publish(bool has_ended) {
  ReportDataHead* head = shared.head.load(std::memory_order_acquire);
  if (head == nullptr) return;
  shared.lock.lock();
  base::MappedArray<char> text;
  if (write_text(&text, has_ended) && text.size() <= ReportDataHead::kTextBytes) {
    const uint32_t count = head->count.load(std::memory_order_relaxed) + 1;
    memcpy(text_of(head, count % 2), text.data(), text.size());
    head->bytes[count % 2] = text.size();
    head->count.store(count, std::memory_order_release);
  }
  text.release();
  shared.lock.unlock();
}

}  // namespace

void keep_report_data() {
  if (BOSK_LIKELY(shared.head.load(std::memory_order_relaxed) != nullptr) ||
      shared.failed.load(std::memory_order_relaxed))
    return;
  shared.lock.lock();
  if (shared.head.load(std::memory_order_relaxed) == nullptr &&
      !shared.failed.load(std::memory_order_relaxed)) {
    const int own_errno = errno;
    ReportDataHead* head = make_file();
    shared.failed.store(head == nullptr, std::memory_order_relaxed);
    // Whoever has made the folder has gone with it, and waits for nothing.
    if (head == nullptr && errno != ENOENT)
      base::say("cannot keep the report's data in %s: %s", base::settings().report_data,
                strerror(errno));
    errno = own_errno;
    shared.head.store(head, std::memory_order_release);
    sched::set_sampling_hook([] { publish(false); });
  }
  shared.lock.unlock();
}

void end_report_data() {
  if (shared.head.load(std::memory_order_relaxed) == nullptr) return;
  sched::sample_now();
  publish(true);
}

void report_data_forget_after_fork() {
  // The parent's file. The lock may be held by a thread that is not there any more.
  if (ReportDataHead* head = shared.head.load(std::memory_order_relaxed)) munmap(head, kFileBytes);
  shared.head.store(nullptr, std::memory_order_relaxed);
  shared.failed.store(false, std::memory_order_relaxed);
  shared.memory = MemoryLook{};
  new (&shared.lock) base::SleepingLock;
  shared.loaded_at = sched::clock_now();
}

}  // namespace bosk::omp
