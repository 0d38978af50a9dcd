// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// exit() inside a region: the exit handlers run, stdio is flushed, the status comes out, and nobody hangs,
// whatever the other members are doing. Each case is this program run again as a child.
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>

static int expected_status;

static void handler(void) { printf("handler %d\n", expected_status); }

__attribute__((destructor)) static void destructor(void) {
  if (expected_status) printf("destructor %d\n", expected_status);
}

static volatile unsigned long spun;

static void open_region(void) {
  int members = 0;
#pragma omp parallel num_threads(3) reduction(+ : members)
  members++;
  if (members != 3) _exit(50);
}

static void do_exit(int status) {
  printf("buffered\n");
  exit(status);
}

static void child(const char* how) {
  atexit(handler);
  expected_status = 43;
  omp_set_max_active_levels(3);
  omp_lock_t lock;
  omp_init_lock(&lock);
  if (!strcmp(how, "first")) {
#pragma omp parallel num_threads(8)
    if (omp_get_thread_num() == 0) do_exit(43);
  } else if (!strcmp(how, "last-others-spin")) {
#pragma omp parallel num_threads(8)
    {
      if (omp_get_thread_num() == 7) do_exit(43);
      for (;;) spun++;
    }
  } else if (!strcmp(how, "others-sleep")) {
#pragma omp parallel num_threads(4)
    {
      if (omp_get_thread_num() == 2) do_exit(43);
      for (;;) pause();
    }
  } else if (!strcmp(how, "in-critical")) {
#pragma omp parallel num_threads(8)
    {
#pragma omp critical
      if (omp_get_thread_num() == 5) do_exit(43);
#pragma omp barrier
    }
  } else if (!strcmp(how, "lock-held")) {
#pragma omp parallel num_threads(4)
    {
      omp_set_lock(&lock);
      if (omp_get_thread_num() == 3) do_exit(43);
      omp_unset_lock(&lock);
#pragma omp barrier
    }
  } else if (!strcmp(how, "nested")) {
#pragma omp parallel num_threads(4)
#pragma omp parallel num_threads(4)
    {
      if (omp_get_ancestor_thread_num(1) == 2 && omp_get_thread_num() == 3) do_exit(43);
#pragma omp barrier
      for (;;) spun++;
    }
  } else if (!strcmp(how, "task")) {
#pragma omp parallel num_threads(4)
#pragma omp single
    for (int i = 0; i < 100; ++i) {
#pragma omp task firstprivate(i)
      if (i == 50) do_exit(43);
    }
  } else if (!strcmp(how, "idle")) {
#pragma omp parallel num_threads(8)
    spun++;
    do_exit(43);
  } else if (!strcmp(how, "return-from-main")) {
#pragma omp parallel num_threads(4)
#pragma omp parallel num_threads(4)
    spun++;
    printf("buffered\n");
    return;
  } else if (!strcmp(how, "handler-opens-region")) {
    atexit(open_region);
#pragma omp parallel num_threads(4)
    if (omp_get_thread_num() == 1) do_exit(43);
  } else if (!strcmp(how, "handler-after-region")) {
    atexit(open_region);
#pragma omp parallel num_threads(4)
    spun++;
    do_exit(43);
  } else {
    fail_at(__LINE__, "unknown case %s", how);
  }
}

int main(int argc, char** argv) {
  if (argc > 1) {
    child(argv[1]);
    return 43;
  }
  static const char* const cases[] = {"first",
                                      "last-others-spin",
                                      "others-sleep",
                                      "in-critical",
                                      "lock-held",
                                      "nested",
                                      "task",
                                      "idle",
                                      "return-from-main",
                                      "handler-opens-region",
                                      "handler-after-region"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    for (int round = 0; round < 3; ++round) {
      int ends[2];
      CHECK(pipe(ends) == 0, "pipe: errno %d", errno);
      pid_t pid = fork();
      CHECK(pid >= 0, "fork: errno %d", errno);
      if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(20);
        execl("/proc/self/exe", argv[0], cases[i], (char*)NULL);
        _exit(99);
      }
      close(ends[1]);
      char text[4096] = "";
      size_t length = 0;
      ssize_t got;
      while ((got = read(ends[0], text + length, sizeof text - 1 - length)) != 0) {
        if (got < 0)
          CHECK(errno == EINTR, "read: errno %d", errno);
        else
          length += (size_t)got;
      }
      close(ends[0]);
      int status = 0;
      CHECK(waitpid(pid, &status, 0) == pid, "waitpid: errno %d", errno);
      CHECK(WIFEXITED(status), "exit '%s': the child died of signal %d", cases[i],
            WTERMSIG(status));
      CHECK(WEXITSTATUS(status) == 43, "exit '%s': status %d, output '%s'", cases[i],
            WEXITSTATUS(status), text);
      CHECK(strstr(text, "buffered\n"), "exit '%s': stdio was not flushed", cases[i]);
      CHECK(strstr(text, "handler 43\n"), "exit '%s': the exit handler did not run", cases[i]);
      CHECK(strstr(text, "destructor 43\n"), "exit '%s': the destructor did not run", cases[i]);
    }
  }
  return passed();
}
