// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starts a program in a state of the process that it did not choose. No OpenMP here: the program's imports stay its own.
//   launch STATE [VALUE] -- PROGRAM [ARGUMENTS]; ends with 77 where the state is not to be had
//     blocked            all signals blocked
//     sigpending N       RLIMIT_SIGPENDING
//     forbid CALL,CALL…  seccomp: these system calls fail with EPERM
//     closed             no descriptor open
//     nproc N            as a user who may have OMP_NUM_THREADS + N threads
//     noproc             no /proc
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char* name;
  int number;
} kCalls[] = {
    {"timer_create", SYS_timer_create},
    {"timer_settime", SYS_timer_settime},
    {"setitimer", SYS_setitimer},
    {"tgkill", SYS_tgkill},
    {"tkill", SYS_tkill},
    {"kill", SYS_kill},
    {"membarrier", SYS_membarrier},
    {"rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo},
    {"sched_setaffinity", SYS_sched_setaffinity},
    {"process_vm_readv", SYS_process_vm_readv},
    {"clock_gettime", SYS_clock_gettime},
};

static void impossible(const char* what) {
  fprintf(stderr, "launch: %s: %s\n", what, strerror(errno));
  exit(77);
}

static void forbid(char* names) {
  struct sock_filter program[64];
  size_t length = 0;
  program[length++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (char* name = strtok(names, ","); name != NULL; name = strtok(NULL, ",")) {
    int number = -1;
    for (size_t i = 0; i < sizeof kCalls / sizeof kCalls[0]; ++i)
      if (strcmp(kCalls[i].name, name) == 0) number = kCalls[i].number;
    if (number < 0 || length > 60) {
      fprintf(stderr, "launch: what is %s?\n", name);
      exit(2);
    }
    program[length++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const struct sock_fprog filter = {(unsigned short)length, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    impossible("seccomp");
}

static void limit(int resource, rlim_t value) {
  const struct rlimit both = {value, value};
  if (setrlimit(resource, &both) != 0) impossible("setrlimit");
}

int main(int argc, char** argv) {
  int program = 1;
  while (program < argc && strcmp(argv[program], "--") != 0) ++program;
  if (program < 2 || ++program >= argc) {
    fputs("launch: launch STATE [VALUE] -- PROGRAM [ARGUMENTS]\n", stderr);
    return 2;
  }
  const char* state = argv[1];
  char* value = argv[2];
  if (strcmp(state, "blocked") == 0) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
  } else if (strcmp(state, "sigpending") == 0) {
    limit(RLIMIT_SIGPENDING, (rlim_t)atol(value));
  } else if (strcmp(state, "forbid") == 0) {
    forbid(value);
  } else if (strcmp(state, "closed") == 0) {
    for (int fd = 0; fd < 1024; ++fd) close(fd);
  } else if (strcmp(state, "nproc") == 0) {
    const char* threads = getenv("OMP_NUM_THREADS");
    // A user whom no other process has: the kernel counts by user.
    const gid_t none = 60000 + (gid_t)getpid() % 5000;
    limit(RLIMIT_NPROC, (rlim_t)((threads ? atoi(threads) : 1) + atoi(value)));
    if (setgroups(1, &none) != 0 || setgid(none) != 0 || setuid(none) != 0) impossible("setuid");
    if (access(argv[program], X_OK) != 0) impossible(argv[program]);
  } else if (strcmp(state, "noproc") == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        umount2("/proc", MNT_DETACH) != 0)
      impossible("/proc");
  } else {
    fprintf(stderr, "launch: what is %s?\n", state);
    return 2;
  }
  execv(argv[program], argv + program);
  return 127;
}
