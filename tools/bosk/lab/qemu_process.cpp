// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sockets, fork, exec, and the end.
#include "bosk/lab/qemu_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bosk/lab/error.h"

namespace bosk::tools::lab {
namespace {

constexpr int kNoProgram = 127;

[[noreturn]] void fail(const char* what) {
  throw LabError(kFailure, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// Our end in `ours`; returns QEMU's, which it inherits.
int channel(Descriptor* ours) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("no socket");
  ours->reset(ends[0]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return ends[1];
}

[[noreturn]] void become_qemu(const std::vector<std::string>& words,
                              const std::vector<int>& inherited, int messages, pid_t parent) {
  // However we end, so does it; unless we already have.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNoProgram);
  // The terminal's Ctrl-C is for us; we end it when we have said what there is to say.
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  for (const int descriptor : inherited) fcntl(descriptor, F_SETFD, 0);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(messages, STDOUT_FILENO);
  dup2(messages, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(kNoProgram);
}

}  // namespace

void Descriptor::reset(int number) {
  if (number_ >= 0) close(number_);
  number_ = number;
}

QemuProcess::~QemuProcess() { stop(true); }

void QemuProcess::start(QemuCommand command, int keep) {
  Channels& theirs = command.channels;
  theirs.console = channel(&console);
  theirs.control = channel(&control);
  theirs.input = channel(&input);
  theirs.output = channel(&output);
  theirs.error = channel(&error);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("no pipe");
  messages.reset(ends[0]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);

  const std::vector<std::string> words = qemu_words(command);
  const std::vector<int> inherited = {theirs.console, theirs.control, theirs.input,
                                      theirs.output,  theirs.error,   keep};
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) become_qemu(words, inherited, ends[1], parent);
  const int fork_error = errno;
  close(ends[1]);
  for (const int descriptor : inherited) {
    if (descriptor != keep) close(descriptor);
  }
  errno = fork_error;
  if (process_ < 0) fail("no process for QEMU");
}

bool QemuProcess::ended() {
  if (process_ < 0) return true;
  const pid_t got = waitpid(process_, nullptr, WNOHANG);
  if (got == process_ || (got < 0 && errno == ECHILD)) process_ = -1;
  return process_ < 0;
}

void QemuProcess::stop(bool at_once) {
  if (ended()) return;
  if (!at_once) {
    // A plug-in may write long tables.
    constexpr int kPatience = 60000;
    constexpr int kStep = 50;
    for (int waited = 0; waited < kPatience && !ended(); waited += kStep) poll(nullptr, 0, kStep);
    if (process_ >= 0) kill(process_, SIGTERM);
    for (int waited = 0; waited < kPatience / 6 && !ended(); waited += kStep)
      poll(nullptr, 0, kStep);
    if (process_ < 0) return;
  }
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  process_ = -1;
}

}  // namespace bosk::tools::lab
