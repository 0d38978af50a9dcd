// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A collector stops the world, as those of garbage-collected languages do: pthread_kill to every member, whose handlers say that
// they are there and wait in sigsuspend; nobody may go on until it is resumed.
//   collector flat|nested|waiting|waiting_nested [MEMBERS]
#include "hard.h"

#include <pthread.h>
#include <semaphore.h>

enum { kMost = 128, kStops = 12 };

static struct {
  pthread_t thread;
  volatile long steps;
  char* low;
  int stops;
} of[kMost];
static int registered, over;
static sem_t arrived;
static volatile sig_atomic_t resumed;  // the stop that is over
static volatile int my_number = -1;
#pragma omp threadprivate(my_number)

static const int kStop = SIGPWR, kResume = SIGXCPU;
static volatile int stop_number;

static void on_stop(int number) {
  (void)number;
  const int error = errno;
  const int me = my_number;
  const int mine = stop_number;
  char here;
  CHECK(me >= 0, "the handler runs in a thread that has not registered");
  CHECK(pthread_equal(pthread_self(), of[me].thread),
        "the handler finds member %d's data and another's pthread_self", me);
  of[me].low = &here;
  ++of[me].stops;
  sem_post(&arrived);
  sigset_t set;
  sigfillset(&set);
  sigdelset(&set, kResume);
  while (resumed < mine) sigsuspend(&set);
  CHECK(my_number == me, "the handler became another member's");
  sem_post(&arrived);
  errno = error;
}

static void on_resume(int number) { (void)number; }

static void await(int count) {
  for (int i = 0; i < count; ++i)
    while (sem_wait(&arrived) != 0) CHECK(errno == EINTR, "sem_wait: errno %d", errno);
}

static void* collect(void* wanted) {
  const int count = *(int*)wanted;
  while (__atomic_load_n(&registered, __ATOMIC_ACQUIRE) < count) {
    const struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
  }
  for (int stop = 1; stop <= kStops; ++stop) {
    stop_number = stop;
    for (int i = 0; i < count; ++i)
      CHECK(pthread_kill(of[i].thread, kStop) == 0, "pthread_kill(%d)", i);
    await(count);
    long before[kMost];
    for (int i = 0; i < count; ++i) before[i] = of[i].steps;
    const struct timespec t = {0, 3000000};
    nanosleep(&t, NULL);
    for (int i = 0; i < count; ++i)
      CHECK(of[i].steps == before[i], "member %d goes on while the world is stopped", i);
    resumed = stop;
    for (int i = 0; i < count; ++i)
      CHECK(pthread_kill(of[i].thread, kResume) == 0, "pthread_kill(%d)", i);
    await(count);
  }
  __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
  return NULL;
}

/// All compute; or all but the last wait for it in a barrier.
static void member(int me, int waits) {
  my_number = me;
  of[me].thread = pthread_self();
  of[me].steps = 0;
  of[me].stops = 0;
  __atomic_add_fetch(&registered, 1, __ATOMIC_ACQ_REL);
  if (!waits)
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
      ++of[me].steps;
      delay_rounds(100);
    }
#pragma omp barrier
  CHECK(of[me].stops == kStops, "member %d was stopped %d times of %d", me, of[me].stops, kStops);
  // A late SIGXCPU finds a handler and no member.
#pragma omp barrier
  my_number = -1;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  int members = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  if (members > kMost) members = kMost;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_stop;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(kStop, &action, NULL);
  action.sa_handler = on_resume;
  sigaction(kResume, &action, NULL);
  sem_init(&arrived, 0, 0);
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  const int waiting = is(mode, "waiting") || is(mode, "waiting_nested");
  const int nested = is(mode, "nested") || is(mode, "waiting_nested");
  if (!waiting && !nested && !is(mode, "flat")) no_such_mode();
  if (nested) members = members > 1 ? members / 2 * 2 : 2;
  // Twice: new members in old threads.
  for (int again = 0; again < 2; ++again) {
    registered = over = 0;
    resumed = 0;
    pthread_t collector;
    CHECK(pthread_create(&collector, NULL, collect, &members) == 0, "pthread_create");
    if (nested) {
      const int inner = members / 2;
#pragma omp parallel num_threads(2)
      {
        const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(inner)
        {
          const int me = omp_get_thread_num();
          member(outer * inner + me, waiting && me != inner - 1);
        }
      }
    } else {
#pragma omp parallel num_threads(members)
      member(omp_get_thread_num(), waiting && omp_get_thread_num() != members - 1);
    }
    pthread_join(collector, NULL);
  }
  return passed();
}
