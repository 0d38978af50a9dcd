// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A level-1 member is a real kernel thread to the rest of POSIX: pthread_kill, affinity calls, gettid,
// thread names and CPU clocks on it mean what they say.
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

enum { kMaxThreads = 64 };

static pthread_t self[kMaxThreads];
static pid_t kernel_id[kMaxThreads];
static volatile sig_atomic_t handled[kMaxThreads];
static pid_t handled_by[kMaxThreads];
static int current_target;

static pid_t get_kernel_id(void) { return (pid_t)syscall(SYS_gettid); }

static void on_signal(int number) {
  (void)number;
  int target = __atomic_load_n(&current_target, __ATOMIC_ACQUIRE);
  handled_by[target] = get_kernel_id();
  __atomic_store_n(&handled[target], 1, __ATOMIC_RELEASE);
}

/// Member 0 signals each other member, which spins, sleeps or waits in a barrier meanwhile.
static void kill_members(int threads, int how) {
  for (int i = 0; i < kMaxThreads; ++i) handled[i] = 0;
#pragma omp parallel num_threads(threads)
  {
    int me = omp_get_thread_num();
    self[me] = pthread_self();
    kernel_id[me] = get_kernel_id();
#pragma omp barrier
    if (me == 0) {
      for (int target = 1; target < threads; ++target) {
        __atomic_store_n(&current_target, target, __ATOMIC_RELEASE);
        int result = pthread_kill(self[target], SIGUSR1);
        CHECK(result == 0, "pthread_kill: %d", result);
        while (!__atomic_load_n(&handled[target], __ATOMIC_ACQUIRE)) sched_yield();
        CHECK(handled_by[target] == kernel_id[target], "the signal for member %d (%d) ran on %d",
              target, kernel_id[target], handled_by[target]);
      }
    } else if (how == 0) {
      while (!__atomic_load_n(&handled[me], __ATOMIC_ACQUIRE)) {
      }
    } else if (how == 1) {
      while (!__atomic_load_n(&handled[me], __ATOMIC_ACQUIRE)) usleep(500);
    }
#pragma omp barrier
    CHECK(get_kernel_id() == kernel_id[me], "member %d changed its kernel thread", me);
  }
}

static void signals(int threads) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, NULL);
  for (int round = 0; round < 20; ++round)
    for (int how = 0; how < 3; ++how) kill_members(threads, how);
}

/// gettid is stable from region to region, matches pthread_self, and the members differ.
static void kernel_ids(int threads) {
  pid_t first[kMaxThreads];
  pthread_t handles[kMaxThreads];
#pragma omp parallel num_threads(threads) shared(first, handles)
  {
    first[omp_get_thread_num()] = get_kernel_id();
    handles[omp_get_thread_num()] = pthread_self();
  }
  CHECK(first[0] == getpid(), "thread 0 is not the main thread");
  for (int a = 0; a < threads; ++a)
    for (int b = 0; b < a; ++b)
      CHECK(first[a] != first[b] && !pthread_equal(handles[a], handles[b]),
            "members %d and %d are one kernel thread", a, b);
  for (int round = 0; round < 100; ++round) {
#pragma omp parallel num_threads(threads)
    {
      int me = omp_get_thread_num();
      CHECK(get_kernel_id() == first[me], "round %d: member %d is now %d, was %d", round, me,
            get_kernel_id(), first[me]);
      CHECK(pthread_equal(pthread_self(), handles[me]), "pthread_self of member %d changed", me);
      if (round % 10 == 0) {
        char name[16], path[64], read_back[32] = "";
        snprintf(name, sizeof name, "member-%d", me);
        if (me > 0) {
          CHECK(pthread_setname_np(pthread_self(), name) == 0, "pthread_setname_np failed");
          snprintf(path, sizeof path, "/proc/self/task/%d/comm", get_kernel_id());
          FILE* file = fopen(path, "r");
          CHECK(file && fgets(read_back, sizeof read_back, file), "cannot read %s", path);
          fclose(file);
          read_back[strcspn(read_back, "\n")] = 0;
          CHECK(!strcmp(read_back, name), "kernel thread of member %d is called '%s'", me,
                read_back);
        }
      }
    }
  }
}

/// pthread_setaffinity_np on a member moves the thread that runs it.
static void affinity(int threads) {
  cpu_set_t whole;
  CHECK(sched_getaffinity(0, sizeof whole, &whole) == 0, "sched_getaffinity: errno %d", errno);
  int cpus[CPU_SETSIZE], count = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &whole)) cpus[count++] = i;
#pragma omp parallel num_threads(threads)
  self[omp_get_thread_num()] = pthread_self();
  for (int round = 0; round < 10; ++round) {
    // Set from inside by the member itself, and read by another.
#pragma omp parallel num_threads(threads)
    {
      int me = omp_get_thread_num(), cpu = cpus[(me + round) % count];
      cpu_set_t one, got;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      CHECK(pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0,
            "pthread_setaffinity_np");
      CHECK(sched_getaffinity(0, sizeof got, &got) == 0 && CPU_EQUAL(&one, &got),
            "member %d: the kernel thread that runs it has another mask", me);
      CHECK(sched_getcpu() == cpu, "member %d is pinned to %d but runs on %d", me, cpu,
            sched_getcpu());
#pragma omp barrier
      int other = (me + 1) % threads;
      CHECK(pthread_getaffinity_np(self[other], sizeof got, &got) == 0, "pthread_getaffinity_np");
      CHECK(CPU_COUNT(&got) == 1 && CPU_ISSET(cpus[(other + round) % count], &got),
            "member %d sees another mask of member %d", me, other);
#pragma omp barrier
      // Set from outside by a neighbour.
      CPU_ZERO(&one);
      CPU_SET(cpus[(other + round + 1) % count], &one);
      CHECK(pthread_setaffinity_np(self[other], sizeof one, &one) == 0, "pthread_setaffinity_np");
#pragma omp barrier
      CHECK(sched_getcpu() == cpus[(me + round + 1) % count],
            "member %d was not moved by its neighbour", me);
    }
    // It lasts to the next region.
#pragma omp parallel num_threads(threads)
    {
      int me = omp_get_thread_num();
      CHECK(sched_getcpu() == cpus[(me + round + 1) % count],
            "member %d left its CPU between regions", me);
    }
#pragma omp parallel num_threads(threads)
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof whole, &whole) == 0,
          "pthread_setaffinity_np");
  }
}

/// The CPU clock of a member counts its own work, not that of others.
static void cpu_clocks(void) {
  long long used[2];
#pragma omp parallel num_threads(2) shared(used)
  {
    int me = omp_get_thread_num();
    struct timespec before, after;
    clockid_t clock;
    CHECK(pthread_getcpuclockid(pthread_self(), &clock) == 0, "pthread_getcpuclockid failed");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    volatile unsigned long work = 0;
    if (me == 1)
      for (unsigned long i = 0; i < 30000000; ++i) work = work + i;
    clock_gettime(clock, &after);
    used[me] = (after.tv_sec - before.tv_sec) * 1000000000LL + (after.tv_nsec - before.tv_nsec);
  }
  CHECK(used[1] > 1000000, "member 1 worked, but its clock counted %lld ns", used[1]);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "ids";
  int threads = argc > 2 ? atoi(argv[2]) : 2;
  omp_set_dynamic(0);
  if (!strcmp(mode, "ids"))
    kernel_ids(threads);
  else if (!strcmp(mode, "signals"))
    signals(threads);
  else if (!strcmp(mode, "affinity"))
    affinity(threads);
  else if (!strcmp(mode, "clocks"))
    cpu_clocks();
  else
    fail_at(__LINE__, "unknown mode %s", mode);
  return passed();
}
