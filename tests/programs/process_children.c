// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members start other programs: exec in the place of the process, posix_spawn, vfork, popen and system.
// The new program must find the signal mask, handlers and pending signals, the CPUs, the limits and the
// descriptors of the process, and nothing of its runtime. And members fork; the child opens regions.
//   process_children exec|spawn|fork MEMBERS
#include "check.h"

#include <fcntl.h>
#include <omp.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char** environ;
static char* self;

/// What a new program sees, in words that two of them can compare.
static void describe(char* text, size_t size) {
  char line[256];
  size_t length = 0;
  FILE* status = fopen("/proc/self/status", "r");
  CHECK(status, "cannot open /proc/self/status");
  while (fgets(line, sizeof line, status))
    if (!strncmp(line, "SigIgn:", 7))
      // posix_spawn of glibc leaves its own two signals ignored, and system(), perhaps in another
      // member just now, ignores SIGINT and SIGQUIT.
      length += (size_t)snprintf(text + length, size - length, "SigIgn: %llx\n",
                                 strtoull(line + 7, NULL, 16) & ~(3ull << 31 | 6ull));
    else if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigPnd", 6) ||
             !strncmp(line, "ShdPnd", 6) || !strncmp(line, "Cpus_allowed:", 13))
      length += (size_t)snprintf(text + length, size - length, "%s", line);
  fclose(status);
  for (int i = 3; i < 64; ++i)
    if (fcntl(i, F_GETFD) >= 0)
      length += (size_t)snprintf(text + length, size - length, "descriptor %d\n", i);
  stack_t stack;
  sigaltstack(NULL, &stack);
  snprintf(text + length, size - length, "altstack %d\n", stack.ss_flags);
}

static char expected[4096];

/// The new program: compares, and uses OpenMP itself.
static int compare(const char* with) {
  char text[4096] = "";
  describe(text, sizeof text);
  CHECK(!strcmp(text, with), "the new program found\n%sand should find\n%s", text, with);
  int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum++;
  CHECK(sum == 4, "%d members in the new program", sum);
  return 17;
}

static int reap(pid_t pid) {
  int status = 0;
  pid_t got;
  while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
  }
  CHECK(got == pid, "waitpid: errno %d", errno);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static volatile unsigned long spun;

/// A region in which member `which` calls `action` while others spin, sleep, wait or have nested teams.
static void with_members(int members, int which, void (*action)(int), int member_number) {
#pragma omp parallel num_threads(members)
  {
    int me = omp_get_thread_num();
    for (int i = 0; i < 3000; ++i) spun++;
#pragma omp barrier
    if (me == which) {
      action(member_number);
    } else if (me % 3 == 1) {
      usleep(1000);
    } else if (me % 3 == 2) {
#pragma omp parallel num_threads(2)
      spun++;
    }
  }
}

static void do_exec(int number) {
  char* arguments[] = {self, (char*)"compare", expected, NULL};
  (void)number;
  execv("/proc/self/exe", arguments);
  fail_at(__LINE__, "execv: errno %d", errno);
}

static void nested_exec(int number) {
#pragma omp parallel num_threads(3)
  if (omp_get_thread_num() == 2) do_exec(number);
}

static void task_exec(int number) {
#pragma omp task
  do_exec(number);
#pragma omp taskwait
}

static void execs(int members) {
  void (*const ways[])(int) = {do_exec, nested_exec, task_exec};
  for (int way = 0; way < 3; ++way) {
    for (int which = 0; which < members; ++which) {
      pid_t pid = fork();
      CHECK(pid >= 0, "fork: errno %d", errno);
      if (pid == 0) {
        arm_watchdog(20);
        with_members(members, which, ways[way], which);
        _exit(98);
      }
      int status = reap(pid);
      CHECK(status == 17, "exec from member %d, way %d: status %d", which, way, status);
    }
  }
}

static int spawned;

static void do_spawn(int number) {
  char* arguments[] = {self, (char*)"compare", expected, NULL};
  pid_t pid;
  int result = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ);
  CHECK(result == 0, "posix_spawn: %d", result);
  CHECK(reap(pid) == 17, "the program that member %d spawned failed", number);
  pid = vfork();
  if (pid == 0) {
    execve("/proc/self/exe", arguments, environ);
    _exit(97);
  }
  CHECK(pid > 0, "vfork: errno %d", errno);
  CHECK(reap(pid) == 17, "the program of member %d's vfork failed", number);
  char line[32] = "";
  FILE* pipe = popen("echo of $((6 * 7))", "re");
  CHECK(pipe && fgets(line, sizeof line, pipe) && !strcmp(line, "of 42\n"), "popen read '%s'",
        line);
  int status = pclose(pipe);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "pclose: %#x", (unsigned)status);
  status = system("exit 5");
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5, "system: %#x", (unsigned)status);
#pragma omp atomic
  spawned++;
}

static void nested_spawn(int number) {
#pragma omp parallel num_threads(2)
  do_spawn(number);
}

static void spawns(int members) {
  for (int which = 0; which < members; which += 2) {
    with_members(members, which, do_spawn, which);
    with_members(members, which, nested_spawn, which);
  }
  int all = 0;
  for (int round = 0; round < 2; ++round)
#pragma omp parallel num_threads(members) reduction(+ : all)
  {
    do_spawn(omp_get_thread_num());
    all++;
  }
  CHECK(all == 2 * members && spawned == 3 * ((members + 1) / 2) + all, "%d of %d spawned", spawned,
        all);
}

/// Regions inside the region that the fork was in: the child's only thread is the one that forked.
static int regions_in_child(void) {
  int level = omp_get_level(), number = omp_get_thread_num();
  for (int round = 0; round < 3; ++round) {
    int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
    {
#pragma omp barrier
#pragma omp for schedule(dynamic)
      for (int i = 0; i < 50; ++i) sum++;
#pragma omp single
#pragma omp task shared(sum)
      spun++;
#pragma omp parallel num_threads(2) reduction(+ : sum)
      sum += 100;
    }
    if (sum != 50 + 800) return 20;
  }
  if (omp_get_level() != level || omp_get_thread_num() != number) return 21;
  omp_lock_t lock;
  omp_init_lock(&lock);
  omp_set_lock(&lock);
  omp_unset_lock(&lock);
#pragma omp critical(forked)
  spun++;
  return 18;
}

static void do_fork(int number) {
  pid_t pid = fork();
  CHECK(pid >= 0, "fork: errno %d", errno);
  if (pid == 0) {
    arm_watchdog(20);
    _exit(regions_in_child());
  }
  int status = reap(pid);
  CHECK(status == 18, "the child that member %d forked: status %d", number, status);
}

static void nested_fork(int number) {
#pragma omp parallel num_threads(3)
  if (omp_get_thread_num() == 1) do_fork(number);
}

static void task_fork(int number) {
#pragma omp task
  do_fork(number);
#pragma omp taskwait
}

static void forks(int members) {
  for (int round = 0; round < 3; ++round) {
    for (int which = 0; which < members; ++which) {
      with_members(members, which, do_fork, which);
      with_members(members, which, nested_fork, which);
      with_members(members, which, task_fork, which);
    }
  }
}

int main(int argc, char** argv) {
  self = argv[0];
  const char* mode = argc > 1 ? argv[1] : "";
  omp_set_dynamic(0);
  omp_set_max_active_levels(4);
  if (!strcmp(mode, "compare")) return compare(argv[2]);
  int members = argc > 2 ? atoi(argv[2]) : 2;
  // Something to be found again: a blocked and an ignored signal. The runtime knows this thread already,
  // but has made no other.
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR2);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  signal(SIGHUP, SIG_IGN);
  describe(expected, sizeof expected);
  void (*run)(int) = !strcmp(mode, "exec") ? execs : !strcmp(mode, "spawn") ? spawns : forks;
  run(members);
  int sum = 0;
#pragma omp parallel num_threads(members) reduction(+ : sum)
  sum++;
  CHECK(sum == members, "%d members afterwards", sum);
  return passed();
}
