// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/sync.h, one function after the other: what it does, and which code it returns when it is misused.
#include <bosk/sync.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>

#include "check.h"

#define IS(call, code)                                                  \
  do {                                                                  \
    const long is_ = (long)(call);                                      \
    CHECK(is_ == (code), "%s returned %ld, not %s", #call, is_, #code); \
  } while (0)

static uint64_t soon(void) { return bosk_after(2000000); }

/// Runs `body` as another thread, to its end.
static void elsewhere(void* (*body)(void*), void* argument) {
  pthread_t other;
  CHECK(pthread_create(&other, NULL, body, argument) == 0, "pthread_create failed");
  CHECK(pthread_join(other, NULL) == 0, "pthread_join failed");
}

static void* others_mutex(void* argument) {
  bosk_mutex_t* mutex = argument;
  IS(bosk_mutex_unlock(mutex), BOSK_EPERM);
  IS(bosk_mutex_trylock(mutex), BOSK_EBUSY);
  IS(bosk_mutex_lock_until(mutex, soon()), BOSK_ETIMEDOUT);
  IS(bosk_mutex_lock_until(mutex, 0), BOSK_ETIMEDOUT);
  IS(bosk_mutex_destroy(mutex), BOSK_EBUSY);
  return NULL;
}

static void* free_mutex(void* argument) {
  IS(bosk_mutex_lock_until(argument, 0), 0);
  IS(bosk_mutex_unlock(argument), 0);
  return NULL;
}

static void mutexes(void) {
  bosk_mutex_t plain = BOSK_MUTEX_INITIALIZER;
  IS(bosk_mutex_unlock(&plain), BOSK_EPERM);
  IS(bosk_mutex_lock(&plain), 0);
  IS(bosk_mutex_lock(&plain), BOSK_EDEADLK);
  IS(bosk_mutex_lock_until(&plain, soon()), BOSK_EDEADLK);
  IS(bosk_mutex_trylock(&plain), BOSK_EBUSY);
  elsewhere(others_mutex, &plain);
  IS(bosk_mutex_destroy(&plain), BOSK_EBUSY);
  IS(bosk_mutex_unlock(&plain), 0);
  elsewhere(free_mutex, &plain);
  IS(bosk_mutex_destroy(&plain), 0);
  IS(bosk_mutex_destroy(&plain), BOSK_EINVAL);
  IS(bosk_mutex_lock(&plain), BOSK_EINVAL);
  IS(bosk_mutex_trylock(&plain), BOSK_EINVAL);
  IS(bosk_mutex_unlock(&plain), BOSK_EINVAL);

  bosk_mutex_t again;
  IS(bosk_mutex_init(&again, 7), BOSK_EINVAL);
  IS(bosk_mutex_init(&again, -1), BOSK_EINVAL);
  IS(bosk_mutex_init(NULL, BOSK_MUTEX_PLAIN), BOSK_EINVAL);
  IS(bosk_mutex_init(&again, BOSK_MUTEX_RECURSIVE), 0);
  for (int i = 0; i < 3; i++) IS(bosk_mutex_lock(&again), 0);
  IS(bosk_mutex_trylock(&again), 0);
  for (int i = 0; i < 3; i++) IS(bosk_mutex_unlock(&again), 0);
  elsewhere(others_mutex, &again);
  IS(bosk_mutex_unlock(&again), 0);
  elsewhere(free_mutex, &again);
  IS(bosk_mutex_unlock(&again), BOSK_EPERM);
  IS(bosk_mutex_destroy(&again), 0);
  IS(bosk_mutex_lock(NULL), BOSK_EINVAL);
  IS(bosk_mutex_unlock(NULL), BOSK_EINVAL);
}

static void conditions(void) {
  bosk_mutex_t mutex;
  bosk_cond_t cond = BOSK_COND_INITIALIZER;
  IS(bosk_mutex_init(&mutex, BOSK_MUTEX_RECURSIVE), 0);
  IS(bosk_cond_wait(&cond, &mutex), BOSK_EPERM);
  IS(bosk_cond_signal(&cond), 0);  // nobody waits: it is not kept
  IS(bosk_cond_broadcast(&cond), 0);
  IS(bosk_mutex_lock(&mutex), 0);
  IS(bosk_mutex_lock(&mutex), 0);
  IS(bosk_cond_wait_until(&cond, &mutex, soon()), BOSK_ETIMEDOUT);
  IS(bosk_cond_wait_until(&cond, &mutex, 0), BOSK_ETIMEDOUT);
  // It is locked as often as before.
  IS(bosk_mutex_unlock(&mutex), 0);
  elsewhere(others_mutex, &mutex);
  IS(bosk_mutex_unlock(&mutex), 0);
  IS(bosk_mutex_unlock(&mutex), BOSK_EPERM);
  IS(bosk_cond_wait(NULL, &mutex), BOSK_EINVAL);
  IS(bosk_cond_wait(&cond, NULL), BOSK_EINVAL);
  IS(bosk_cond_destroy(&cond), 0);
  IS(bosk_cond_destroy(&cond), BOSK_EINVAL);
  IS(bosk_cond_signal(&cond), BOSK_EINVAL);
  IS(bosk_cond_broadcast(&cond), BOSK_EINVAL);
  IS(bosk_mutex_lock(&mutex), 0);
  IS(bosk_cond_wait(&cond, &mutex), BOSK_EINVAL);
  IS(bosk_mutex_unlock(&mutex), 0);
  IS(bosk_cond_init(&cond), 0);
  IS(bosk_cond_signal(&cond), 0);
}

static void counters(void) {
  bosk_barrier_t barrier;
  IS(bosk_barrier_init(&barrier, 0), BOSK_EINVAL);
  IS(bosk_barrier_init(NULL, 1), BOSK_EINVAL);
  IS(bosk_barrier_init(&barrier, 1), 0);
  for (int i = 0; i < 3; i++) IS(bosk_barrier_wait(&barrier), BOSK_BARRIER_SERIAL);
  IS(bosk_barrier_destroy(&barrier), 0);
  IS(bosk_barrier_destroy(&barrier), BOSK_EINVAL);
  IS(bosk_barrier_wait(&barrier), BOSK_EINVAL);

  bosk_sem_t sem;
  uint32_t value = 0;
  IS(bosk_sem_init(&sem, BOSK_SEM_MAX + 1u), BOSK_EINVAL);
  IS(bosk_sem_init(&sem, BOSK_SEM_MAX), 0);
  IS(bosk_sem_post(&sem), BOSK_EAGAIN);
  IS(bosk_sem_init(&sem, 1), 0);
  IS(bosk_sem_post(&sem), 0);
  IS(bosk_sem_value(&sem, &value), 0);
  IS(value, 2);
  IS(bosk_sem_wait(&sem), 0);
  IS(bosk_sem_wait_until(&sem, 0), 0);
  IS(bosk_sem_wait_until(&sem, 0), BOSK_ETIMEDOUT);
  IS(bosk_sem_wait_until(&sem, soon()), BOSK_ETIMEDOUT);
  IS(bosk_sem_trywait(&sem), BOSK_EBUSY);
  IS(bosk_sem_post(&sem), 0);
  IS(bosk_sem_trywait(&sem), 0);
  IS(bosk_sem_value(&sem, NULL), BOSK_EINVAL);
  IS(bosk_sem_destroy(&sem), 0);
  IS(bosk_sem_destroy(&sem), BOSK_EINVAL);
  IS(bosk_sem_wait(&sem), BOSK_EINVAL);
  IS(bosk_sem_trywait(&sem), BOSK_EINVAL);
  IS(bosk_sem_post(&sem), BOSK_EINVAL);
}

static void* others_read(void* argument) {
  bosk_rwlock_t* lock = argument;
  IS(bosk_rwlock_tryread(lock), 0);
  IS(bosk_rwlock_trywrite(lock), BOSK_EBUSY);
  IS(bosk_rwlock_write_until(lock, soon()), BOSK_ETIMEDOUT);
  IS(bosk_rwlock_unlock(lock), 0);
  return NULL;
}

static void* others_write(void* argument) {
  bosk_rwlock_t* lock = argument;
  IS(bosk_rwlock_unlock(lock), BOSK_EPERM);
  IS(bosk_rwlock_tryread(lock), BOSK_EBUSY);
  IS(bosk_rwlock_read_until(lock, soon()), BOSK_ETIMEDOUT);
  IS(bosk_rwlock_write_until(lock, 0), BOSK_ETIMEDOUT);
  return NULL;
}

static void read_write_locks(void) {
  bosk_rwlock_t lock = BOSK_RWLOCK_INITIALIZER;
  IS(bosk_rwlock_unlock(&lock), BOSK_EPERM);
  IS(bosk_rwlock_read(&lock), 0);
  elsewhere(others_read, &lock);
  IS(bosk_rwlock_destroy(&lock), BOSK_EBUSY);
  IS(bosk_rwlock_unlock(&lock), 0);
  IS(bosk_rwlock_write(&lock), 0);
  IS(bosk_rwlock_write(&lock), BOSK_EDEADLK);
  IS(bosk_rwlock_read(&lock), BOSK_EDEADLK);
  elsewhere(others_write, &lock);
  IS(bosk_rwlock_unlock(&lock), 0);
  IS(bosk_rwlock_trywrite(&lock), 0);
  IS(bosk_rwlock_unlock(&lock), 0);
  IS(bosk_rwlock_read_until(&lock, 0), 0);
  IS(bosk_rwlock_unlock(&lock), 0);
  IS(bosk_rwlock_destroy(&lock), 0);
  IS(bosk_rwlock_destroy(&lock), BOSK_EINVAL);
  IS(bosk_rwlock_read(&lock), BOSK_EINVAL);
  IS(bosk_rwlock_unlock(&lock), BOSK_EINVAL);
  IS(bosk_rwlock_init(&lock), 0);
  IS(bosk_rwlock_trywrite(&lock), 0);
}

static bosk_once_t once = BOSK_ONCE_INITIALIZER;
static int calls, inside;
static void first_time(void) {
  calls++;
  inside = bosk_once(&once, first_time);
}

static void* last_value;
static int destroyed;
static bosk_key_t first_key, second_key;
static void destroy_first(void* value) {
  last_value = value;
  destroyed++;
  CHECK(bosk_key_get(first_key) == NULL, "the value is still there in its destructor");
  // Set anew: once more.
  if (destroyed == 1) bosk_key_set(first_key, (void*)2);
}
static void* sets_values(void* argument) {
  (void)argument;
  CHECK(bosk_key_get(first_key) == NULL, "a new thread has another one's value");
  IS(bosk_key_set(first_key, (void*)1), 0);
  IS(bosk_key_set(second_key, (void*)3), 0);
  CHECK(bosk_key_get(first_key) == (void*)1, "the value is not what was set");
  return NULL;
}

static void once_and_keys(void) {
  for (int i = 0; i < 3; i++) IS(bosk_once(&once, first_time), 0);
  IS(calls, 1);
  IS(inside, BOSK_EDEADLK);
  IS(bosk_once(NULL, first_time), BOSK_EINVAL);
  IS(bosk_once(&once, NULL), BOSK_EINVAL);

  IS(bosk_key_create(NULL, NULL), BOSK_EINVAL);
  IS(bosk_key_create(&first_key, destroy_first), 0);
  IS(bosk_key_create(&second_key, NULL), 0);
  CHECK(bosk_key_get(first_key) == NULL, "a new key has a value");
  IS(bosk_key_set(first_key, &calls), 0);
  elsewhere(sets_values, NULL);
  IS(destroyed, 2);
  CHECK(last_value == (void*)2, "the last destructor got %p", last_value);
  CHECK(bosk_key_get(first_key) == &calls, "another thread changed this one's value");
  IS(bosk_key_delete(first_key), 0);
  IS(bosk_key_delete(first_key), BOSK_EINVAL);
  IS(bosk_key_set(first_key, &calls), BOSK_EINVAL);
  CHECK(bosk_key_get(first_key) == NULL, "a deleted key has a value");
  IS(bosk_key_set(0, &calls), BOSK_EINVAL);
  IS(bosk_key_delete(0), BOSK_EINVAL);
  // All there are, and again: what a former key had set is nobody's.
  bosk_key_t key, last = 0;
  int made = 0;
  while (bosk_key_create(&key, NULL) == 0) {
    IS(bosk_key_set(key, &made), 0);
    last = key;
    made++;
  }
  CHECK(made == 1023, "%d keys could be made beside one", made);
  IS(bosk_key_create(&key, NULL), BOSK_EAGAIN);
  IS(bosk_key_delete(last), 0);
  IS(bosk_key_create(&key, NULL), 0);
  CHECK(key != last && bosk_key_get(key) == NULL, "a new key has an old one's value");
}

static void* accepts(void* argument) {
  const int client = bosk_accept(*(int*)argument, NULL, NULL, SOCK_CLOEXEC);
  CHECK(client >= 0, "bosk_accept: errno %d", errno);
  char letter = 0;
  IS(bosk_read(client, &letter, 1), 1);
  letter++;
  IS(bosk_write(client, &letter, 1), 1);
  close(client);
  return NULL;
}

static void input_output(void) {
  const uint64_t from = bosk_now();
  IS(bosk_sleep_for(3000000), 0);
  CHECK(bosk_now() - from >= 3000000, "slept too short");
  IS(bosk_sleep_until(from), 0);
  IS(bosk_sleep_for(0), 0);
  CHECK(bosk_after(UINT64_MAX) == BOSK_FOREVER, "a deadline wraps around");

  int ends[2];
  CHECK(pipe(ends) == 0, "pipe failed");
  IS(bosk_wait_fd(ends[0], POLLIN, 0), BOSK_ETIMEDOUT);
  IS(bosk_wait_fd(ends[0], POLLIN, soon()), BOSK_ETIMEDOUT);
  IS(bosk_wait_fd(ends[1], POLLOUT, BOSK_FOREVER), POLLOUT);
  IS(bosk_write(ends[1], "abc", 3), 3);
  IS(bosk_wait_fd(ends[0], POLLIN, 0), POLLIN);
  char text[8] = "";
  IS(bosk_read(ends[0], text, sizeof text), 3);
  CHECK(strcmp(text, "abc") == 0, "read %s", text);
  struct pollfd both[2] = {{ends[0], POLLIN, 0}, {ends[1], POLLOUT, 0}};
  IS(bosk_poll(both, 2, BOSK_FOREVER), 1);
  IS(both[1].revents, POLLOUT);
  IS(bosk_poll(both, 1, soon()), 0);
  struct pollfd many[20];
  for (int i = 0; i < 20; i++) many[i] = both[0];
  IS(bosk_poll(many, 20, soon()), 0);
  IS(bosk_poll(NULL, 0, soon()), 0);
  IS(bosk_poll(NULL, 1, 0), BOSK_EINVAL);
  // Much more than a pipe holds: as much as fits, and no waiting in the kernel.
  static char much[1 << 20];
  const ssize_t some = bosk_write(ends[1], much, sizeof much);
  CHECK(some > 0 && some < (ssize_t)sizeof much, "wrote %zd bytes into a pipe", some);
  close(ends[1]);
  ssize_t back = 0, got;
  while ((got = bosk_read(ends[0], much, sizeof much)) > 0) back += got;
  IS(got, 0);
  IS(back, some);
  CHECK((bosk_wait_fd(ends[0], POLLIN, BOSK_FOREVER) & POLLHUP) != 0, "no hang-up");
  close(ends[0]);
  IS(bosk_wait_fd(ends[0], POLLIN, BOSK_FOREVER), BOSK_EIO);
  IS(errno, EBADF);
  IS(bosk_wait_fd(-1, POLLIN, BOSK_FOREVER), BOSK_EIO);
  IS(bosk_read(ends[0], text, 1), BOSK_EIO);
  IS(bosk_write(ends[0], text, 1), BOSK_EIO);
  IS(bosk_accept(ends[0], NULL, NULL, 0), BOSK_EIO);

  // An ordinary file.
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  IS(bosk_read(file, text, 4), 4);
  CHECK(memcmp(text, "\177ELF", 4) == 0, "read something else than an ELF file");
  IS(bosk_write(file, text, 4), BOSK_EIO);
  close(file);

  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in at;
  memset(&at, 0, sizeof at);
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  CHECK(bind(server, (struct sockaddr*)&at, sizeof at) == 0 && listen(server, 1) == 0 &&
            getsockname(server, (struct sockaddr*)&at, &size) == 0,
        "no socket: errno %d", errno);
  pthread_t other;
  int copy = server;
  CHECK(pthread_create(&other, NULL, accepts, &copy) == 0, "pthread_create failed");
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  IS(bosk_connect(client, (struct sockaddr*)&at, sizeof at, BOSK_FOREVER), 0);
  IS(fcntl(client, F_GETFL) & O_NONBLOCK, 0);
  IS(bosk_write(client, "a", 1), 1);
  IS(bosk_read(client, text, 1), 1);
  IS(text[0], 'b');
  pthread_join(other, NULL);
  IS(bosk_read(client, text, 1), 0);
  close(client);
  close(server);
  const int refused = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  IS(bosk_connect(refused, (struct sockaddr*)&at, sizeof at, BOSK_FOREVER), BOSK_EIO);
  IS(errno, ECONNREFUSED);
  close(refused);
}

int main(void) {
  mutexes();
  conditions();
  counters();
  read_write_locks();
  once_and_keys();
  input_output();
  // The thread that has used all this before its first region opens one like any other.
  int members = 0;
#pragma omp parallel num_threads(3) reduction(+ : members)
  members++;
  IS(members, 3);
  return passed();
}
