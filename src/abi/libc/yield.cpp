// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sched_yield() and its like: members that wait outside of the runtime give their worker to others of their pool. A CPU that the
// kernel gave to somebody else would be of no use where the one who is waited for has no kernel thread at the moment.
//
// Exported without a version, like the functions in texts.cpp. Where libc's come first members are preempted by ticks, as before.
#include <sched.h>
#include <threads.h>

#include "abi/gomp/export.h"
#include "abi/libc/member_turns.h"
#include "base/cpu.h"
#include "base/syscalls.h"
#include "omp/team.h"
#include "sched/doing.h"
#include "sched/turns.h"

namespace {

using bosk::sched::Thread;

/// Every so many turns the kernel has a look, too: who is waited for may be on a kernel thread of its own, on this CPU.
constexpr uint32_t kTurnsOfKernel = 16;
/// Who is alone on its worker has to look at the whole pool, which takes longer than the kernel's own call, and takes lines from others'
/// caches; and what it finds is the other member of a worker that has two, which that one then takes back. So it asks the kernel a few times
/// first. In a flat team, whose other members all run, it is alone for good. On sixteen CPUs a ring of sixteen members took twice as long.
constexpr uint8_t kYieldsAlone = 4;
constexpr uint8_t kYieldsOfFlatTeam = 32;
/// … unless the kernel has given the CPU to somebody else meanwhile: then it is time to look again.
constexpr uint64_t kAloneUs = 5;

bool is_in_flat_team(const Thread* me) { return me->member != nullptr && me->member->team->flat; }

void yield_in_kernel(Thread* me) {
  const uint64_t before = bosk::base::cycles();
  bosk::base::raw_syscall(SYS_sched_yield);
  const uint64_t took = bosk::base::cycles() - before;
  if (took > kAloneUs * bosk::base::cycles_per_microsecond()) me->yields_in_kernel = 0;
}

int yield() {
  Thread* me = bosk::context::self();
  const bool alone = bosk::libc::is_member(me) && bosk::sched::is_alone(me);
  if (alone && me->yields_in_kernel != 0) {
    const bosk::sched::DoesMeanwhile yields(me, bosk::sched::Does::kYielding);
    --me->yields_in_kernel;
    yield_in_kernel(me);
    return 0;
  }
  if (!bosk::libc::may_give_way(me)) {
    bosk::base::raw_syscall(SYS_sched_yield);
    return 0;
  }
  const bosk::sched::DoesMeanwhile yields(me, bosk::sched::Does::kYielding);
  const bool others_ran = bosk::sched::give_way(me);
  if (alone) me->yields_in_kernel = is_in_flat_team(me) ? kYieldsOfFlatTeam : kYieldsAlone;
  if (!others_ran || me->times_left % kTurnsOfKernel == 0) yield_in_kernel(me);
  return 0;
}

}  // namespace

// What programs of before glibc 2.34 import; since then its header means sched_yield().
BOSK_EXPORT int bosk_pthread_yield() noexcept __asm__("pthread_yield");

BOSK_EXPORT int sched_yield() noexcept { return yield(); }
int bosk_pthread_yield() noexcept { return yield(); }
BOSK_EXPORT void thrd_yield() { yield(); }
