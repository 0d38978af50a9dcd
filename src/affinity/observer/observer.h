// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Watches which threads of a program use which memory, from outside, and acts on it: facade of this folder and of acting/.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "affinity/acting/data_mover.h"
#include "affinity/acting/thread_mover.h"
#include "affinity/learner.h"
#include "affinity/observer/kernel_balancing.h"
#include "affinity/recording.h"

namespace bosk::affinity {

struct ObserverSettings {
  /// What observing may cost, of the program's time of CPUs (Diener 2014, section 5.4: 1.8 %).
  double overhead = 0.018;
  /// For tests: as where the kernel gives nobody events of page faults.
  bool without_events = false;
  /// The kernel's numbers of the learner's nodes, if pages are to be moved to where they are used; empty: they are not.
  std::vector<int> move_pages_to;
  /// If threads are to be moved as well: the machine, which must live longer; else null. And the CPUs that the program was given.
  const topology::Machine* place_threads_on = nullptr;
  CpuSet cpus;
};

/// Where the time went that the observer has cost, in ns of CPUs.
struct ObserverCosts {
  double program = 0;  ///< what the program has taken
  double faults = 0;   ///< the program's, for faults that would not have been: price by number
  double interrupts =
      0;  ///< the program's, for what its CPUs forget when pages are armed: price by number
  double events = 0;    ///< the program's, for the kernel's events of its own faults
  double observer = 0;  ///< ours, measured: arming and looking, table and matrix
  double moves = 0;     ///< ours, measured: moving pages, and what that interrupts

  double share() const {
    return program > 0 ? (faults + interrupts + events + observer + moves) / program : 0;
  }
};

/// What was seen, and what was not.
struct ObserverCounts {
  uint64_t processes = 0;
  uint64_t processes_without_faults = 0;  ///< that could not be given a userfaultfd
  int why_without = 0;                    ///< errno of one of them
  uint64_t processes_with_marks = 0;      ///< of these, those that have soft-dirty marks instead
  uint64_t processes_asleep = 0;          ///< attached, and they never computed when we looked
  uint64_t with_their_own =
      0;  ///< that have a userfaultfd, or use soft-dirty marks, themselves, and were left alone
  uint64_t armed = 0;    ///< pages that were write-protected, each time
  uint64_t cleared = 0;  ///< times that all marks of a process were cleared
  uint64_t written = 0;  ///< pages that were armed or marked, and that somebody wrote to
  uint64_t nobodys = 0;  ///< of these, those whose thread could not be told
  uint64_t events_lost = 0;
  uint64_t huge_split = 0;   ///< huge pages whose mapping was split
  uint64_t huge_joined = 0;  ///< and joined again
  uint64_t areas_refused = 0;
  DataMover::Counts data;       ///< what was moved
  ThreadMover::Counts threads;  ///< who was
  KernelBalancing balancing;    ///< who else moves memory, and how much it was meanwhile
  uint64_t pauses =
      0;  ///< times at which events were off for a while, for they alone cost too much
  bool can_see = true;  ///< accesses; by anybody
  std::string source;   ///< who saw accesses and told threads, in a few words
  std::string blind;    ///< what is not seen this way
  std::string
      no_events;  ///< why there are no events of page faults, and what to do; empty: there are
};

/// Before the program begins: make one, give the program name() in the environment variable BOSK_OBSERVER and the library libbosk-observed.so. Then
/// watch(), then let it run, run() in a thread of ours until stop() is called by another. What was found belongs to the thread that called run()
/// until that has returned.
class Observer {
 public:
  /// `learner` gets all accesses; `writer` too (null: nobody records). Both must live longer. Throws std::system_error.
  Observer(const ObserverSettings& settings, Learner* learner);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  const std::string& name() const;
  /// The process that will be the program; it must not have begun yet. From then on source() and blind() of counts() are known.
  void watch(pid_t process);
  /// Instead of watch(): processes that run already, at least one. They need not have our library in them.
  void attach(const std::vector<pid_t>& processes);
  void record_to(RecordingWriter* writer);
  void run();
  /// From any thread, at any time, once.
  void stop();

  const ObserverCosts& costs() const;
  const ObserverCounts& counts() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace bosk::affinity
