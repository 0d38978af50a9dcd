// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls by number, as libraries make them: see numbers.c.
#define _GNU_SOURCE
#include "numbers.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

long number_of_thread(void) { return syscall(SYS_gettid); }

int cpus_by_number(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  return syscall(SYS_sched_getaffinity, 0, sizeof set, &set) > 0 ? CPU_COUNT(&set) : -1;
}

int bind_by_number(void) {
  cpu_set_t set, first;
  CPU_ZERO(&set);
  CPU_ZERO(&first);
  if (syscall(SYS_sched_getaffinity, 0, sizeof set, &set) <= 0) return -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &set)) {
      CPU_SET(cpu, &first);
      break;
    }
  return (int)syscall(SYS_sched_setaffinity, 0, sizeof first, &first);
}

long bad_call(int* error) {
  errno = 0;
  const long result = syscall(SYS_read, -1, (void*)0, 0);
  *error = errno;
  return result;
}

int map_by_number(int descriptor, long offset) {
  const long address = syscall(SYS_mmap, (void*)0, 4096L, (long)PROT_READ, (long)MAP_PRIVATE,
                               (long)descriptor, offset);
  if (address == -1) return -1;
  const int byte = *(const unsigned char*)address;
  munmap((void*)address, 4096);
  return byte;
}

int vfork_and_call(int status) {
  const pid_t child = vfork();
  if (child == 0) {
    const long number = syscall(SYS_gettid);
    cpu_set_t all;
    CPU_ZERO(&all);
    const long got = syscall(SYS_sched_getaffinity, 0, sizeof all, &all);
    _exit(number == getpid() && got > 0 && syscall(SYS_setpriority, 0, 0, 1) == 0 ? status : 255);
  }
  int ended = 0;
  if (child < 0 || waitpid(child, &ended, 0) != child || !WIFEXITED(ended)) return -1;
  return WEXITSTATUS(ended);
}

int fork_by_number(int status) {
  const long child = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
  if (child == 0) _exit(status);
  int ended = 0;
  if (child < 0 || waitpid((pid_t)child, &ended, 0) != child || !WIFEXITED(ended)) return -1;
  return WEXITSTATUS(ended);
}

int name_thread(const char* name) {
  return (int)syscall(SYS_prctl, (long)PR_SET_NAME, (long)name, 0L, 0L, 0L);
}
int name_of_thread(char* name) {
  return (int)syscall(SYS_prctl, (long)PR_GET_NAME, (long)name, 0L, 0L, 0L);
}

int set_nice(int value) {
  return (int)syscall(SYS_setpriority, (long)PRIO_PROCESS, 0L, (long)value);
}
int nice_of_thread(void) { return 20 - (int)syscall(SYS_getpriority, (long)PRIO_PROCESS, 0L); }

int set_signal_stack(void* memory, unsigned long bytes) {
  const stack_t stack = {.ss_sp = memory, .ss_size = bytes};
  return (int)syscall(SYS_sigaltstack, (long)&stack, 0L);
}
void* signal_stack(void) {
  stack_t stack = {0};
  return syscall(SYS_sigaltstack, 0L, (long)&stack) == 0 ? stack.ss_sp : (void*)-1;
}
