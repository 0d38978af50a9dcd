// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks signals and takes them by sigtimedwait(2): no handler, so nothing that could interrupt.
#include "bosk/compare/signals.h"

#include <cmath>
#include <ctime>
#include <initializer_list>

namespace bosk::tools {
namespace {

bool is_ignored(int signal) {
  struct sigaction action;
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

EndingSignals::EndingSignals() {
  sigemptyset(&awaited_);
  // Who ignores them (nohup, a shell's &) wants that to stay so.
  for (const int signal : {SIGINT, SIGTERM}) {
    if (!is_ignored(signal)) sigaddset(&awaited_, signal);
  }
  sigaddset(&awaited_, SIGCHLD);
  // Where it is ignored nobody learns how a child ended.
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &child_before_);
  sigprocmask(SIG_BLOCK, &awaited_, &mask_before_);
}

EndingSignals::~EndingSignals() { restore(); }

void EndingSignals::restore() const {
  sigaction(SIGCHLD, &child_before_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void EndingSignals::wait(double seconds, pid_t child) {
  timespec time = {};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
  siginfo_t info;
  const int signal = sigtimedwait(&awaited_, &info, &time);
  if (signal <= 0 || signal == SIGCHLD) return;
  if (received_ == 0) received_ = signal;
  // A terminal's ^C goes to the whole group: the child has it. What a process sent came to us alone.
  if (child > 0 && info.si_code != SI_KERNEL) kill(child, signal);
}

int EndingSignals::received() {
  if (received_ == 0) wait(0, 0);
  return received_;
}

}  // namespace bosk::tools
