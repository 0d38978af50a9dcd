// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members block in the kernel while others compute and spin: no call ends early, none with EINTR, none absurdly late.
//   calls CALL flat|nested [MEMBERS]
// What acts on the thread by its number (futex) is in a program of its own: calls_by_number.c.
#include "calls.h"

#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

static struct timespec after(clockid_t clock, double seconds) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_nsec += (long)(seconds * 1e9);
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}

// Each of these waits for wait_s seconds.

static void by_sleep(void) {
  const unsigned left = sleep(1);
  CHECK(left == 0, "sleep: %u s left", left);
}
static void by_usleep(void) { MUST(usleep((useconds_t)(1000 * wait_ms)) == 0); }
static void by_nanosleep(void) { MUST(nanosleep(&wait_time, NULL) == 0); }
static void by_clock_nanosleep(void) {
  const int error = clock_nanosleep(CLOCK_MONOTONIC, 0, &wait_time, NULL);
  CHECK(error == 0, "clock_nanosleep: %d", error);
}
static void by_clock_nanosleep_until(void) {
  const struct timespec end = after(CLOCK_MONOTONIC, wait_s);
  const int error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
  CHECK(error == 0, "clock_nanosleep: %d", error);
}
static void by_poll(void) { MUST(poll(NULL, 0, (int)wait_ms) == 0); }
static void by_ppoll(void) { MUST(ppoll(NULL, 0, &wait_time, NULL) == 0); }
static void by_select(void) {
  struct timeval t = {0, 1000 * wait_ms};
  MUST(select(0, NULL, NULL, NULL, &t) == 0);
}
static void by_pselect(void) { MUST(pselect(0, NULL, NULL, NULL, &wait_time, NULL) == 0); }
static void by_epoll(void) {
  struct epoll_event event;
  const int fd = epoll_create1(0);
  MUST(epoll_wait(fd, &event, 1, (int)wait_ms) == 0);
  close(fd);
}
static void by_epoll_pwait(void) {
  struct epoll_event event;
  sigset_t set;
  sigemptyset(&set);
  const int fd = epoll_create1(0);
  MUST(epoll_pwait(fd, &event, 1, (int)wait_ms, &set) == 0);
  close(fd);
}
static void by_sigtimedwait(void) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  MUST(sigtimedwait(&set, NULL, &wait_time) == -1 && errno == EAGAIN);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}
static void by_semtimedop(void) {
  const int id = semget(IPC_PRIVATE, 1, 0600);
  MUST(id >= 0);
  struct sembuf down = {0, -1, 0};
  const int result = semtimedop(id, &down, 1, &wait_time);
  const int error = errno;
  semctl(id, 0, IPC_RMID);
  CHECK(result == -1 && error == EAGAIN, "semtimedop: %d, errno %d", result, error);
}
static void by_recv_timeout(void) {
  int ends[2];
  char byte;
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const struct timeval t = {0, 1000 * wait_ms};
  MUST(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0);
  MUST(recv(ends[0], &byte, 1, 0) == -1 && errno == EAGAIN);
  close(ends[0]);
  close(ends[1]);
}
static void by_sem_timedwait(void) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const struct timespec end = after(CLOCK_REALTIME, wait_s);
  MUST(sem_timedwait(&semaphore, &end) == -1 && errno == ETIMEDOUT);
}
static void by_sem_clockwait(void) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const struct timespec end = after(CLOCK_MONOTONIC, wait_s);
  MUST(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &end) == -1 && errno == ETIMEDOUT);
}
static void by_cond_timedwait(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const struct timespec end = after(CLOCK_REALTIME, wait_s);
  pthread_mutex_lock(&mutex);
  int error = 0;
  while (error == 0) error = pthread_cond_timedwait(&condition, &mutex, &end);
  pthread_mutex_unlock(&mutex);
  CHECK(error == ETIMEDOUT, "pthread_cond_timedwait: %d", error);
}
static void by_mutex_timedlock(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  const struct timespec end = after(CLOCK_REALTIME, wait_s);
  const int error = pthread_mutex_timedlock(&mutex, &end);
  CHECK(error == ETIMEDOUT, "pthread_mutex_timedlock: %d", error);
}
static void by_mq(void) {
  char name[64], byte[16];
  snprintf(name, sizeof name, "/bosk-hard-%d-%p", getpid(), (void*)name);
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = sizeof byte};
  const mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
  MUST(queue != (mqd_t)-1);
  mq_unlink(name);
  const struct timespec end = after(CLOCK_REALTIME, wait_s);
  MUST(mq_timedreceive(queue, byte, sizeof byte, NULL, &end) == -1 && errno == ETIMEDOUT);
  mq_close(queue);
}
/// The usual loop: with a period shorter than the time-out it would never end.
static void by_retry(void) {
  while (poll(NULL, 0, (int)wait_ms) < 0 && errno == EINTR) {
  }
}

// In these an ordinary thread does its part meanwhile, in steps, until wait_s has gone.

enum { kSteps = 6 };

static void step_pause(void) {
  const struct timespec t = {0, wait_ms * 1000000 / kSteps + 1000000};
  nanosleep(&t, NULL);
}

static void* write_in_steps(void* fd) {
  for (int i = 0; i < kSteps; ++i) {
    step_pause();
    MUST(write(*(int*)fd, "0123456789", 10) == 10);
  }
  return NULL;
}
static void by_recv_all(void) {
  int ends[2];
  char bytes[10 * kSteps];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  pthread_t writer;
  pthread_create(&writer, NULL, write_in_steps, &ends[1]);
  const ssize_t got = recv(ends[0], bytes, sizeof bytes, MSG_WAITALL);
  CHECK(got == (ssize_t)sizeof bytes, "recv(MSG_WAITALL): %zd of %zu, errno %d", got, sizeof bytes,
        errno);
  pthread_join(writer, NULL);
  close(ends[0]);
  close(ends[1]);
}

static void* write_late(void* fd) {
  for (int i = 0; i < kSteps; ++i) step_pause();
  MUST(write(*(int*)fd, "x", 1) == 1);
  return NULL;
}
static void by_read(void) {
  int ends[2];
  char byte;
  MUST(pipe(ends) == 0);
  pthread_t writer;
  pthread_create(&writer, NULL, write_late, &ends[1]);
  MUST(read(ends[0], &byte, 1) == 1);
  pthread_join(writer, NULL);
  close(ends[0]);
  close(ends[1]);
}

enum { kLong = 4 << 20 };

struct stream {
  int fd;
  const char* expected;
};

static void* read_slowly(void* argument) {
  const struct stream* stream = argument;
  char* buffer = malloc(kLong / 128);
  for (long sum = 0, step = 0; sum < kLong; ++step) {
    if (step < 60) {
      const struct timespec t = {0, wait_ms * 1000000 / 55};
      nanosleep(&t, NULL);
    }
    const ssize_t got = read(stream->fd, buffer, kLong / 128);
    MUST(got > 0);
    CHECK(memcmp(buffer, stream->expected + sum, (size_t)got) == 0, "other bytes from %ld on", sum);
    sum += got;
  }
  free(buffer);
  return NULL;
}
enum way { kWrite, kWritev, kSendmsg, kSendfile };

/// All of kLong bytes go, whichever way, to somebody who takes them slowly; in their order.
static void put_all(enum way way) {
  int ends[2];
  char* bytes = malloc(kLong);
  for (int i = 0; i < kLong; ++i) bytes[i] = (char)(i * 7 / 13);
  struct iovec parts[] = {{bytes, 100000},
                          {bytes + 100000, kLong / 2},
                          {bytes + 100000 + kLong / 2, kLong / 2 - 100000}};
  const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
  if (way == kWrite || way == kWritev)
    MUST(pipe(ends) == 0);
  else
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  char name[] = "/tmp/bosk-hard-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  MUST(file >= 0 && write(file, bytes, kLong) == kLong && lseek(file, 0, SEEK_SET) == 0);
  pthread_t reader;
  struct stream stream = {way == kWrite || way == kWritev ? ends[0] : ends[1], bytes};
  const int to = way == kWrite || way == kWritev ? ends[1] : ends[0];
  pthread_create(&reader, NULL, read_slowly, &stream);
  const ssize_t put = way == kWrite     ? write(to, bytes, kLong)
                      : way == kWritev  ? writev(to, parts, 3)
                      : way == kSendmsg ? sendmsg(to, &message, 0)
                                        : sendfile(to, file, NULL, kLong);
  CHECK(put == kLong, "%zd of %d bytes, errno %d", put, kLong, errno);
  pthread_join(reader, NULL);
  close(ends[0]);
  close(ends[1]);
  close(file);
  free(bytes);
}
static void by_write(void) { put_all(kWrite); }
static void by_writev(void) { put_all(kWritev); }
static void by_sendmsg(void) { put_all(kSendmsg); }
static void by_sendfile(void) { put_all(kSendfile); }

/// The kernel computes for long, call after call.
static void get_all(const char* device) {
  const double end = now() + wait_s;
  const int fd = open(device, O_RDONLY);
  char* bytes = malloc(kLong);
  MUST(fd >= 0);
  do {
    const ssize_t got =
        is(device, "/dev/zero") ? read(fd, bytes, kLong) : getrandom(bytes, kLong, 0);
    CHECK(got == kLong, "%zd of %d bytes, errno %d", got, kLong, errno);
  } while (now() < end);
  free(bytes);
  close(fd);
}
static void by_getrandom(void) { get_all("/dev/urandom"); }
static void by_read_zeros(void) { get_all("/dev/zero"); }

static void* connect_late(void* address) {
  for (int i = 0; i < kSteps; ++i) step_pause();
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  MUST(connect(fd, address, sizeof(struct sockaddr_un)) == 0);
  close(fd);
  return NULL;
}
static void by_accept(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "bosk-hard-%d-%p", getpid(),
           (void*)&address);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  MUST(bind(fd, (struct sockaddr*)&address, sizeof address) == 0 && listen(fd, 1) == 0);
  pthread_t caller;
  pthread_create(&caller, NULL, connect_late, &address);
  const int got = accept(fd, NULL, NULL);
  CHECK(got >= 0, "accept: errno %d", errno);
  pthread_join(caller, NULL);
  close(got);
  close(fd);
}

static void* unlock_late(void* fd) {
  for (int i = 0; i < kSteps; ++i) step_pause();
  MUST(flock(*(int*)fd, LOCK_UN) == 0);
  return NULL;
}
static void by_flock(void) {
  char name[] = "/tmp/bosk-hard-XXXXXX";
  int first = mkstemp(name);
  const int second = open(name, O_RDWR);
  unlink(name);
  MUST(first >= 0 && second >= 0 && flock(first, LOCK_EX) == 0);
  pthread_t owner;
  pthread_create(&owner, NULL, unlock_late, &first);
  MUST(flock(second, LOCK_EX) == 0);
  pthread_join(owner, NULL);
  close(first);
  close(second);
}

// Only a handler of the program ends these. The signal is blocked everywhere else, so that the process's goes to this member;
// one member waits so, the others spin.

static int handled;
static int woken;

static void note(int number) {
  (void)number;
  __atomic_add_fetch(&handled, 1, __ATOMIC_ACQ_REL);
}

static void* send_late(void* unused) {
  for (int i = 0; i < kSteps; ++i) step_pause();
  // Again and again: the first may come before pause() is called.
  while (!__atomic_load_n(&woken, __ATOMIC_ACQUIRE)) {
    kill(getpid(), SIGUSR1);
    step_pause();
  }
  return unused;
}
static void block_everywhere(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  signal(SIGUSR1, note);
}
static void by_handler(int with_pause) {
  sigset_t without, before;
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  without = before;
  sigdelset(&without, SIGUSR1);
  pthread_t sender;
  pthread_create(&sender, NULL, send_late, NULL);
  if (with_pause) {
    pthread_sigmask(SIG_SETMASK, &without, NULL);
    MUST(pause() == -1 && errno == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  } else {
    MUST(sigsuspend(&without) == -1 && errno == EINTR);
  }
  CHECK(__atomic_load_n(&handled, __ATOMIC_ACQUIRE) > 0, "%s returned, and no handler has run",
        with_pause ? "pause" : "sigsuspend");
  __atomic_store_n(&woken, 1, __ATOMIC_RELEASE);
  pthread_join(sender, NULL);
}
static void by_sigsuspend(void) { by_handler(0); }
static void by_pause(void) { by_handler(1); }

static const struct call kCalls[] = {
    {"sleep", by_sleep, NULL},
    {"usleep", by_usleep, NULL},
    {"nanosleep", by_nanosleep, NULL},
    {"clock_nanosleep", by_clock_nanosleep, NULL},
    {"clock_nanosleep_until", by_clock_nanosleep_until, NULL},
    {"poll", by_poll, NULL},
    {"ppoll", by_ppoll, NULL},
    {"select", by_select, NULL},
    {"pselect", by_pselect, NULL},
    {"epoll_wait", by_epoll, NULL},
    {"epoll_pwait", by_epoll_pwait, NULL},
    {"sigtimedwait", by_sigtimedwait, NULL},
    {"semtimedop", by_semtimedop, NULL},
    {"recv_timeout", by_recv_timeout, NULL},
    {"sem_timedwait", by_sem_timedwait, NULL},
    {"sem_clockwait", by_sem_clockwait, NULL},
    {"cond_timedwait", by_cond_timedwait, NULL},
    {"mutex_timedlock", by_mutex_timedlock, NULL},
    {"mq_timedreceive", by_mq, NULL},
    {"retry", by_retry, NULL},
    {"recv_all", by_recv_all, NULL},
    {"read", by_read, NULL},
    {"write", by_write, NULL},
    {"writev", by_writev, NULL},
    {"sendmsg", by_sendmsg, NULL},
    {"sendfile", by_sendfile, NULL},
    {"getrandom", by_getrandom, NULL},
    {"read_zeros", by_read_zeros, NULL},
    {"accept", by_accept, NULL},
    {"flock", by_flock, NULL},
    {"sigsuspend", by_sigsuspend, block_everywhere},
    {"pause", by_pause, block_everywhere},
};

int main(int argc, char** argv) {
  return run_call(argc, argv, kCalls, sizeof kCalls / sizeof kCalls[0]);
}
