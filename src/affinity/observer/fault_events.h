// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A source of accesses: the kernel's page-fault events (perf), which tell for each fault its address, thread and CPU.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "affinity/observer/file_descriptor.h"

namespace bosk::affinity {

/// Of processes, of what they become and start: threads, children, programs. One ring of memory a CPU, and an event there for each thread that was there at the beginning. One
/// owner, who alone calls it.
class FaultEvents {
 public:
  struct Fault {
    uint64_t time_ns;  ///< CLOCK_MONOTONIC
    uint64_t address;
    uint32_t process;
    uint32_t thread;
    uint32_t cpu;
  };
  struct Visitor {
    std::function<void(const Fault&)> fault;
    /// A thread of the process has been made by another; of a child the first one.
    std::function<void(uint32_t process, uint32_t thread, uint32_t maker)> thread_made;
    /// Its last faults may be in the ring of a CPU that was read before this one's, so it is told when all have been read once more; or when
    /// its number is another thread's.
    std::function<void(uint32_t thread)> thread_ended;
  };

  /// Of those that have not ended. Null: they are not to be had; `why` says why, and what to do, in one line. O(threads · CPUs).
  static std::unique_ptr<FaultEvents> open(std::span<const pid_t> processes, std::string* why);
  ~FaultEvents();
  FaultEvents(const FaultEvents&) = delete;
  FaultEvents& operator=(const FaultEvents&) = delete;

  /// Readable when rings are half full.
  int descriptor() const { return poll_.number(); }
  /// All that has come, CPU by CPU, not in the order of time. O(CPUs + faults).
  void drain(const Visitor& visitor);
  /// While off, nobody sees faults or threads, and a fault costs the program nothing. Interrupts, for each CPU, all those that run a thread of the program. (To
  /// pause the rings would not, but the faults would cost as much as before.) A process that is forked meanwhile may stay as it was.
  void set_on(bool on);

  uint64_t faults() const { return faults_; }
  /// Those that did not fit into the rings.
  uint64_t lost() const { return lost_; }

 private:
  struct Ring;
  FaultEvents() = default;
  bool make_rings();
  bool add(pid_t process, std::string* why);
  int add_thread(pid_t thread);
  std::set<uint32_t> made_and_not_read() const;
  void drain(Ring* ring, const Visitor& visitor);

  FileDescriptor poll_;
  std::vector<std::unique_ptr<Ring>> rings_;
  struct Ended {
    uint32_t thread;
    uint64_t time_ns;
    bool is_told;
  };
  std::vector<Ended> ended_;  ///< not yet told; those of this reading behind the others
  uint64_t faults_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace bosk::affinity
