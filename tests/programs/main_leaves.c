// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// main ends by pthread_exit: the process lives as long as the program's other threads, whose regions go
// on, and ends with the last of them, with status 0 and its exit handlers, whatever threads the runtime
// has made. Each case is this program run again as a child.
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>

static pthread_t main_thread;

static int members(int outer, int inner) {
  int sum = 0;
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
#pragma omp parallel num_threads(outer) reduction(+ : sum)
  {
#pragma omp barrier
#pragma omp parallel num_threads(inner) reduction(+ : sum)
    {
#pragma omp barrier
      sum++;
    }
  }
  return sum;
}

static void check_members(int outer, int inner) {
  int got = members(outer, inner);
  CHECK(got == outer * inner, "%d members of %d x %d", got, outer, inner);
}

/// Until main has ended, and some more.
static void* regions_after_main(void* argument) {
  int nested = argument != NULL;
  check_members(nested ? 4 : 2, nested ? 3 : 1);
  CHECK(pthread_join(main_thread, NULL) == 0, "main cannot be joined");
  for (int round = 0; round < 20; ++round) check_members(nested ? 4 : 2, nested ? 3 : 1);
  printf("regions went on\n");
  return NULL;
}

static void* one_region(void* unused) {
  (void)unused;
  check_members(4, 3);
  return NULL;
}

/// A thread whose first region comes from the destructor of its thread-local data.
static void late_region(void* unused) {
  (void)unused;
  check_members(4, 3);
}

static void at_exit(void) { printf("exit handler\n"); }

static void child(const char* how) {
  atexit(at_exit);
  main_thread = pthread_self();
  pthread_t handle;
  if (!strcmp(how, "flat")) {
    check_members(2, 1);
    printf("regions went on\n");
  } else if (!strcmp(how, "crowd")) {
    check_members(16, 1);
    printf("regions went on\n");
  } else if (!strcmp(how, "nested")) {
    check_members(4, 4);
    printf("regions went on\n");
  } else if (!strcmp(how, "beside-flat")) {
    pthread_create(&handle, NULL, regions_after_main, NULL);
  } else if (!strcmp(how, "beside-nested")) {
    pthread_create(&handle, NULL, regions_after_main, &main_thread);
  } else if (!strcmp(how, "both")) {
    check_members(4, 4);
    pthread_create(&handle, NULL, regions_after_main, &main_thread);
    check_members(3, 3);
  } else if (!strcmp(how, "others-only")) {
    // Threads that have ended when main ends, which itself has never used OpenMP.
    for (int i = 0; i < 3; ++i) {
      pthread_create(&handle, NULL, one_region, NULL);
      pthread_join(handle, NULL);
    }
    printf("regions went on\n");
  } else if (!strcmp(how, "lock")) {
    // A thread that has met the runtime only in a lock.
    omp_lock_t lock;
    omp_init_lock(&lock);
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
    pthread_create(&handle, NULL, one_region, NULL);
    printf("regions went on\n");
  } else if (!strcmp(how, "destructor")) {
    pthread_key_t key;
    pthread_key_create(&key, late_region);
    check_members(4, 2);
    pthread_setspecific(key, &key);
    printf("regions went on\n");
  } else {
    fail_at(__LINE__, "unknown case %s", how);
  }
  pthread_exit(NULL);
}

static void run_child(const char* program, const char* how) {
  int ends[2];
  CHECK(pipe(ends) == 0, "pipe: errno %d", errno);
  pid_t pid = fork();
  CHECK(pid >= 0, "fork: errno %d", errno);
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl("/proc/self/exe", program, how, (char*)NULL);
    _exit(99);
  }
  close(ends[1]);
  char text[4096] = "";
  size_t length = 0;
  ssize_t got;
  while ((got = read(ends[0], text + length, sizeof text - 1 - length)) > 0) length += (size_t)got;
  close(ends[0]);
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid, "waitpid: errno %d", errno);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "'%s': wait status %#x, output '%s'", how,
        (unsigned)status, text);
  CHECK(strstr(text, "regions went on\n"), "'%s': no region went on: '%s'", how, text);
  CHECK(strstr(text, "exit handler\n"), "'%s': the exit handler did not run", how);
}

int main(int argc, char** argv) {
  // By the environment or by hand: a single case, in this process.
  if (argc > 1 && strcmp(argv[1], "all") != 0) {
    child(argv[1]);
    return 1;
  }
  static const char* const cases[] = {"flat",        "crowd",         "nested",
                                      "beside-flat", "beside-nested", "both",
                                      "others-only", "lock",          "destructor"};
  // The child's own watchdog must bark before this one does.
  setenv("BOSK_TEST_ALARM", "20", 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    for (int round = 0; round < 3; ++round) run_child(argv[0], cases[i]);
  return passed();
}
