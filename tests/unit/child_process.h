// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A child that a test looks at from outside.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

namespace bosk::affinity {

/// Ends with the test, at the latest.
class Child {
 public:
  explicit Child(const std::function<void()>& life) {
    int ready[2];
    if (pipe(ready) != 0) std::abort();
    number_ = fork();
    if (number_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ready[0]);
      life_ready_ = ready[1];
      life();
      _exit(0);
    }
    close(ready[1]);
    char byte;
    // Until it says that it is ready, or closes this by its end.
    if (read(ready[0], &byte, 1) < 0) std::abort();
    close(ready[0]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  static void say_ready() { close(life_ready_); }
  pid_t number() const { return number_; }
  int wait() {
    int status = -1;
    waitpid(number_, &status, 0);
    number_ = -1;
    return status;
  }
  void end() {
    if (number_ <= 0) return;
    kill(number_, SIGKILL);
    wait();
  }

 private:
  static inline int life_ready_ = -1;
  pid_t number_;
};

}  // namespace bosk::affinity
