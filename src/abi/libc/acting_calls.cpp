// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of syscall(2) that act on the calling kernel thread, or ask for its number.
//
// In a process of two hundred libraries somebody imports syscall(2), mostly for what libc has no name for. So what counts is what is
// called: a member that shares kernel threads goes to the one of its own identity before such a call, so that nobody else's
// is changed, and from the next level-1 region on each member has a kernel thread of its own (context/observers.h).
#include <sys/syscall.h>

#include "abi/libc/member_turns.h"
#include "context/observers.h"
#include "sched/preemption.h"

namespace {

struct ActingCall {
  long number;
  const char* name;
};

constexpr ActingCall kActing[] = {
    {SYS_sched_setaffinity, "sched_setaffinity by syscall"},
    {SYS_sched_setattr, "sched_setattr by syscall"},
    {SYS_sched_setparam, "sched_setparam by syscall"},
    {SYS_sched_setscheduler, "sched_setscheduler by syscall"},
    {SYS_set_mempolicy, "set_mempolicy by syscall"},
    {SYS_setpriority, "setpriority by syscall"},
    {SYS_ioprio_set, "ioprio_set by syscall"},
    {SYS_prctl, "prctl by syscall"},
    {SYS_seccomp, "seccomp by syscall"},
    {SYS_unshare, "unshare by syscall"},
    {SYS_setns, "setns by syscall"},
    {SYS_setfsuid, "setfsuid by syscall"},
    {SYS_setfsgid, "setfsgid by syscall"},
    {SYS_capset, "capset by syscall"},
    {SYS_personality, "personality by syscall"},
    {SYS_pkey_alloc, "pkey_alloc by syscall"},
    {SYS_sigaltstack, "sigaltstack by syscall"},
    {SYS_timer_create, "timer_create by syscall"},
    {SYS_set_robust_list, "set_robust_list by syscall"},
    {SYS_perf_event_open, "perf_event_open by syscall"},
    {SYS_ptrace, "ptrace by syscall"},
};

struct Bits {
  uint64_t words[8] = {};
  constexpr void set(long number) { words[number / 64] |= uint64_t{1} << number % 64; }
};
constexpr Bits all_bits() {
  Bits bits;
  for (const ActingCall& call : kActing) bits.set(call.number);
  bits.set(SYS_gettid);
  return bits;
}

}  // namespace

/// A bit for each number below 512.
extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const Bits bosk_acting_calls =
    all_bits();

/// Not 0: what the call is to return, without being made.
extern "C" [[gnu::visibility("hidden"), gnu::used]] long bosk_before_acting_call(long number) {
  using namespace bosk;
  sched::Thread* me = context::self();
  if (!libc::may_give_way(me) || me->pinned != nullptr || me->worker == nullptr) return 0;
  if (number == SYS_gettid) return me->identity->tid;
  for (const ActingCall& call : kActing)
    if (call.number == number) context::note_acting_call(call.name);
  sched::go_to_own_kernel_thread(me);
  return 0;
}
