// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Identities: the POSIX threads (TLS, TCB, pthread_self, stack) that user-level threads run under.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "base/atomics_policy.h"
#include "base/command_word.h"
#include "base/cpu.h"
#include "base/syscalls.h"
#include "context/call_note.h"
#include "context/thread_block.h"

namespace bosk::context {

constexpr size_t kRecordRoom = 2048;

enum class IdentityKind : uint8_t {
  kNative,  ///< a kernel thread's own: a worker's, main's, any pthread's that called in
  kDonor,   ///< a parked kernel thread's, lent to whatever kernel thread runs the context
};

/// A POSIX thread together with its kernel thread. Donors are pooled until they are ended; native ones
/// live as long as their thread.
///
/// A donor's kernel thread parks on a small stack of its own, because signals that cannot be blocked
/// (glibc's broadcast for set*id) run their handler on the parked thread's current stack, and the
/// big stack is lent away. All other signals are blocked, and rseq is unregistered: the kernel would
/// go on writing the parked thread's CPU number into TLS that runs elsewhere.
struct alignas(base::kCacheLine) Identity {
  uintptr_t thread_pointer = 0;  ///< FS base / TPIDR_EL0
  ThreadBlock* block = nullptr;  ///< its thread_block()
  IdentityKind kind = IdentityKind::kNative;
  int tid = 0;  ///< of its kernel thread
  pthread_t pthread{};
  char* stack_low = nullptr;  ///< the stack that POSIX says is its own
  char* stack_high = nullptr;
  Identity* next = nullptr;  ///< link in the pool, or in the list of those a team holds

  // The kernel thread, while it does not run user code.
  base::CommandWord<base::StdAtomics> command;  ///< kRun, kEnd
  static constexpr uint32_t kRun = 1;           ///< run the context below
  static constexpr uint32_t kEnd = 2;
  void* run_sp = nullptr;  ///< written before kRun is given
  uintptr_t run_thread_pointer = 0;
  base::KernelSigset run_mask = 0;         ///< signal mask for what it runs
  void* park_sp = nullptr;                 ///< context of the park loop
  void (*parked_action)(void*) = nullptr;  ///< done by the park loop after it was switched to
  void* parked_argument = nullptr;
  void* start_sp = nullptr;   ///< donor: the pthread's start frame, to end it properly
  char* park_slab = nullptr;  ///< donor: the mapping that its park stack is part of

  // Preemption timer of the kernel thread (sched/preemption_protocol.h). Any kernel thread may start it.
  std::atomic<int> timer{-1};  ///< kernel timer id, -1: none yet; counts CPU time
  std::atomic<int> soon{-1};   ///< another, for ticks that come sooner; counts time
  std::atomic<int> samples{
      -1};  ///< a third, for the report (sched/time_samples.h); counts CPU time
  std::atomic<uint32_t> timer_armed{0};
  std::atomic<uint32_t> idle_ticks{0};   ///< ticks in a row that found nothing else to run
  std::atomic<bool> quick_ticks{false};  ///< a tick is to come sooner
  // The monitor's: its CPU time at the last look that found it changed, and when that was.
  uint64_t seen_clock = 0;
  uint64_t seen_at = 0;
  uint32_t idle_looks = 0;
  CallNote call_note;
  // Of an initial thread's that polls outside of regions (sched/spins/outside.h). Its own, in its ticks:
  std::atomic<uint32_t> polls_outside{
      0};  ///< ticks that found it polling there; relaxed: the monitor sees that it grows
  uint32_t poll_pause_us = 0;    ///< the last one's pause
  bool poll_pause_due = false;   ///< … which is still to come
  uint64_t poll_states[2] = {};  ///< digests of its registers then
  uint64_t poll_region = 0;      ///< Thread::flat_regions then
  // The monitor's:
  uint32_t polls_seen = 0;         ///< of these ticks, so many at the last look
  uint64_t polls_clock = 0;        ///< CPU time when that changed, or when it was told last
  uint64_t polls_patience_ns = 0;  ///< so much more of it until it is told again
  uint64_t polls_last_clock = 0;   ///< CPU time at the last look
  uint32_t member_index = 0;       ///< whose it is while a team holds it
  uint32_t bound_place = 0;        ///< OpenMP place of the kernel thread plus one; 0: not bound

  void* records = nullptr;  ///< donor: room for the scheduler's record, kRecordRoom bytes
};

/// Where contexts can be given identities of their own.
enum class Provider : uint8_t {
  kUnknown,
  kDonors,         ///< FS base can be set from user space and the self-test passed
  kKernelThreads,  ///< one kernel thread per OpenMP thread
};

/// Decides once (self-test: two contexts, TLS, errno, switches under a donor's identity) and says so
/// in one line if identities are unavailable. `reason` (may be null) receives why.
Provider provider();

/// Why it is kKernelThreads, in a few words; null where it is not.
const char* provider_obstacle();

/// Fills in what identifies the calling kernel thread. For native identities only.
void adopt_calling_thread(Identity* identity);
/// Before it ends, or `identity` is freed.
void disown_calling_thread(Identity* identity);

/// In a forked child that runs on the stack of another thread than the one it is under the identity of: the C library knows of no thread
/// that has that stack, and would give it to the next one, or unmap it. It takes a stack for free whose descriptor has the number of no
/// kernel thread; from now on it has one. For native identities; donors' stacks are ours.
void keep_stack_of(const Identity* owner);

/// Takes rseq away from the calling thread (see above). Harmless if it was not registered.
void unregister_rseq();
/// Where the calling thread's identity has its own. False: the kernel thread is registered with another identity's.
bool register_rseq();
/// The calling thread's, if it is registered with the identity that has this thread pointer; else false. The area has to be there.
bool unregister_rseq_of(uintptr_t thread_pointer);

/// Runs on the big stack of a donor when the first thread is switched to it.
using DonorEntry = void (*)(void* identity);

/// A wish to the factory kernel thread, which serves one after the other. The caller owns the memory
/// until finished() was called.
struct DonorRequest {
  size_t stack_size = 0;
  DonorEntry entry = nullptr;  ///< donor: first function on its stack, argument: the Identity
  /// Not null: make a plain kernel thread that runs this. True: somebody joins it; else it is detached.
  bool (*thread_main)(void*) = nullptr;
  void* argument = nullptr;     ///< of thread_main; otherwise free for the caller
  base::KernelSigset mask = 0;  ///< signal mask of the kernel thread
  void* initial_sp = nullptr;   ///< out: what to switch to, to start `entry`
  int error = 0;                ///< out: errno value, 0 if it was made
  /// Called by the factory; `identity` is null on failure. A kernel thread that was made is not
  /// reported here: its thread_main tells, and may end the life of the request.
  void (*finished)(DonorRequest*, Identity* identity) = nullptr;
  DonorRequest* next = nullptr;
};

/// Queues the request and returns at once; no lock of libc is taken once the factory runs, so it may
/// be called with preemption off then. False: the factory cannot be started (request->error).
bool request_donor(DonorRequest* request);

/// Starts the factory if it does not run. False: it cannot be started. Before the first tick: a handler
/// that had to start it would call pthread_create, perhaps in the middle of malloc.
bool start_factory_early();

/// Lets a parked donor end: its POSIX thread runs its destructors and exits. Its stack is unmapped
/// when the factory has joined it.
void release_donor(Identity* identity);

/// The two halves of it, for callers that join the thread themselves. Its destructors are the program's
/// code: nothing that they may wait for must wait for join_donor().
void end_donor(Identity* identity);
void join_donor(Identity* identity);

/// Ends the factory when it has served what is queued; the next request starts another. True: the caller
/// joins `*thread`. One caller at a time.
bool stop_factory(pthread_t* thread);

/// After fork, in the child: the factory and all donors are gone; forget them.
void identity_forget_after_fork();

/// Default stack size of new threads: RLIMIT_STACK's soft limit when the process began, or 8 MiB where that is
/// unlimited.
size_t default_stack_size();

/// Donors and kernel threads made so far, for the report.
struct IdentityCounts {
  uint64_t donors;
  uint64_t kernel_threads;
};
IdentityCounts identity_counts();

}  // namespace bosk::context
