// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The processor time of the calling thread: what the kernel says is its kernel thread's, which may run many members. All other clocks are
// libc's, at the price of a comparison.
#include <sys/resource.h>
#include <time.h>

#include <atomic>

#include "abi/gomp/export.h"
#include "abi/libc/of_libc.h"
#include "context/thread_block.h"
#include "sched/cpu_clock.h"

namespace {

/// False: the kernel's answer is right.
bool ask(uint64_t* ns) {
  bosk::sched::expect_questions_for_cpu_time();
  bosk::sched::Thread* me = bosk::context::self();
  // In the scheduler it is a signal's handler that asks.
  return me != nullptr && me->pool != nullptr && bosk::context::thread_block()->preempt_off == 0 &&
         bosk::sched::ask_cpu_time(me, ns);
}

timeval timeval_of(uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<suseconds_t>(ns / 1000 % 1'000'000)};
}
uint64_t ns_of(const timeval& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_usec) * 1000;
}

/// libc's, or what stands before it: kept here, because programs read clocks often.
constinit std::atomic<int (*)(clockid_t, timespec*)> of_others{nullptr};

[[gnu::cold, gnu::noinline]] int first_time(clockid_t clock, timespec* time) {
  // relaxed: whoever looks finds the same.
  int (*const found)(clockid_t, timespec*) = bosk::libc::of_libc().clock_gettime;
  of_others.store(found, std::memory_order_relaxed);
  return found(clock, time);
}

int ask_others(clockid_t clock, timespec* time) {
  const auto known = of_others.load(std::memory_order_relaxed);
  return BOSK_LIKELY(known != nullptr) ? known(clock, time) : first_time(clock, time);
}

[[gnu::cold, gnu::noinline]] int its_time(timespec* time) {
  uint64_t ns;
  if (!ask(&ns)) return ask_others(CLOCK_THREAD_CPUTIME_ID, time);
  *time = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  return 0;
}

}  // namespace

BOSK_EXPORT int clock_gettime(clockid_t clock, timespec* time) noexcept {
  return BOSK_LIKELY(clock != CLOCK_THREAD_CPUTIME_ID) ? ask_others(clock, time) : its_time(time);
}

/// The kernel's figures but the times: these in the proportion that it has for the kernel thread.
BOSK_EXPORT int getrusage(__rusage_who_t who, rusage* usage) noexcept {
  const int result = bosk::libc::of_libc().getrusage(who, usage);
  uint64_t total;
  if (who != RUSAGE_THREAD || result != 0 || !ask(&total)) return result;
  const uint64_t user = ns_of(usage->ru_utime);
  const uint64_t both = user + ns_of(usage->ru_stime);
  const double part = both == 0 ? 1 : static_cast<double>(user) / static_cast<double>(both);
  const auto mine = static_cast<uint64_t>(static_cast<double>(total) * part);
  usage->ru_utime = timeval_of(mine);
  usage->ru_stime = timeval_of(total - mine);
  return result;
}
