// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one process has done, as its library has told it (omp/report_data.h), with the words that a user knows it by.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bosk::tools {

/// CPU time by what became of it, in seconds.
struct Shares {
  double computing = 0;
  double imbalance = 0;
  double barrier = 0;
  double waiting = 0;   ///< for locks and tasks
  double yielding = 0;  ///< given away by the program
  double polling = 0;   ///< for others, in loops of the program
  double blocked = 0;   ///< in a region without a CPU
  double runtime = 0;
  double serial = 0;

  double sum() const;
  /// Waiting for threads that have more to do.
  double for_others() const { return imbalance + barrier; }
};

/// What each share is called: in JSON (the library's, too) and on a page. In the order in which they are told.
struct ShareWords {
  const char* key;
  const char* label;
  double Shares::* share;
};
constexpr std::array<ShareWords, 9> kShareWords = {{
    {"computing", "computing in regions", &Shares::computing},
    {"imbalance", "imbalance (idle in regions)", &Shares::imbalance},
    {"barrier", "waiting at barriers", &Shares::barrier},
    {"waiting", "waiting for locks, tasks", &Shares::waiting},
    {"yielding", "yielding to each other", &Shares::yielding},
    {"polling", "polling for each other", &Shares::polling},
    {"blocked", "blocked, or without a CPU", &Shares::blocked},
    {"runtime", "opening, closing regions", &Shares::runtime},
    {"serial", "serial (with who waits)", &Shares::serial},
}};

inline double Shares::sum() const {
  double sum = 0;
  for (const ShareWords& words : kShareWords) sum += this->*words.share;
  return sum;
}

inline void add(Shares* sum, const Shares& part) {
  for (const ShareWords& words : kShareWords) sum->*words.share += part.*words.share;
}

/// How the members of a team are run: in JSON (the library's, too), and on a page.
struct ModeWords {
  const char* key;
  const char* label;
  const char* meaning;
};
constexpr std::array<ModeWords, 3> kModeWords = {{
    {"cpus", "CPU", "no more threads than CPUs, a kernel thread each"},
    {"user-level", "user", "user-level threads, which take turns on the CPUs"},
    {"kernel-threads", "kernel", "a kernel thread for each of more threads than CPUs"},
}};

/// What was done with teams that last, and why: in JSON (the library's, too), and on a page, where {} is how often.
struct TeamWords {
  const char* key;
  const char* text;
};
constexpr std::array<TeamWords, 9> kTeamWords = {{
    {"placed", "its members were placed {}"},
    {"placed_by_hints", "they were placed {} by what is known of their loads and memory"},
    {"seated", "its relation gave it a part of the machine {}"},
    {"taken_whole", "CPUs of another node, which had nothing to do, took it whole {}"},
    {"kept_elsewhere", "it stayed there {}, and its memory came along"},
    {"seats_exchanged", "its members went to their memory {}"},
    {"opened_as_gang", "it was opened as a gang {}"},
    {"gang_turns", "as a gang all its members were given CPUs at the same time {}"},
    {"polling_turns", "as its members poll for each other all were given CPUs at the same time {}"},
}};
using TeamCounts = std::vector<std::pair<std::string, uint64_t>>;

/// The memory that a process has of its own, in bytes, when it had most.
struct MemoryReport {
  uint64_t own = 0;
  uint64_t huge = 0;                ///< in huge pages
  std::vector<uint64_t> nodes;      ///< by NUMA node; empty: there is one, or it is not known
  std::vector<uint32_t> node_cpus;  ///< CPUs of the process by node, where `nodes` are known
};

/// A parallel region of the program.
struct RegionReport {
  std::string where;  ///< "solve.c:42", or "libx.so+0x11a9" where nobody knows the source
  std::string file;   ///< that the code was loaded from; empty: not known
  uint64_t offset = 0;
  uint32_t level = 1;
  uint32_t smallest = 0;  ///< team
  uint32_t largest = 0;
  std::vector<std::string> modes;  ///< how its teams were run: keys of kModeWords
  uint64_t calls = 0;
  double open = 0;     ///< seconds from being opened to being closed, in sum
  double longest = 0;  ///< of one call
  Shares shares;
  TeamCounts teams;  ///< what was done with them: keys of kTeamWords
};

struct ProcessReport {
  int process = 0;
  std::string program;
  std::string other_runtime;  ///< file of an OpenMP library that bosk does not serve; empty: none
  std::optional<int> rank;
  bool has_ended = false;  ///< in order: nothing is missing
  double elapsed = 0;      ///< seconds since the program was loaded
  uint32_t cpus = 1;
  std::string wait_policy;         ///< OMP_WAIT_POLICY; empty: unset
  std::string policy;              ///< that placed nested teams; empty: none did
  std::string why_kernel_threads;  ///< of all members; empty: user-level threads
  uint64_t observed_teams = 0;     ///< large ones with kernel threads of their own, because of …
  std::string observer;
  uint64_t bound_teams = 0;  ///< … because they are bound
  double cpu_time = 0;       ///< of all its threads
  double system_time = 0;    ///< … in the kernel
  uint64_t memory_kib = 0;   ///< at its peak
  uint64_t page_faults = 0;  ///< that no device had to answer
  MemoryReport memory;
  uint64_t preempted = 0;             ///< times that a thread lost its CPU to another one
  Shares shares;                      ///< with the serial part before the first region
  std::vector<RegionReport> regions;  ///< the longest first
  std::vector<std::pair<std::string, uint64_t>>
      counters;  ///< of the runtime: docs/run.md, "The details"

  /// 0: there is none of that name.
  uint64_t counter(const std::string& name) const;
  uint32_t largest_team() const;
  /// CPUs that its teams can use.
  uint32_t used_cpus() const;
};

/// Those of all processes that have left their data in the folder, the first one first. What cannot be read is left out.
std::vector<ProcessReport> read_reports(const std::string& folder);

/// From the text that the library has written. Throws std::exception if it is none.
ProcessReport parse_report(const std::string& text);

}  // namespace bosk::tools
