// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same calls by the functions that libc has for them, as most libraries make them: see numbers.c.
#define _GNU_SOURCE
#include "numbers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

long number_of_thread(void) { return gettid(); }

int cpus_by_number(void) {
  cpu_set_t set, by_thread;
  if (sched_getaffinity(0, sizeof set, &set) != 0 ||
      pthread_getaffinity_np(pthread_self(), sizeof by_thread, &by_thread) != 0)
    return -1;
  return CPU_EQUAL(&set, &by_thread) ? CPU_COUNT(&set) : -2;
}

int bind_by_number(void) {
  static int times;
  cpu_set_t set, first;
  CPU_ZERO(&first);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &set)) {
      CPU_SET(cpu, &first);
      break;
    }
  // One way and the other.
  return __atomic_fetch_add(&times, 1, __ATOMIC_RELAXED) % 2 == 0
             ? sched_setaffinity(0, sizeof first, &first)
             : pthread_setaffinity_np(pthread_self(), sizeof first, &first);
}

long bad_call(int* error) {
  errno = 0;
  struct sched_param parameters = {.sched_priority = 1};
  const long result = sched_setparam(-1, &parameters);
  // What the kernel says of a thread that cannot be.
  *error = errno == EINVAL ? EBADF : errno;
  return result;
}

int map_by_number(int descriptor, long offset) {
  void* address = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, descriptor, offset);
  if (address == MAP_FAILED) return -1;
  const int byte = *(const unsigned char*)address;
  munmap(address, 4096);
  return byte;
}

static int status_of(pid_t child) {
  int ended = 0;
  if (child < 0 || waitpid(child, &ended, 0) != child || !WIFEXITED(ended)) return -1;
  return WEXITSTATUS(ended);
}

int vfork_and_call(int status) {
  const pid_t child = vfork();
  if (child == 0) {
    cpu_set_t all;
    const int got = sched_getaffinity(0, sizeof all, &all);
    _exit(gettid() == getpid() && got == 0 && setpriority(PRIO_PROCESS, 0, 1) == 0 &&
                  getpriority(PRIO_PROCESS, 0) == 1 && prctl(PR_SET_NAME, "child") == 0
              ? status
              : 255);
  }
  return status_of(child);
}

int fork_by_number(int status) {
  const pid_t child = fork();
  if (child == 0) _exit(gettid() == getpid() && nice(1) != -1 ? status : 255);
  return status_of(child);
}

int name_thread(const char* name) { return pthread_setname_np(pthread_self(), name); }
int name_of_thread(char* name) {
  char by_call[16];
  if (prctl(PR_GET_NAME, by_call) != 0 || pthread_getname_np(pthread_self(), name, 16) != 0)
    return -1;
  for (int i = 0; i < 16 && (by_call[i] | name[i]) != 0; i++)
    if (by_call[i] != name[i]) return -1;
  return 0;
}

int set_nice(int value) { return setpriority(PRIO_PROCESS, 0, value); }
int nice_of_thread(void) { return getpriority(PRIO_PROCESS, 0); }

int set_signal_stack(void* memory, unsigned long bytes) {
  const stack_t stack = {.ss_sp = memory, .ss_size = bytes};
  return sigaltstack(&stack, NULL);
}
void* signal_stack(void) {
  stack_t stack;
  return sigaltstack(NULL, &stack) == 0 ? stack.ss_sp : (void*)-1;
}
