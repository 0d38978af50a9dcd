// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Between the program's pipes and the host's ports, until the program has ended.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init.h"

/// Input that the program has not taken yet.
struct Pending {
  char* data;
  size_t at, size;
};

static void close_file(int* file) {
  if (*file >= 0) close(*file);
  *file = -1;
}

/// One read's worth. A pipe or terminal whose other end is gone is closed.
static void pass_output(int* from, int to) {
  static char buffer[32768];  // what the port takes at once
  const ssize_t got = read(*from, buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0 || !write_all(to, buffer, (size_t)got)) close_file(from);
}

static void end_input(const struct Job* job, struct Program* program) {
  // A terminal has no end; what it has is the character that stands for one.
  if (job->terminal) {
    write_all(program->input, "\004", 1);
  } else {
    close_file(&program->input);
  }
}

static void take_input(const struct Job* job, struct Program* program, struct Pending* pending) {
  char kind;
  free(pending->data);
  pending->at = 0;
  pending->data = receive_message(ports.input, &kind, &pending->size);
  if (kind == LAB_INPUT && pending->size == 0) end_input(job, program);
}

static void pass_input(struct Program* program, struct Pending* pending) {
  const ssize_t written =
      write(program->input, pending->data + pending->at, pending->size - pending->at);
  if (written >= 0) {
    pending->at += (size_t)written;
  } else if (errno != EAGAIN && errno != EINTR) {
    pending->at = pending->size;  // it has closed its standard input
    close_file(&program->input);
  }
}

static void take_control(const struct Program* program) {
  char kind;
  size_t size;
  char* text = receive_message(ports.control, &kind, &size);
  struct winsize window = {0};
  if (kind == LAB_WINDOW && sscanf(text, "%hu %hu", &window.ws_row, &window.ws_col) == 2) {
    ioctl(program->output, TIOCSWINSZ, &window);
  }
  free(text);
}

static int shell_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// As the first process we inherit orphans, too. True: the program itself has ended.
static int reap(const struct Program* program, int* result) {
  int ended = 0;
  int status;
  for (pid_t process = waitpid(-1, &status, WNOHANG); process > 0;
       process = waitpid(-1, &status, WNOHANG)) {
    if (process != program->process) continue;
    *result = shell_status(status);
    ended = 1;
  }
  return ended;
}

int relay(const struct Job* job, struct Program* program) {
  // A child that ends before the descriptor is there is found by the first reap().
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  const int children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  fcntl(program->input, F_SETFL, O_NONBLOCK);

  struct Pending pending = {NULL, 0, 0};
  int result = 0;
  int running = 1;
  for (;;) {
    if (running && reap(program, &result)) {
      running = 0;
      // What it has left behind would keep the pipes open, and goes with the machine anyway.
      kill(-1, SIGKILL);
      close_file(&program->input);
    }
    if (!running && program->output < 0 && program->error < 0) break;
    const int has_input = pending.at < pending.size;
    struct pollfd files[] = {
        {children, POLLIN, 0},
        {program->output, POLLIN, 0},
        {program->error, POLLIN, 0},
        {program->input >= 0 && has_input ? program->input : -1, POLLOUT, 0},
        {program->input >= 0 && !has_input ? ports.input : -1, POLLIN, 0},
        {job->terminal ? ports.control : -1, POLLIN, 0},
    };
    // The killed cannot hold their pipes for long; two seconds is for a machine that is very slow.
    const int ready = poll(files, sizeof files / sizeof files[0], running ? -1 : 2000);
    if (ready < 0 && errno != EINTR) give_up(125, "the guest cannot poll: %s", strerror(errno));
    if (ready == 0) break;
    if (ready < 0) continue;
    if (files[0].revents != 0) {
      struct signalfd_siginfo ignored;
      while (read(children, &ignored, sizeof ignored) > 0) continue;
    }
    if (files[1].revents != 0) pass_output(&program->output, ports.output);
    if (files[2].revents != 0) pass_output(&program->error, ports.error);
    if (files[3].revents != 0) pass_input(program, &pending);
    if (files[4].revents & POLLIN) take_input(job, program, &pending);
    if (files[5].revents & POLLIN) take_control(program);
  }
  return result;
}
