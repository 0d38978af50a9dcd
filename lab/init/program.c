// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starts the program: in the host's root, as the host's user, with pipes or a terminal.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init.h"

/// What the child could not do, sent through a pipe that a successful exec closes.
struct Failure {
  int step;
  int error;
};
enum { kSetUp = 1, kEnter, kExec };

extern char** environ;

static void make_pipe(int ends[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0) give_up(125, "the guest has no pipe: %s", strerror(errno));
}

/// A pair of ends like a pipe's: [0] the program's, [1] ours.
static void make_terminal(const struct Job* job, int ends[2]) {
  ends[1] = open("/root/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  int number = 0;
  int locked = 0;
  if (ends[1] < 0 || ioctl(ends[1], TIOCSPTLCK, &locked) != 0 ||
      ioctl(ends[1], TIOCGPTN, &number) != 0) {
    give_up(125, "the guest has no terminal: %s", strerror(errno));
  }
  char path[40];
  snprintf(path, sizeof path, "/root/dev/pts/%d", number);
  ends[0] = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ends[0] < 0) give_up(125, "the guest has no terminal: %s", strerror(errno));
  const struct winsize size = {.ws_row = (unsigned short)job->rows,
                               .ws_col = (unsigned short)job->columns};
  ioctl(ends[1], TIOCSWINSZ, &size);
}

static int take_user(const struct Job* job) {
  for (size_t i = 0; i < job->n_limits; i++) {
    const struct rlimit limit = {job->limits[i].soft, job->limits[i].hard};
    setrlimit((__rlimit_resource_t)job->limits[i].resource, &limit);  // what the kernel allows
  }
  return setgroups(job->n_groups, job->groups) == 0 && setgid(job->group) == 0 &&
         setuid(job->user) == 0;
}

__attribute__((noreturn)) static void run_program(const struct Job* job, const int files[3],
                                                  int failures) {
  struct Failure failure = {kSetUp, 0};
  setsid();
  if (job->terminal) ioctl(files[0], TIOCSCTTY, 0);
  for (int file = 0; file < 3; file++) dup2(files[file], file);
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (chroot("/root") == 0 && chdir("/") == 0 && take_user(job)) {
    failure.step = kEnter;
    if (chdir(job->directory) == 0) {
      failure.step = kExec;
      environ = job->environment;
      execvp(job->arguments[0], job->arguments);
    }
  }
  failure.error = errno;
  write_all(failures, &failure, sizeof failure);
  _exit(127);
}

__attribute__((noreturn)) static void explain(const struct Job* job, struct Failure failure) {
  const char* const reason = strerror(failure.error);
  if (failure.step == kEnter) give_up(125, "the guest cannot enter %s: %s", job->directory, reason);
  if (failure.step != kExec) give_up(125, "the guest cannot start a program: %s", reason);
  if (failure.error == ENOENT) {
    give_up(127, "%s: there is no such program in the guest", job->arguments[0]);
  }
  give_up(126, "%s: the guest cannot run it: %s", job->arguments[0], reason);
}

void start_program(const struct Job* job, struct Program* program) {
  // Each pair: [0] is the program's end, [1] ours.
  int input[2], output[2] = {-1, -1}, error[2] = {-1, -1}, failures[2];
  if (job->terminal) {
    make_terminal(job, input);
  } else {
    int ends[2];
    make_pipe(input);
    make_pipe(ends);
    output[0] = ends[1];
    output[1] = ends[0];
    if (!job->one_stream) {
      make_pipe(ends);
      error[0] = ends[1];
      error[1] = ends[0];
    }
  }
  make_pipe(failures);

  const int out = job->terminal ? input[0] : output[0];
  const int files[3] = {input[0], out, error[0] >= 0 ? error[0] : out};
  program->process = fork();
  if (program->process < 0) give_up(125, "the guest cannot fork: %s", strerror(errno));
  if (program->process == 0) run_program(job, files, failures[1]);

  close(failures[1]);
  struct Failure failure;
  if (read(failures[0], &failure, sizeof failure) == (ssize_t)sizeof failure) explain(job, failure);
  close(failures[0]);
  close(input[0]);
  if (output[0] >= 0) close(output[0]);
  if (error[0] >= 0) close(error[0]);
  program->input = input[1];
  program->output = job->terminal ? dup(input[1]) : output[1];
  program->error = error[1];
}
