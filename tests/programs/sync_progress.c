// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who waits does not hold its worker: the others get on although there is one worker and no preemption. Each mode
// would hang if a wait kept the worker.
// sync_progress sleep|read|write|accept|poll|all
#include <bosk/sync.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <omp.h>
#include <poll.h>
#include <sys/socket.h>

#include "check.h"

enum { kMembers = 8 };

/// All members sleep until the last one, by number, has had its turn; each can have it only while the one before
/// sleeps.
static void sleeping(void) {
  int turn = 0;
#pragma omp parallel num_threads(kMembers)
  {
    const int me = kMembers - 1 - omp_get_thread_num();
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != me)
      CHECK(bosk_sleep_for(100000) == 0, "sleep");
    __atomic_store_n(&turn, me + 1, __ATOMIC_RELEASE);
  }
  CHECK(turn == kMembers, "%d turns", turn);
}

/// A byte goes round a ring of pipes, several times. All but one member read first.
static void ring(int blocking) {
  int pipes[kMembers][2];
  for (int i = 0; i < kMembers; i++)
    CHECK(pipe2(pipes[i], blocking ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
  int rounds = 0;
#pragma omp parallel num_threads(kMembers)
  {
    const int me = omp_get_thread_num();
    for (int round = 0; round < 50; round++) {
      char byte = 'x';
      if (me != kMembers - 1 || round > 0)
        CHECK(bosk_read(pipes[me][0], &byte, 1) == 1, "read: errno %d", errno);
      CHECK(bosk_write(pipes[(me + 1) % kMembers][1], &byte, 1) == 1, "write: errno %d", errno);
      if (me == 0) rounds++;
    }
    if (me == kMembers - 1) {
      char byte;
      CHECK(bosk_read(pipes[me][0], &byte, 1) == 1, "last read");
    }
  }
  CHECK(rounds == 50, "%d rounds", rounds);
  for (int i = 0; i < kMembers; i++) close(pipes[i][0]), close(pipes[i][1]);
}

/// Much more than a pipe or socket holds: writers wait for readers.
static void writing(void) {
  enum { kBytes = 1 << 20 };
  int ends[2][2];
  CHECK(pipe2(ends[0], O_CLOEXEC) == 0, "pipe2");
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[1]) == 0, "socketpair");
  long read_bytes[2] = {0, 0};
#pragma omp parallel num_threads(4)
  {
    const int me = omp_get_thread_num();
    char* buffer = calloc(1, kBytes);
    if (me < 2) {
      for (long left = kBytes; left > 0;) {
        const ssize_t done = bosk_write(ends[me][1], buffer, (size_t)left);
        CHECK(done > 0, "write: %zd, errno %d", done, errno);
        left -= done;
      }
      close(ends[me][1]);
    } else {
      ssize_t done;
      while ((done = bosk_read(ends[me - 2][0], buffer, kBytes)) > 0) read_bytes[me - 2] += done;
      CHECK(done == 0, "read: %zd, errno %d", done, errno);
    }
    free(buffer);
  }
  CHECK(read_bytes[0] == kBytes && read_bytes[1] == kBytes, "%ld and %ld bytes", read_bytes[0],
        read_bytes[1]);
  close(ends[0][0]);
  close(ends[1][0]);
}

/// A server and its clients in one team: each accepts, connects or reads while the others must act.
static void network(void) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in at;
  memset(&at, 0, sizeof at);
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  CHECK(bind(server, (struct sockaddr*)&at, sizeof at) == 0 && listen(server, 16) == 0 &&
            getsockname(server, (struct sockaddr*)&at, &size) == 0,
        "no socket: errno %d", errno);
  int answers = 0;
#pragma omp parallel num_threads(kMembers) reduction(+ : answers)
  {
    if (omp_get_thread_num() == 0) {
      for (int i = 0; i < kMembers - 1; i++) {
        const int client = bosk_accept(server, NULL, NULL, SOCK_CLOEXEC);
        CHECK(client >= 0, "accept: errno %d", errno);
        char byte;
        CHECK(bosk_read(client, &byte, 1) == 1, "read: errno %d", errno);
        byte++;
        CHECK(bosk_write(client, &byte, 1) == 1, "write: errno %d", errno);
        close(client);
      }
    } else {
      const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      CHECK(bosk_connect(client, (struct sockaddr*)&at, sizeof at, BOSK_FOREVER) == 0,
            "connect: errno %d", errno);
      char byte = 'a';
      CHECK(bosk_write(client, &byte, 1) == 1, "write: errno %d", errno);
      CHECK(bosk_read(client, &byte, 1) == 1 && byte == 'b', "read %c: errno %d", byte, errno);
      close(client);
      answers++;
    }
  }
  CHECK(answers == kMembers - 1, "%d answers", answers);
  close(server);
}

/// Several descriptors, several waiters on the same ones, and descriptors whose numbers are used again.
static void polling(void) {
  for (int round = 0; round < 30; round++) {
    int pipes[10][2];
    for (int i = 0; i < 10; i++) CHECK(pipe2(pipes[i], O_CLOEXEC) == 0, "pipe2");
    int seen = 0;
#pragma omp parallel num_threads(5) reduction(+ : seen)
    {
      if (omp_get_thread_num() == 4) {
        CHECK(write(pipes[round % 10][1], "x", 1) == 1, "write");
      } else if (omp_get_thread_num() == 3) {
        const int happened = bosk_wait_fd(pipes[round % 10][0], POLLIN, BOSK_FOREVER);
        CHECK(happened == POLLIN, "bosk_wait_fd: %d, errno %d", happened, errno);
        seen++;
      } else {
        struct pollfd all[11];
        for (int i = 0; i < 10; i++) all[i] = (struct pollfd){pipes[i][0], POLLIN, 0};
        all[10] = (struct pollfd){-1, POLLIN, 0};
        const int ready = bosk_poll(all, 11, BOSK_FOREVER);
        CHECK(ready == 1 && all[round % 10].revents == POLLIN, "bosk_poll: %d", ready);
        seen++;
      }
    }
    CHECK(seen == 4, "%d have seen it", seen);
    for (int i = 0; i < 10; i++) close(pipes[i][0]), close(pipes[i][1]);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "all";
  const int all = strcmp(mode, "all") == 0;
  if (all || strcmp(mode, "sleep") == 0) sleeping();
  if (all || strcmp(mode, "read") == 0) ring(1), ring(0);
  if (all || strcmp(mode, "write") == 0) writing();
  if (all || strcmp(mode, "accept") == 0) network();
  if (all || strcmp(mode, "poll") == 0) polling();
  return passed();
}
