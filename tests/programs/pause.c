// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// omp_pause_resource: a hard pause ends all threads of the runtime, also those of pthreads that have
// none in use; the next region starts anew, with fresh threads. Inside of regions, and while another
// thread has one open, it is refused and changes nothing. A soft pause puts idle threads to sleep.
#include "check.h"

#include <dirent.h>
#include <malloc.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

static int private_value = 7;
#pragma omp threadprivate(private_value)

static int count_tasks(void) {
  DIR* folder = opendir("/proc/self/task");
  int count = 0;
  CHECK(folder, "no /proc/self/task");
  for (struct dirent* entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

/// The kernel takes a thread off the list a moment after it has been joined. A hang ends the program.
static void wait_for_tasks(int expected) {
  while (count_tasks() != expected) sched_yield();
}

static long mapped_kib(void) {
  FILE* file = fopen("/proc/self/statm", "r");
  long pages = 0;
  CHECK(file && fscanf(file, "%ld", &pages) == 1, "no /proc/self/statm");
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void region(int size) {
  long sum = 0;
  int seen[64] = {0};
#pragma omp parallel num_threads(size) reduction(+ : sum) shared(seen)
  {
    CHECK(omp_get_num_threads() == size, "team of %d, wanted %d", omp_get_num_threads(), size);
    seen[omp_get_thread_num()]++;
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 64; ++i) sum += i;
#pragma omp single
    for (int i = 0; i < 8; ++i) {
#pragma omp task shared(seen)
      {
#pragma omp atomic
        seen[0]++;
      }
    }
#pragma omp barrier
    for (int i = 1; i < size; ++i) CHECK(seen[i] == 1, "member %d ran %d times", i, seen[i]);
  }
  CHECK(sum == 64 * 63 / 2 && seen[0] == 9, "sum %ld, %d tasks", sum, seen[0] - 1);
}

static void nested(int outer, int inner) {
  int members = 0;
  omp_set_max_active_levels(4);  // every initial thread has its own
#pragma omp parallel num_threads(outer)
#pragma omp parallel num_threads(inner)
  {
#pragma omp barrier
#pragma omp atomic
    members++;
  }
  CHECK(members == outer * inner, "%d nested members, wanted %d", members, outer * inner);
}

static void pause_hard(void) {
  int result = omp_pause_resource(omp_pause_hard, omp_get_initial_device());
  CHECK(result == 0, "omp_pause_resource returned %d", result);
}

/// Copies of threads that ended are gone, those of the initial thread stay.
static void check_fresh(int round) {
  CHECK(private_value == 100 + round, "the initial thread's copy is %d", private_value);
#pragma omp parallel num_threads(3)
  if (omp_get_thread_num() != 0)
    CHECK(private_value == 7, "member %d found a copy of %d", omp_get_thread_num(), private_value);
}

static void again_and_again(int rounds) {
  long early = 0;
  mallopt(M_ARENA_MAX, 1);  // each maps 64 MiB, and how many there are is chance
  for (int round = 0; round < rounds; ++round) {
    private_value = 100 + round;
    check_fresh(round);
#pragma omp parallel num_threads(3)
    if (omp_get_thread_num() != 0) private_value = round;
    if (round % 2 == 0) region(2);
    if (round % 3 == 0) region(5);
    if (round % 4 < 2) nested(3, 4);
    if (round % 4 == 3) region(1);
    if (round % 7 == 3)
      CHECK(omp_pause_resource_all(omp_pause_hard) == 0, "omp_pause_resource_all was refused");
    else
      pause_hard();
    wait_for_tasks(1);
    if (round == rounds / 4) early = mapped_kib();
  }
  // Twice without a region in between, and then everything once more.
  pause_hard();
  long late = mapped_kib();
  // libc keeps up to 40 MiB of stacks.
  CHECK(late <= early + 64 * 1024, "mappings pile up: %ld KiB, then %ld KiB", early, late);
  region(4);
  nested(2, 3);
}

static void expect_refusal(const char* where) {
  CHECK(omp_pause_resource(omp_pause_hard, omp_get_initial_device()) != 0, "hard pause in %s",
        where);
  CHECK(omp_pause_resource_all(omp_pause_soft) != 0, "soft pause in %s", where);
}

static int go_on;

static void* opener(void* barrier) {
#pragma omp parallel num_threads(2)
  {
#pragma omp masked
    pthread_barrier_wait(barrier);
#pragma omp barrier
    while (!__atomic_load_n(&go_on, __ATOMIC_ACQUIRE)) sched_yield();
  }
  region(2);
  return NULL;
}

static void refused(int by_others) {
  CHECK(omp_pause_resource(omp_pause_hard, 4711) != 0, "unknown device");
  CHECK(omp_pause_resource_all((omp_pause_resource_t)0) != 0 || !by_others, "unknown kind");
#pragma omp parallel num_threads(1)
  expect_refusal("a region of one");
#pragma omp parallel num_threads(3)
  {
    expect_refusal("a region");
#pragma omp single
    {
#pragma omp task
      expect_refusal("a task");
    }
#pragma omp parallel num_threads(2)
    expect_refusal("a nested region");
#pragma omp barrier
  }
  region(3);
  if (by_others) {
    pthread_barrier_t barrier;
    pthread_t other;
    pthread_barrier_init(&barrier, NULL, 2);
    CHECK(pthread_create(&other, NULL, opener, &barrier) == 0, "pthread_create failed");
    pthread_barrier_wait(&barrier);
    int before = count_tasks();
    for (int i = 0; i < 100; ++i) {
      expect_refusal("another thread's region");
      if (i % 10 == 0) region(3);
    }
    CHECK(count_tasks() >= before, "%d threads of %d are left", count_tasks(), before);
    __atomic_store_n(&go_on, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(other, NULL) == 0, "pthread_join failed");
    pthread_barrier_destroy(&barrier);
  }
  pause_hard();
  wait_for_tasks(1);
  region(3);
}

// ---- pools of other pthreads

enum { kOthers = 4 };
static pthread_barrier_t meeting;

static void* idle_owner(void* argument) {
  int id = (int)(long)argument;
  for (int round = 0; round < 20; ++round) {
    if (round % 2) nested(2, 2 + id);
    region(2 + id);
    private_value = id;
    pthread_barrier_wait(&meeting);  // the pause
    pthread_barrier_wait(&meeting);
    CHECK(private_value == id, "pthread %d: its copy is %d", id, private_value);
  }
  return NULL;
}

/// Other pthreads have pools, but no region: theirs end, too.
static void idle_pools(void) {
  pthread_t handles[kOthers];
  pthread_barrier_init(&meeting, NULL, kOthers + 1);
  for (long i = 0; i < kOthers; ++i)
    CHECK(pthread_create(&handles[i], NULL, idle_owner, (void*)i) == 0, "pthread_create failed");
  for (int round = 0; round < 20; ++round) {
    region(3);
    pthread_barrier_wait(&meeting);
    pause_hard();
    wait_for_tasks(1 + kOthers);
    if (round % 3 == 0) region(4);
    pthread_barrier_wait(&meeting);
  }
  for (int i = 0; i < kOthers; ++i) pthread_join(handles[i], NULL);
  pthread_barrier_destroy(&meeting);
  pause_hard();
  wait_for_tasks(1);
}

static omp_lock_t lock;
static long locked;
static int stop, pauses;

static void* busy_owner(void* argument) {
  int id = (int)(long)argument;
  for (int round = 0; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); ++round) {
    region(1 + (round + id) % 5);
    if (round % 5 == 0) nested(2, 3);
    omp_set_lock(&lock);
    if (round % 3 == 0) sched_yield();
    locked++;
    omp_unset_lock(&lock);
    // So that pauses succeed, however slow regions are.
    int seen = __atomic_load_n(&pauses, __ATOMIC_ACQUIRE);
    while (round % 4 == id && seen == __atomic_load_n(&pauses, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
      sched_yield();
  }
  return NULL;
}

static void* short_owner(void* argument) {
  region(3);
  return argument;
}

/// Pauses, as many as succeed, at any moment of others that open regions, wait for locks, begin and end.
static void beside_busy(int wanted) {
  pthread_t handles[kOthers];
  omp_init_lock(&lock);
  for (long i = 0; i < kOthers; ++i)
    CHECK(pthread_create(&handles[i], NULL, busy_owner, (void*)i) == 0, "pthread_create failed");
  for (int round = 0; pauses < wanted; ++round) {
    pthread_t brief;
    CHECK(pthread_create(&brief, NULL, short_owner, NULL) == 0, "pthread_create failed");
    if (omp_pause_resource_all(round % 4 ? omp_pause_hard : omp_pause_soft) == 0)
      __atomic_add_fetch(&pauses, 1, __ATOMIC_ACQ_REL);
    if (round % 4 == 0) region(3);
    pthread_join(brief, NULL);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < kOthers; ++i)
    CHECK(pthread_join(handles[i], NULL) == 0, "pthread_join failed");
  pause_hard();
  wait_for_tasks(1);
  region(4);
}

static int opened;

static void* yielding_owner(void* argument) {
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    int seen = __atomic_load_n(&pauses, __ATOMIC_ACQUIRE);
    region(
        6);  // more than there are CPUs: its barriers have left something on this thread's worker
    __atomic_add_fetch(&opened, 1, __ATOMIC_ACQ_REL);
    while (seen == __atomic_load_n(&pauses, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
      sched_yield();
  }
  return argument;
}

/// Another yields all the time, outside of regions, until a pause has taken its workers apart. It gets on, too, when there is
/// always a pause on.
static void beside_yielder(int wanted) {
  pthread_t other;
  CHECK(pthread_create(&other, NULL, yielding_owner, NULL) == 0, "pthread_create failed");
  for (int round = 0; round < wanted; ++round) {
    while (__atomic_load_n(&opened, __ATOMIC_ACQUIRE) <= round)
      if (round % 2) omp_pause_resource_all(omp_pause_hard);
    while (omp_pause_resource_all(omp_pause_hard) != 0) continue;
    __atomic_add_fetch(&pauses, 1, __ATOMIC_ACQ_REL);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  CHECK(pthread_join(other, NULL) == 0, "pthread_join failed");
  pause_hard();
  region(4);
}

// ---- destructors of the threads that end

static pthread_key_t key;
static int destroyed;

static void destroy(void* value) {
  (void)value;
  int members = 0;
  CHECK(omp_get_level() == 0 && omp_get_thread_num() == 0, "thread %d in a destructor",
        omp_get_thread_num());
#pragma omp parallel num_threads(3)
  {
#pragma omp atomic
    members++;
  }
  CHECK(members == 3, "%d members of a destructor's region", members);
  __atomic_add_fetch(&destroyed, 1, __ATOMIC_ACQ_REL);
}

static void destructors(void) {
  CHECK(pthread_key_create(&key, destroy) == 0, "pthread_key_create failed");
  for (int round = 1; round <= 20; ++round) {
#pragma omp parallel num_threads(5)
    if (omp_get_thread_num() != 0) pthread_setspecific(key, &key);
    pause_hard();
    CHECK(destroyed == 4 * round, "%d of %d destructors ran before the pause was over", destroyed,
          4 * round);
  }
  region(5);
}

// ---- forked children

static void forked(void) {
  pause_hard();  // nothing has been made yet
  for (int round = 0; round < 20; ++round) {
    region(5);
    if (round % 2) pause_hard();
    pid_t child = fork();
    CHECK(child >= 0, "fork failed");
    if (child == 0) {
      arm_watchdog(60);
      if (round % 3 == 0) pause_hard();
      region(5);
      region(2);
      pause_hard();
      wait_for_tasks(1);
      region(3);
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "round %d: status %x", round, status);
  }
}

// ---- soft

/// How many other threads of the process do not sleep.
static int count_awake(void) {
  DIR* folder = opendir("/proc/self/task");
  int awake = 0;
  CHECK(folder, "no /proc/self/task");
  for (struct dirent* entry; (entry = readdir(folder));) {
    char path[64], text[512];
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", atoi(entry->d_name));
    FILE* file = fopen(path, "r");
    if (!file) continue;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    char* state = strrchr(text, ')');
    awake += !state || state[2] != 'S';
  }
  closedir(folder);
  return awake;
}

static void soft(void) {
  for (int round = 0; round < 20; ++round) {
    region(2 + round % 4);
    nested(2, 2);
    CHECK(omp_pause_resource(omp_pause_soft, omp_get_initial_device()) == 0, "soft pause refused");
    while (count_awake() != 0) sched_yield();
  }
  region(4);
  pause_hard();
  wait_for_tasks(1);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "hard";
  omp_set_dynamic(0);
  if (!strcmp(mode, "hard"))
    again_and_again(100);
  else if (!strcmp(mode, "refused"))
    refused(0);
  else if (!strcmp(mode, "refused-others"))
    refused(1);
  else if (!strcmp(mode, "idle-pools"))
    idle_pools();
  else if (!strcmp(mode, "busy"))
    beside_busy(200);
  else if (!strcmp(mode, "yielder"))
    beside_yielder(500);
  else if (!strcmp(mode, "destructors"))
    destructors();
  else if (!strcmp(mode, "fork"))
    forked();
  else if (!strcmp(mode, "soft"))
    soft();
  else
    fail_at(__LINE__, "unknown mode %s", mode);
  return passed();
}
