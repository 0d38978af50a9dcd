// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/beside.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bosk/run_environment.h"
#include "bosk/run_program.h"

namespace bosk::tools {
namespace {

constexpr int kFailure = 125;
constexpr int kForwarded[] = {SIGTERM,   SIGHUP,  SIGUSR1,  SIGUSR2, SIGALRM,
                              SIGVTALRM, SIGPROF, SIGWINCH, SIGCONT};

volatile pid_t running = 0;

void forward(int signal, siginfo_t* info, void*) {
  // A terminal's signals went to the program as well.
  if (info->si_code != SI_KERNEL && running > 0) kill(running, signal);
}

/// While the program runs. Signals that come before it is there wait.
class Bystander {
 public:
  Bystander() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask_);
  }
  void restore_in_child() const { sigprocmask(SIG_SETMASK, &mask_, nullptr); }
  void begin(pid_t child) {
    running = child;
    // ^C and ^\ are the program's to answer: it has them from the terminal.
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    struct sigaction action = {};
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (const int each : kForwarded) {
      struct sigaction before;
      // Who started us has them ignored (nohup), and so has the program.
      if (sigaction(each, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(each, &action, nullptr);
    }
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t mask_;
};

}  // namespace

void end_by(int number) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);
  signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  _exit(128 + number);
}

int run_beside(const std::string& program, const std::vector<std::string>& command,
               const Companion& companion) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int failure[2];
  int start[2];
  if (pipe2(failure, O_CLOEXEC) != 0 || pipe2(start, O_CLOEXEC) != 0)
    throw OptionError(kFailure, std::strerror(errno));
  Bystander bystander;
  const pid_t child = fork();
  if (child == 0) {
    bystander.restore_in_child();
    // Until whoever looks at us is ready; or is gone, and we with it.
    close(start[1]);
    char go;
    if (read(start[0], &go, 1) != 1) _exit(kFailure);
    execv(program.c_str(), arguments.data());
    const int error = errno;
    if (write(failure[1], &error, sizeof error) < 0) _exit(kCannotRun);
    _exit(kCannotRun);
  }
  if (child < 0) throw OptionError(kFailure, std::strerror(errno));
  if (companion.before) companion.before(child);
  bystander.begin(child);
  close(failure[1]);
  close(start[0]);
  if (write(start[1], "", 1) < 0) throw OptionError(kFailure, std::strerror(errno));
  close(start[1]);
  int error = 0;
  const bool executed = read(failure[0], &error, sizeof error) <= 0;
  close(failure[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  running = 0;
  if (companion.after) companion.after();
  if (!executed)
    throw ProgramError(error == ENOENT ? kNotFound : kCannotRun,
                       fmt::format("{}: {}", program, std::strerror(error)));
  return status;
}

}  // namespace bosk::tools
