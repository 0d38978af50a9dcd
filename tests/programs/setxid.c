// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// setegid, seteuid and setresuid by members of nested teams while others compute: nobody hangs, and every
// thread of the process changes. Needs root, to give itself two user and two group numbers.
//   setxid every   looks at all threads after each call; asks for a runtime that does not move members
//                  while they call
//   setxid end     looks after a last call by the initial thread; members compute until all have called
#include "check.h"

#include <dirent.h>
#include <omp.h>
#include <sys/types.h>
#include <sys/wait.h>

enum { kOuter = 3, kInner = 6, kRounds = 8 };

// Real and saved numbers, which stay; the effective ones change between these two. So no call depends on
// a right that an earlier one gave away.
static const gid_t groups[2] = {1001, 1002};
static const uid_t users[2] = {2001, 2002};

// Each thread has its own: members of a team can be told apart.
static _Thread_local int calls_made;

static int after_every_call;

/// Every thread of the process has these effective numbers.
static void check_all_threads(uid_t user, gid_t group) {
  char want_user[64], want_group[64];
  snprintf(want_user, sizeof want_user, "Uid:\t%u\t%u\t%u\t%u\n", users[0], user, users[1], user);
  snprintf(want_group, sizeof want_group, "Gid:\t%u\t%u\t%u\t%u\n", groups[0], group, groups[1],
           group);
  DIR* folder = opendir("/proc/self/task");
  CHECK(folder != NULL, "/proc/self/task: errno %d", errno);
  int seen = 0;
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    char path[320], line[1024];
    snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    FILE* file = fopen(path, "r");
    if (file == NULL) continue;  // it has just ended
    while (fgets(line, sizeof line, file) != NULL) {
      if (strncmp(line, "Uid:", 4) == 0)
        CHECK(strcmp(line, want_user) == 0, "thread %s: %s instead of %s", entry->d_name, line,
              want_user);
      if (strncmp(line, "Gid:", 4) != 0) continue;
      CHECK(strcmp(line, want_group) == 0, "thread %s: %s instead of %s", entry->d_name, line,
            want_group);
      ++seen;
    }
    fclose(file);
  }
  closedir(folder);
  CHECK(seen >= omp_get_num_threads(), "only %d threads were seen", seen);
}

/// Members wait for one another and for locks, at both levels.
static void multiplex(void) {
  long sum = 0;
  for (int round = 0; round < 5; ++round) {
#pragma omp parallel num_threads(kOuter) reduction(+ : sum)
#pragma omp parallel num_threads(kInner) reduction(+ : sum)
    {
#pragma omp barrier
#pragma omp critical
      ++sum;
#pragma omp barrier
    }
  }
  CHECK(sum == 5 * kOuter * kInner, "%ld members", sum);
}

static double compute(int turns) {
  double x = 1;
  for (int i = 0; i < turns; ++i) x += 1 / (x * x);
  return x;
}

static void change_in_turn(int number) {
#pragma omp critical(change)
  {
    const gid_t group = groups[number % 2];
    CHECK(setegid(group) == 0, "setegid: errno %d", errno);
    if (after_every_call) check_all_threads(geteuid(), group);
    const uid_t user = users[(number + 1) % 2];
    CHECK(seteuid(user) == 0, "seteuid: errno %d", errno);
    if (after_every_call) check_all_threads(user, group);
    ++calls_made;
  }
}

static void change_at_once(int number) {
  CHECK(setegid(groups[number % 2]) == 0, "setegid: errno %d", errno);
  CHECK(setresuid(users[0], users[number % 2], users[1]) == 0, "setresuid: errno %d", errno);
  ++calls_made;
}

/// The odd members of the inner teams change the process, the even ones compute meanwhile.
static void round_of(int number, int at_once) {
  int done = 0;
  double sum = 0;
#pragma omp parallel num_threads(kOuter) reduction(+ : sum)
  {
    const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(kInner) shared(done) reduction(+ : sum)
    {
      const int inner = omp_get_thread_num();
      const int before = calls_made;
      if (inner % 2 == 0) {
        do sum += compute(20000);
        while (!after_every_call && __atomic_load_n(&done, __ATOMIC_ACQUIRE) < kOuter * kInner / 2);
        CHECK(calls_made == before, "the thread-local variable of another member");
      } else {
        if (at_once)
          change_at_once(number + outer + inner);
        else
          change_in_turn(number + outer + inner);
        CHECK(calls_made == before + 1, "the thread-local variable of another member");
        __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
      }
    }
  }
  CHECK(sum > 0, "nothing was computed");
  if (after_every_call) check_all_threads(geteuid(), getegid());
}

static void change_by_all(void) {
  multiplex();
  for (int round = 0; round < kRounds; ++round) {
    round_of(round, round % 2);
    // By the initial thread, and by a member of a flat team.
    CHECK(setegid(groups[round % 2]) == 0, "setegid: errno %d", errno);
    CHECK(seteuid(users[round % 2]) == 0, "seteuid: errno %d", errno);
    check_all_threads(users[round % 2], groups[round % 2]);
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 1) {
      CHECK(setegid(groups[(round + 1) % 2]) == 0, "setegid: errno %d", errno);
      check_all_threads(users[round % 2], groups[(round + 1) % 2]);
    }
  }
}

int main(int argc, char** argv) {
  if (geteuid() != 0 || setresgid(groups[0], groups[0], groups[1]) != 0 ||
      setresuid(users[0], users[0], users[1]) != 0) {
    puts("skipped: only root can change its numbers");
    return 77;
  }
  after_every_call = argc > 1 && strcmp(argv[1], "every") == 0;
  omp_set_max_active_levels(2);
  change_by_all();
  fflush(stdout);
  const pid_t child = fork();
  CHECK(child >= 0, "fork: errno %d", errno);
  if (child == 0) {
    arm_watchdog(60);
    change_by_all();
    exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child, "waitpid: errno %d", errno);
  CHECK(status == 0, "the child ended with %#x", (unsigned)status);
  return passed();
}
