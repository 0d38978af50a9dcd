// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// System calls that act on the calling kernel thread, or ask for its number: of syscall(2), and of the functions that libc has for them
// (acting_functions.cpp).
//
// In a process of two hundred libraries somebody imports them, mostly for threads of its own or for the process. So what counts is what is
// called: a member that shares kernel threads goes to the one of its own identity before such a call, so that nobody else's
// is changed, and whoever asks is told what it has set. Where it runs that does not change: it says so, once. (From the next region on
// a kernel thread for each member would have it, but not the thread-local variables that were there before.)
#include <sys/syscall.h>

#include <atomic>

#include "abi/libc/acting_calls.h"
#include "abi/libc/member_turns.h"
#include "base/message.h"
#include "base/observer_messages.h"
#include "sched/preemption.h"

namespace {

struct ActingCall {
  long number;
  const char* name;
  bool may_be_missed = true;  ///< where it runs should have it
};

constexpr ActingCall kActing[] = {
    {SYS_sched_setaffinity, "sched_setaffinity"},
    {SYS_sched_setattr, "sched_setattr"},
    {SYS_sched_setparam, "sched_setparam"},
    {SYS_sched_setscheduler, "sched_setscheduler"},
    {SYS_set_mempolicy, "set_mempolicy"},
    {SYS_setpriority, "setpriority"},
    {SYS_ioprio_set, "ioprio_set"},
    {SYS_prctl, "prctl", false},
    {SYS_seccomp, "seccomp"},
    {SYS_unshare, "unshare"},
    {SYS_setns, "setns"},
    {SYS_setfsuid, "setfsuid"},
    {SYS_setfsgid, "setfsgid"},
    {SYS_capset, "capset"},
    {SYS_personality, "personality"},
    {SYS_pkey_alloc, "pkey_alloc"},
    {SYS_sigaltstack, "sigaltstack", false},
    {SYS_timer_create, "timer_create", false},
    {SYS_set_robust_list, "set_robust_list", false},
    {SYS_perf_event_open, "perf_event_open"},
    {SYS_ptrace, "ptrace"},
#if defined(SYS_arch_prctl)
    {SYS_arch_prctl, "arch_prctl"},
#endif
};

/// They ask what those above have set.
constexpr long kAsking[] = {
    SYS_sched_getaffinity, SYS_sched_getattr, SYS_sched_getparam, SYS_sched_getscheduler,
    SYS_get_mempolicy,     SYS_getpriority,   SYS_ioprio_get,     SYS_capget,
};

struct Bits {
  uint64_t words[8] = {};
  constexpr void set(long number) { words[number / 64] |= uint64_t{1} << number % 64; }
};
constexpr Bits all_bits() {
  Bits bits;
  for (const ActingCall& call : kActing) bits.set(call.number);
  for (const long number : kAsking) bits.set(number);
  bits.set(SYS_gettid);
  bits.set(SYS_userfaultfd);
  return bits;
}

/// By anybody: where a native member has bound its kernel thread, those that share it have not.
constinit std::atomic<bool> something_is_set{false};

const ActingCall* find_acting(long number) {
  for (const ActingCall& call : kActing)
    if (call.number == number) return &call;
  return nullptr;
}

}  // namespace

/// A bit for each number below 512.
extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const Bits bosk_acting_calls =
    all_bits();

/// Not 0: what the call is to return, without being made.
extern "C" [[gnu::visibility("hidden"), gnu::used]] long bosk_before_acting_call(long number) {
  return bosk::libc::before_acting_call(number);
}

long bosk::libc::before_acting_call(long number) {
  if (number == SYS_userfaultfd) {
    bosk::base::release_from_observer();
    return 0;
  }
  const ActingCall* acting = find_acting(number);
  if (acting != nullptr) something_is_set.store(true, std::memory_order_relaxed);
  sched::Thread* me = context::self();
  if (!may_give_way(me) || me->pinned != nullptr) return 0;
  if (number == SYS_gettid) return me->identity->tid;
  static constinit base::SayOnce once;
  if (acting != nullptr && acting->may_be_missed && once.first())
    base::say(
        "a member calls %s and shares its kernel thread with others: it is set for it, but not where it runs; "
        "BOSK_IDENTITY=kthread gives each member a kernel thread of its own",
        acting->name);
  // Where nobody has set anything all have the same.
  const bool is_there = me->worker == nullptr;
  if (!is_there && something_is_set.load(std::memory_order_relaxed))
    sched::go_to_own_kernel_thread(me);
  return 0;
}
