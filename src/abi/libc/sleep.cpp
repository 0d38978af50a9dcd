// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Short sleeps: members that wait outside of the runtime by usleep(1) and the like, as loops of libraries and of progress threads do.
//
// Nobody comes back from a sleep before its time, and the kernel's shortest takes some 60 us. Meanwhile the worker has its other members
// run, one turn; what then is left of the time is slept in the kernel, so that a team of which all sleep takes no processor time.
// Those behind find that theirs has passed by then. Exported without a version, as yield.cpp is and with the same limits.
#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "abi/gomp/export.h"
#include "abi/libc/member_turns.h"
#include "abi/libc/of_libc.h"
#include "sched/clock.h"
#include "sched/turns.h"

namespace {

using bosk::sched::Thread;

/// Sleeps of up to so much are waits; who sleeps for longer means it.
constexpr long kShortNs = 50'000;
/// A turn of the others that took so long was work, not a wait: a slice of a period, say. Who polls must not wait for that each time,
/// so his next sleeps are the kernel's, and he goes on when they are over.
constexpr long kLongTurnNs = 5'000'000;
constexpr uint8_t kSleepsAfterLongTurn = 16;

/// libc's, which is a place where threads can be cancelled. An errno value. A tick may end it, and then it goes on, perhaps on another kernel
/// thread, with what the kernel says is left: so that is always asked for, and in a place of our own. Programs that go on after signals of
/// theirs have it written where they say how long, which nobody but such a signal may change.
int sleep_by_clock(clockid_t clock, int flags, const timespec* time, timespec* rest) {
  timespec left{};
  const int error = bosk::libc::of_libc().clock_nanosleep(clock, flags, time, &left);
  if (error == EINTR && rest != nullptr && (flags & TIMER_ABSTIME) == 0) *rest = left;
  return error;
}

int sleep_in_kernel(const timespec* time, timespec* rest) {
  const int error = sleep_by_clock(CLOCK_REALTIME, 0, time, rest);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

/// True: the time has passed, or there is none to pass, while others had a turn. False: `*ns` are left of it.
bool pass_by_a_turn(long* ns) {
  Thread* me = bosk::context::self();
  if (!bosk::libc::may_give_way(me)) return false;
  if (me->sleeps_in_kernel != 0) {
    --me->sleeps_in_kernel;
    return false;
  }
  const uint64_t start = bosk::sched::clock_now();
  if (!bosk::sched::give_way(me)) return false;
  const auto passed = static_cast<long>(bosk::sched::clock_now() - start);
  if (passed > kLongTurnNs) me->sleeps_in_kernel = kSleepsAfterLongTurn;
  if (passed >= *ns) {
    pthread_testcancel();
    return true;
  }
  *ns -= passed;
  return false;
}

int sleep_for(const timespec* time, timespec* rest) {
  if (time == nullptr || time->tv_sec != 0 || time->tv_nsec < 0 || time->tv_nsec > kShortNs)
    return sleep_in_kernel(time, rest);
  long ns = time->tv_nsec;
  if (pass_by_a_turn(&ns)) return 0;
  const timespec left{0, ns};
  return sleep_in_kernel(&left, rest);
}

}  // namespace

BOSK_EXPORT int nanosleep(const timespec* time, timespec* rest) { return sleep_for(time, rest); }

BOSK_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* rest) {
  return sleep_by_clock(clock, flags, time, rest);
}

BOSK_EXPORT int thrd_sleep(const timespec* time, timespec* rest) {
  const int error = sleep_by_clock(CLOCK_REALTIME, 0, time, rest);
  return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

BOSK_EXPORT int usleep(useconds_t us) {
  const timespec time{static_cast<time_t>(us / 1'000'000),
                      static_cast<long>(us % 1'000'000) * 1000};
  return sleep_for(&time, nullptr);
}

BOSK_EXPORT unsigned int sleep(unsigned int seconds) {
  const timespec time{static_cast<time_t>(seconds), 0};
  timespec rest{};
  const int before = errno;
  if (sleep_for(&time, &rest) != 0) return static_cast<unsigned int>(rest.tv_sec);
  errno = before;
  return 0;
}
