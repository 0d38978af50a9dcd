// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sched_yield() and its like: members that wait outside of the runtime give their worker to others of their pool. A CPU that the
// kernel gave to somebody else would be of no use where the one who is waited for has no kernel thread at the moment.
//
// Exported without a version, like the functions in texts.cpp. Where libc's come first members are preempted by ticks, as before.
#include <sched.h>
#include <threads.h>

#include "abi/gomp/export.h"
#include "abi/libc/member_turns.h"
#include "base/syscalls.h"
#include "sched/doing.h"
#include "sched/turns.h"

namespace {

using bosk::sched::Thread;

/// Every so many turns the kernel has a look, too: who is waited for may be on a kernel thread of its own, on this CPU.
constexpr uint32_t kTurnsOfKernel = 16;

int yield() {
  Thread* me = bosk::context::self();
  if (!bosk::libc::may_give_way(me)) {
    bosk::base::raw_syscall(SYS_sched_yield);
    return 0;
  }
  const bosk::sched::DoesMeanwhile yields(me, bosk::sched::Does::kYielding);
  if (!bosk::sched::give_way(me) || me->times_left % kTurnsOfKernel == 0)
    bosk::base::raw_syscall(SYS_sched_yield);
  return 0;
}

}  // namespace

// What programs of before glibc 2.34 import; since then its header means sched_yield().
BOSK_EXPORT int bosk_pthread_yield() noexcept __asm__("pthread_yield");

BOSK_EXPORT int sched_yield() noexcept { return yield(); }
int bosk_pthread_yield() noexcept { return yield(); }
BOSK_EXPORT void thrd_yield() { yield(); }
