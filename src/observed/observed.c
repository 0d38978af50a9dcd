/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* lib/libbosk-observed.so: all that is in a program that `bosk run --learn` observes. It makes a userfaultfd, hands it to the observer, which does the
 * rest from outside (docs/design/affinity.md), and is gone: no thread, no memory, no open file, no handler but the one for forked children. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "observed/hand_over.h"

/* Newer than the headers that we are built with. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define FEATURES ((1ULL << 13) | (1ULL << 15)) /* WP_UNPOPULATED, WP_ASYNC */

static struct sockaddr_un observer;
static socklen_t observer_size;

/* Not by syscall(): bosk's library, which may come first, takes that for a wish of the program's, and has the observer let go of it. */
static int system_userfaultfd(long flags) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"((long)SYS_userfaultfd), "D"(flags)
                   : "rcx", "r11", "memory");
  return (int)result;
#else
  int made = (int)syscall(SYS_userfaultfd, flags);
  return made < 0 ? -errno : made;
#endif
}

/* Returns a descriptor, or -errno. Everybody may have one for faults of user mode, unless a filter forbids the call. */
static int make_userfaultfd(void) {
  int made = system_userfaultfd(O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  if (made < 0) return made;
  struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};
  if (ioctl(made, UFFDIO_API, &api) != 0) {
    int error = errno;
    close(made);
    return -error;
  }
  return made;
}

static void say_hello(void) {
  /* Never waits: an observer that is gone, or has too much to do, goes without this process. */
  int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (to < 0) return;
  if (connect(to, (struct sockaddr*)&observer, observer_size) == 0) {
    int made = make_userfaultfd();
    struct bosk_observed_message hello = {BOSK_OBSERVED_VERSION, BOSK_OBSERVED_HELLO,
                                          made < 0 ? -made : 0};
    struct iovec text = {&hello, sizeof hello};
    union {
      struct cmsghdr header;
      char bytes[CMSG_SPACE(sizeof(int))];
    } with;
    memset(&with, 0, sizeof with);
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
    if (made >= 0) {
      message.msg_control = &with;
      message.msg_controllen = sizeof with;
      with.header.cmsg_level = SOL_SOCKET;
      with.header.cmsg_type = SCM_RIGHTS;
      with.header.cmsg_len = CMSG_LEN(sizeof(int));
      memcpy(CMSG_DATA(&with.header), &made, sizeof made);
    }
    (void)!sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (made >= 0) close(made);
  }
  close(to);
}

/* Of a program that forks all the time, most children are gone before anything could be learnt of them, and each hello costs as much as the fork. So
 * many are said at once, and so many a second after that; who says none is not observed. */
#define HELLOS_AT_ONCE 256
#define HELLOS_A_SECOND 16

/* Atomic for threads that fork at the same time; who is counted wrong then is observed, or not, and nothing else hangs on it. */
static _Atomic int hellos_left = HELLOS_AT_ONCE;
static _Atomic long counted_at;
static _Atomic int may_say_hello;

static void before_fork(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  long seconds = now.tv_sec - atomic_load_explicit(&counted_at, memory_order_relaxed);
  int left = atomic_load_explicit(&hellos_left, memory_order_relaxed);
  if (seconds > 0) {
    atomic_store_explicit(&counted_at, now.tv_sec, memory_order_relaxed);
    long more = seconds < HELLOS_AT_ONCE ? seconds * HELLOS_A_SECOND : HELLOS_AT_ONCE;
    left = left + more < HELLOS_AT_ONCE ? (int)(left + more) : HELLOS_AT_ONCE;
  }
  atomic_store_explicit(&may_say_hello, left > 0, memory_order_relaxed);
  atomic_store_explicit(&hellos_left, left > 0 ? left - 1 : 0, memory_order_relaxed);
}

/* A child has the memory of its own now, and its parent's userfaultfd is not for that. */
static void in_child(void) {
  int before = errno;
  if (atomic_load_explicit(&may_say_hello, memory_order_relaxed)) say_hello();
  errno = before;
}

__attribute__((constructor)) static void begin(void) {
  const char* name = getenv(BOSK_OBSERVER_VARIABLE);
  if (name == NULL || *name == '\0') return;
  size_t length = strlen(name);
  if (length >= sizeof observer.sun_path) return;
  observer.sun_family = AF_UNIX;
  /* Abstract: its first byte is zero, and there is no file. */
  memcpy(observer.sun_path + 1, name, length);
  observer_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  int before = errno;
  say_hello();
  errno = before;
  pthread_atfork(before_fork, NULL, in_child);
}
