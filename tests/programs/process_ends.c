// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A process ends, stops and goes on in the middle of regions: _exit, abort, a signal's default action,
// SIGSTOP and SIGCONT. At once, with the status that it should have, whatever the members are doing.
#include "check.h"

#include <omp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

static volatile unsigned long spun;
static int
    news;  ///< the end of the pipe by which a child tells that all members are where they should be

static void tell(char what) { CHECK(write(news, &what, 1) == 1, "write: errno %d", errno); }

static const char* const places[] = {"spin",  "sleep",  "barrier", "critical",
                                     "tasks", "nested", NULL};

/// Opens a region whose members are all at `place`; `end` is called by one of them, not the first.
static void region_at(const char* place, int members, void (*end)(void)) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  int arrived = 0, last = members - 1;
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel num_threads(members)
  {
    int me = omp_get_thread_num();
#pragma omp atomic
    arrived++;
    int now;
    do {
#pragma omp atomic read
      now = arrived;
      usleep(100);
    } while (now < members);
    if (me == last) end();
    if (!strcmp(place, "spin")) {
      for (;;) spun++;
    } else if (!strcmp(place, "sleep")) {
      for (;;) pause();
    } else if (!strcmp(place, "barrier")) {
      if (me == last)
        for (;;) pause();
#pragma omp barrier
    } else if (!strcmp(place, "critical")) {
      omp_set_lock(&lock);
      for (;;) pause();
    } else if (!strcmp(place, "tasks")) {
      for (;;) {
#pragma omp task
        spun++;
#pragma omp taskwait
      }
    } else {
#pragma omp parallel num_threads(3)
      for (;;) spun++;
    }
  }
}

static void end_exit(void) { _exit(41); }
static void end_abort(void) { abort(); }
static void end_raise(void) { raise(SIGTERM); }
static void end_kill(void) { kill(getpid(), SIGTERM); }
static void end_quit(void) { raise(SIGQUIT); }
static void end_news(void) { tell('r'); }

static int reap(pid_t pid) {
  int status = 0;
  pid_t got;
  while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
  }
  CHECK(got == pid, "waitpid: errno %d", errno);
  return status;
}

static pid_t start(const char* place, int members, void (*end)(void), int* from) {
  int ends[2];
  CHECK(pipe(ends) == 0, "pipe: errno %d", errno);
  pid_t pid = fork();
  CHECK(pid >= 0, "fork: errno %d", errno);
  if (pid == 0) {
    arm_watchdog(30);
    close(ends[0]);
    news = ends[1];
    // Cores of the cases that die are nothing to keep.
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    region_at(place, members, end);
    _exit(99);
  }
  close(ends[1]);
  if (from)
    *from = ends[0];
  else
    close(ends[0]);
  return pid;
}

static void ends(void) {
  static const struct {
    const char* name;
    void (*end)(void);
    int exit_status, signal_number;
  } cases[] = {{"_exit", end_exit, 41, 0},
               {"abort", end_abort, 0, SIGABRT},
               {"raise(SIGTERM)", end_raise, 0, SIGTERM},
               {"kill(SIGTERM)", end_kill, 0, SIGTERM},
               {"raise(SIGQUIT)", end_quit, 0, SIGQUIT}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    for (const char* const* place = places; *place; ++place) {
      for (int members = 2; members <= 6; members += 4) {
        int status = reap(start(*place, members, cases[i].end, NULL));
        if (cases[i].signal_number)
          CHECK(WIFSIGNALED(status) && WTERMSIG(status) == cases[i].signal_number,
                "%s, %d members at %s: wait status %#x", cases[i].name, members, *place,
                (unsigned)status);
        else
          CHECK(WIFEXITED(status) && WEXITSTATUS(status) == cases[i].exit_status,
                "%s, %d members at %s: wait status %#x", cases[i].name, members, *place,
                (unsigned)status);
      }
    }
  }
}

static void wait_for_news(int from, char expected, const char* place) {
  char what = 0;
  ssize_t got;
  while ((got = read(from, &what, 1)) < 0 && errno == EINTR) {
  }
  CHECK(got == 1 && what == expected, "at %s: no news of the child", place);
}

/// From outside, while all of them are at work or asleep.
static void signals_from_outside(void) {
  static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGKILL};
  for (const char* const* place = places; *place; ++place) {
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) {
      int from;
      pid_t pid = start(*place, i % 2 ? 6 : 2, end_news, &from);
      wait_for_news(from, 'r', *place);
      CHECK(kill(pid, signals[i]) == 0, "kill: errno %d", errno);
      int status = reap(pid);
      CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signals[i],
            "signal %d at %s: wait status %#x", signals[i], *place, (unsigned)status);
      close(from);
    }
  }
}

static void wait_for_state(pid_t pid, int stopped) {
  int status = 0;
  pid_t got;
  while ((got = waitpid(pid, &status, WUNTRACED | WCONTINUED)) < 0 && errno == EINTR) {
  }
  CHECK(got == pid && (stopped ? WIFSTOPPED(status) : WIFCONTINUED(status)),
        "wait status %#x of a child that should have %s", (unsigned)status,
        stopped ? "stopped" : "gone on");
}

static long processor_ticks(pid_t pid) {
  char path[64], line[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE* file = fopen(path, "r");
  CHECK(file && fgets(line, sizeof line, file), "cannot read %s", path);
  fclose(file);
  unsigned long user = 0, system = 0;
  CHECK(sscanf(strrchr(line, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &system) == 2,
        "cannot read %s: %s", path, line);
  return (long)(user + system);
}

/// Stops and goes on as often as asked, and finds the same sums.
static void stop_and_go(void) {
  for (int members = 2; members <= 6; members += 4) {
    int ends[2];
    CHECK(pipe(ends) == 0, "pipe: errno %d", errno);
    pid_t pid = fork();
    CHECK(pid >= 0, "fork: errno %d", errno);
    if (pid == 0) {
      arm_watchdog(50);
      close(ends[0]);
      news = ends[1];
      omp_set_dynamic(0);
      omp_set_max_active_levels(2);
      for (int round = 0;; ++round) {
        int sum = 0;
#pragma omp parallel num_threads(members) reduction(+ : sum)
        {
#pragma omp for schedule(dynamic)
          for (int i = 0; i < 200; ++i) sum += i;
#pragma omp parallel num_threads(2) reduction(+ : sum)
          sum++;
        }
        if (sum != 19900 + 2 * members) _exit(1);
        struct pollfd end = {news, POLLERR, 0};
        if (round < 2)
          tell('r');
        else if (poll(&end, 1, 0) > 0 && (end.revents & POLLERR))
          _exit(42);
      }
    }
    close(ends[1]);
    wait_for_news(ends[0], 'r', "regions");
    for (int round = 0; round < 20; ++round) {
      CHECK(kill(pid, SIGSTOP) == 0, "kill: errno %d", errno);
      wait_for_state(pid, 1);
      if (round == 0) {
        // Nobody of it runs, timers of its runtime or not.
        long before = processor_ticks(pid);
        usleep(100000);
        CHECK(processor_ticks(pid) == before, "a stopped process uses the processor");
      }
      CHECK(kill(pid, SIGCONT) == 0, "kill: errno %d", errno);
      wait_for_state(pid, 0);
    }
    wait_for_news(ends[0], 'r', "regions");
    close(ends[0]);  // the child sees it after its regions
    int status = reap(pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42, "%d members: wait status %#x", members,
          (unsigned)status);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (!strcmp(mode, "inside"))
    ends();
  else if (!strcmp(mode, "outside"))
    signals_from_outside();
  else if (!strcmp(mode, "stop"))
    stop_and_go();
  else
    fail_at(__LINE__, "unknown mode %s", mode);
  return passed();
}
