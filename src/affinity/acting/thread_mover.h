// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Has threads run near those that they share with, from outside of the program (Diener 2014, section 3.4).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "affinity/acting/wish_file.h"
#include "affinity/learner.h"
#include "affinity/mapping.h"
#include "topology/machine.h"

namespace bosk::affinity {

/// The kernel's numbers of CPUs, a bit each.
using CpuSet = std::vector<uint64_t>;
/// How many.
double cpus_in(const CpuSet& set);

/// Masks of threads; a test has threads of its own.
class ThreadSystem {
 public:
  virtual ~ThreadSystem() = default;
  /// Empty: there is no such thread, or it may not be looked at.
  virtual CpuSet mask(uint32_t thread) = 0;
  /// 0, or an errno.
  virtual int set_mask(uint32_t thread, const CpuSet& cpus) = 0;
  /// The numbers of all threads of a process.
  virtual std::vector<uint32_t> threads_of(pid_t process) = 0;
};

class KernelThreads : public ThreadSystem {
 public:
  CpuSet mask(uint32_t thread) override;
  int set_mask(uint32_t thread, const CpuSet& cpus) override;
  std::vector<uint32_t> threads_of(pid_t process) override;
};

/// A thread is given the CPUs of one domain, a last-level cache's or a node's, within which the kernel balances. What a thread makes inherits its mask, and who has
/// a mask of one domain is told that the machine has no other CPUs. So:
/// - threads that have made a thread or a process keep all CPUs, as does the first thread of a process with several;
/// - what was made by a narrowed thread gets all CPUs back as soon as we know of it;
/// - whoever has another mask than the program was given, or than we gave it last, has bound itself, and is left alone for good;
/// - so are the threads of processes that place them themselves (leave_process(): bosk's), which may ask for wishes (place_by_wishes()): then the members of their
///   team are mapped, each with its helpers as one;
/// - no domain has more of them than PUs for them, as long as others have room;
/// - at the end all get back what they had.
///
/// Where memory is moved, too (`stay_with_memory`), threads that share with nobody are given the node that has their memory, so that it need not be moved after them.
///
/// One owner, who alone calls it.
class ThreadMover {
 public:
  struct Counts {
    uint64_t mappings = 0;  ///< that were worth it
    uint64_t moved = 0;     ///< threads that were given another domain, each time
    uint64_t stay = 0;      ///< of these, those that were to stay with their memory
    uint64_t makers =
        0;  ///< that were narrowed, and got all CPUs back since they make threads or processes
    uint64_t bound = 0;    ///< threads that have bound themselves
    uint64_t left = 0;     ///< processes whose threads somebody else places
    uint64_t wished = 0;   ///< members that were wished elsewhere, each time
    uint64_t refused = 0;  ///< that the kernel did not let us move
    int why = 0;           ///< errno of one of these
  };

  /// `given`: the CPUs that the program may use. All must live longer.
  ThreadMover(ThreadSystem* system, const topology::Machine* machine, Learner* learner,
              CpuSet given, bool stay_with_memory);

  /// Is there any choice, more than one domain?
  static bool is_any_use(const topology::Machine& machine);

  /// An access by the thread. O(1).
  void saw(pid_t process, uint32_t thread);
  /// `process` has a thread that `maker` has made; the first of a process is a child's.
  void made(pid_t process, uint32_t thread, uint32_t maker, double now_ns);
  void ended(uint32_t thread);
  /// Its threads are placed by somebody else.
  void leave_process(pid_t process, double now_ns);
  /// It does so as we wish, and has asked for a file of wishes on the socket. Until process_ended().
  void place_by_wishes(pid_t process, const FileDescriptor& socket);
  void process_ended(pid_t process);
  /// made() will not be called: nobody is narrowed.
  void do_without_makers() { knows_makers_ = false; }
  /// It may be that made() was not called of each thread: those of the process that nobody knows get all CPUs if they have what somebody was given by us. O(threads).
  void look_at(pid_t process);
  /// The same of all processes that have narrowed threads, some times a second.
  void look_for_unknown(double now_ns);
  /// Maps anew, if enough was seen since the last time. O(T²).
  void act(double now_ns);
  /// All CPUs to all.
  void give_back(double now_ns);

  /// Is anybody narrowed, so that made() must not come late?
  bool has_narrowed() const { return narrowed_ != 0; }
  const Counts& counts() const { return counts_; }

 private:
  struct Thread {
    pid_t process;
    uint32_t pu = kNoPu;      ///< where a mapping wants it
    uint32_t domain = kNoPu;  ///< whose CPUs it was given
    uint32_t before = kNoPu;  ///< and before it got all back, at that time
    double widened = 0;
    bool is_maker = false;
    bool is_left = false;
  };

  /// A domain for threads.
  struct Room {
    CpuSet cpus;
    uint32_t pus = 0;
    uint32_t threads = 0;  ///< that have been given it
  };

  /// What is mapped: a thread that we move, or by a process's wishes a member of its team with those who help it.
  struct Piece {
    uint32_t number = 0;  ///< of the thread
    uint32_t row = 0;     ///< of the thread
    WishFile* by = nullptr;
    uint32_t member = 0;
  };
  /// And which one each row of the matrix belongs to.
  struct Pieces {
    static constexpr uint32_t kNone = UINT32_MAX;
    std::vector<Piece> all;
    Placement present;
    std::vector<uint32_t> of_row;
  };

  uint32_t domain_of(uint32_t pu) const;
  void read_wish_files();
  Pieces find_pieces() const;
  void wish(const Pieces& pieces, std::span<const uint32_t> placement);
  bool may_move(uint32_t number, const Thread& thread) const;
  bool narrow(uint32_t number, Thread* thread, uint32_t pu);
  void give_domain(Thread* thread, uint32_t domain);
  uint32_t most_in(const Room& room) const;
  void keep_with_memory(const Piece& piece, uint32_t present);
  void widen_where_too_many(double now_ns);
  void widen(uint32_t number, Thread* thread, double now_ns);
  void make_room_for(uint32_t number, const Thread& maker, double now_ns);

  ThreadSystem* system_;
  const topology::Machine* machine_;
  Learner* learner_;
  CpuSet given_;
  bool stay_with_memory_;
  bool knows_makers_ = true;
  uint32_t pus_ = 0;                ///< that it was given
  std::map<uint32_t, Room> rooms_;  ///< by their first PU
  std::unordered_map<uint32_t, Thread> threads_;
  std::map<pid_t, uint32_t> processes_;  ///< how many threads of each we have seen
  std::set<pid_t> left_;
  std::map<pid_t, std::unique_ptr<WishFile>> wishes_;
  uint64_t rung_at_ = 0;  ///< accesses
  uint32_t narrowed_ = 0;
  double again_ = 0;
  double looked_ = 0;
  uint64_t accesses_ = 0;
  Counts counts_;
};

}  // namespace bosk::affinity
