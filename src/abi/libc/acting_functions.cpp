// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of libc's that act on the calling kernel thread, or ask what was set for it: as syscall(2), see acting_calls.cpp. Those that are
// told another thread act on that one's, which has what they set as long as it lives.
//
// Exported without a version, as the other functions here. Where libc comes first and the importer's slots cannot be led here
// (context/taken_calls.h), members have kernel threads of their own.
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/gomp/export.h"
#include "abi/libc/acting_calls.h"
#include "abi/libc/of_libc.h"
#include "base/syscalls.h"

namespace {

using bosk::base::address_of;
using bosk::base::raw_syscall;
using bosk::libc::before_acting_call;
using bosk::libc::of_libc;

/// As libc's functions return it. errno is the identity's, wherever that runs now.
long result_of(long result) {
  if (result < 0 && result >= -4095) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

template <typename... Arguments>
long call(long number, Arguments... arguments) {
  before_acting_call(number);
  return result_of(raw_syscall(number, arguments...));
}

/// `thread`: 0 is the caller.
template <typename... Arguments>
int call_for(pid_t thread, long number, Arguments... arguments) {
  if (thread == 0) before_acting_call(number);
  return static_cast<int>(result_of(raw_syscall(number, thread, arguments...)));
}

/// 0, or an error's number, negative.
long mask_of(pid_t thread, size_t bytes, cpu_set_t* set) {
  const size_t most = bytes < INT_MAX ? bytes : INT_MAX;
  const long written =
      raw_syscall(SYS_sched_getaffinity, thread, static_cast<long>(most), address_of(set));
  if (written < 0) return written;
  memset(reinterpret_cast<char*>(set) + written, 0, bytes - static_cast<size_t>(written));
  return 0;
}

/// It is about the process, or the memory.
bool is_of_process(int option) {
  switch (option) {
    case PR_SET_DUMPABLE:
    case PR_GET_DUMPABLE:
    case PR_SET_PTRACER:
    case PR_SET_CHILD_SUBREAPER:
    case PR_GET_CHILD_SUBREAPER:
    case PR_SET_MM:
    case PR_SET_THP_DISABLE:
    case PR_GET_THP_DISABLE:
    case PR_SET_VMA:
      return true;
    default:
      return false;
  }
}

bool is_caller(pthread_t thread) { return pthread_equal(thread, pthread_self()) != 0; }

}  // namespace

// ---- by the kernel's number of the thread, or of the caller

BOSK_EXPORT pid_t gettid() noexcept {
  const long known = before_acting_call(SYS_gettid);
  return known != 0 ? static_cast<pid_t>(known) : bosk::base::thread_id();
}

BOSK_EXPORT int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t* set) noexcept {
  return call_for(thread, SYS_sched_setaffinity, static_cast<long>(bytes), address_of(set));
}

BOSK_EXPORT int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* set) noexcept {
  if (thread == 0) before_acting_call(SYS_sched_getaffinity);
  return static_cast<int>(result_of(mask_of(thread, bytes, set)));
}

BOSK_EXPORT int sched_setparam(pid_t thread, const sched_param* parameters) noexcept {
  return call_for(thread, SYS_sched_setparam, address_of(parameters));
}

BOSK_EXPORT int sched_getparam(pid_t thread, sched_param* parameters) noexcept {
  return call_for(thread, SYS_sched_getparam, address_of(parameters));
}

BOSK_EXPORT int sched_setscheduler(pid_t thread, int policy,
                                   const sched_param* parameters) noexcept {
  return call_for(thread, SYS_sched_setscheduler, policy, address_of(parameters));
}

BOSK_EXPORT int sched_getscheduler(pid_t thread) noexcept {
  return call_for(thread, SYS_sched_getscheduler);
}

namespace {

/// The system call returns 20 less the priority, so that it is never negative.
constexpr int kPriorityBase = 20;

bool is_calling_thread(int which, id_t who) { return which == PRIO_PROCESS && who == 0; }

}  // namespace

BOSK_EXPORT int setpriority(__priority_which_t which, id_t who, int priority) noexcept {
  if (is_calling_thread(which, who)) before_acting_call(SYS_setpriority);
  return static_cast<int>(
      result_of(raw_syscall(SYS_setpriority, which, static_cast<long>(who), priority)));
}

BOSK_EXPORT int getpriority(__priority_which_t which, id_t who) noexcept {
  if (is_calling_thread(which, who)) before_acting_call(SYS_getpriority);
  const long result = result_of(raw_syscall(SYS_getpriority, which, static_cast<long>(who)));
  return result < 0 ? -1 : kPriorityBase - static_cast<int>(result);
}

BOSK_EXPORT int nice(int increment) noexcept {
  before_acting_call(SYS_setpriority);
  const long before = result_of(raw_syscall(SYS_getpriority, PRIO_PROCESS, 0));
  if (before < 0) return -1;
  const long wanted = kPriorityBase - before + increment;
  const long result = raw_syscall(SYS_setpriority, PRIO_PROCESS, 0, wanted);
  // What it says who is not privileged.
  if (result_of(result == -EACCES ? -EPERM : result) < 0) return -1;
  const long after = result_of(raw_syscall(SYS_getpriority, PRIO_PROCESS, 0));
  return after < 0 ? -1 : kPriorityBase - static_cast<int>(after);
}

// ---- of the caller only

BOSK_EXPORT int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  long arguments[4];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (!is_of_process(option)) before_acting_call(SYS_prctl);
  return static_cast<int>(result_of(
      raw_syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3])));
}

BOSK_EXPORT int sigaltstack(const stack_t* stack, stack_t* before) noexcept {
  return static_cast<int>(call(SYS_sigaltstack, address_of(stack), address_of(before)));
}

BOSK_EXPORT int unshare(int flags) noexcept { return static_cast<int>(call(SYS_unshare, flags)); }

BOSK_EXPORT int setns(int descriptor, int type) noexcept {
  return static_cast<int>(call(SYS_setns, descriptor, type));
}

BOSK_EXPORT int setfsuid(uid_t user) noexcept {
  return static_cast<int>(call(SYS_setfsuid, static_cast<long>(user)));
}

BOSK_EXPORT int setfsgid(gid_t group) noexcept {
  return static_cast<int>(call(SYS_setfsgid, static_cast<long>(group)));
}

BOSK_EXPORT int capset(cap_user_header_t header, cap_user_data_t data) noexcept {
  return static_cast<int>(call(SYS_capset, address_of(header), address_of(data)));
}

BOSK_EXPORT int capget(cap_user_header_t header, cap_user_data_t data) noexcept {
  return static_cast<int>(call(SYS_capget, address_of(header), address_of(data)));
}

BOSK_EXPORT int personality(unsigned long persona) noexcept {
  return static_cast<int>(call(SYS_personality, static_cast<long>(persona)));
}

// ---- of a thread: libc goes by the identity's own number, but for the names of the caller

BOSK_EXPORT int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  if (is_caller(thread)) before_acting_call(SYS_prctl);
  return of_libc().pthread_setname_np(thread, name);
}

BOSK_EXPORT int pthread_getname_np(pthread_t thread, char* name, size_t size) noexcept {
  if (is_caller(thread)) before_acting_call(SYS_prctl);
  return of_libc().pthread_getname_np(thread, name, size);
}

BOSK_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t bytes,
                                       const cpu_set_t* set) noexcept {
  if (is_caller(thread)) before_acting_call(SYS_sched_setaffinity);
  return of_libc().pthread_setaffinity_np(thread, bytes, set);
}

BOSK_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t* set) noexcept {
  if (!is_caller(thread)) return of_libc().pthread_getaffinity_np(thread, bytes, set);
  // Where it runs: a kernel thread of its own may never have run yet, and have another mask.
  before_acting_call(SYS_sched_getaffinity);
  return static_cast<int>(-mask_of(0, bytes, set));
}

BOSK_EXPORT int pthread_getschedparam(pthread_t thread, int* policy,
                                      sched_param* parameters) noexcept {
  if (is_caller(thread)) before_acting_call(SYS_sched_getscheduler);
  return of_libc().pthread_getschedparam(thread, policy, parameters);
}

BOSK_EXPORT int pthread_setschedparam(pthread_t thread, int policy,
                                      const sched_param* parameters) noexcept {
  if (is_caller(thread)) before_acting_call(SYS_sched_setscheduler);
  return of_libc().pthread_setschedparam(thread, policy, parameters);
}

BOSK_EXPORT int pthread_setschedprio(pthread_t thread, int priority) noexcept {
  if (is_caller(thread)) before_acting_call(SYS_sched_setparam);
  return of_libc().pthread_setschedprio(thread, priority);
}
