// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program's own handlers of SIGSEGV and SIGBUS beside ours, whichever was installed first.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include "base/sanitizers.h"
#include "next_touch_support.h"

namespace bosk::memory {
namespace {

using testing::Area;
using testing::kPage;
class Handlers : public testing::NextTouch {};

sigjmp_buf back;
volatile int handled = 0;
const Area* touched_by_handler = nullptr;

void jump_back(int) {
  handled = handled + 1;
  siglongjmp(back, 1);
}
void touch_in_handler(int) { handled = touched_by_handler->wrong(1) == 0 ? 1 : 2; }
/// Read at run time: of a null that it sees the compiler makes what it likes.
int* volatile nowhere = nullptr;
/// On purpose, whatever UndefinedBehaviorSanitizer says; inlined it would be watched.
__attribute__((noinline, no_sanitize("null"))) void read_null() { *nowhere = 1; }

/// `closed` is read-only; SIGSEGV and SIGBUS go to jump_back.
void expect_handlers_work(const Area& area, const Area& closed) {
  handled = 0;
  if (sigsetjmp(back, 1) == 0) {
    read_null();
    ADD_FAILURE() << "went on";
  }
  if (sigsetjmp(back, 1) == 0) {
    *static_cast<volatile char*>(closed.at(0)) = 1;
    ADD_FAILURE() << "went on";
  }
  EXPECT_EQ(handled, 2);
  if (sigsetjmp(back, 1) == 0) raise(SIGBUS);
  EXPECT_EQ(handled, 3);
  EXPECT_EQ(area.wrong(1), 0u);
  EXPECT_EQ(handled, 3);
}

TEST_P(Handlers, TheProgramsHandlersStay) {
  const Area area(16);
  const Area closed(1);
  ASSERT_EQ(mprotect(closed.at(0), kPage, PROT_READ), 0);
  area.fill(1);
  struct sigaction mine = {}, before[2];
  mine.sa_handler = jump_back;
  ASSERT_EQ(sigaction(SIGSEGV, &mine, &before[0]), 0);
  ASSERT_EQ(sigaction(SIGBUS, &mine, &before[1]), 0);
  expect_mark(area);
  expect_handlers_work(area, closed);
  // Installed over ours: the next mark puts ours in front again.
  sigaction(SIGSEGV, &mine, nullptr);
  sigaction(SIGBUS, &mine, nullptr);
  expect_mark(area);
  expect_handlers_work(area, closed);
  sigaction(SIGSEGV, &before[0], nullptr);
  sigaction(SIGBUS, &before[1], nullptr);
}

struct sigaction found_before[64];  // by signal

/// Calls what was there before it, as crash reporters do.
void chain(int number, siginfo_t* info, void* context) {
  handled = handled + 1;
  const struct sigaction& before = found_before[number];
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(number, info, context);
  else
    before.sa_handler(number);
}

class OverOurs : public testing::NextTouch {
 protected:
  OverOurs() { needs_one_ = GetParam() != NextTouchBackend::kUffdThread; }
  ~OverOurs() override { sigaction(number_, &first_, nullptr); }

  void install(void (*handler)(int, siginfo_t*, void*), int flags) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    ASSERT_EQ(sigaction(number_, &action, &found_before[number_]), 0);
  }
  void install_jump() {
    struct sigaction action = {};
    action.sa_handler = jump_back;
    ASSERT_EQ(sigaction(number_, &action, &first_), 0);
  }

  bool needs_one_;
  const int number_ = GetParam() == NextTouchBackend::kSigsegv ? SIGSEGV : SIGBUS;
  struct sigaction first_ = {};
};

TEST_P(OverOurs, AHandlerThatCallsOursBringsPages) {
  install_jump();
  const Area area(16);
  area.fill(1);
  expect_mark(area);
  handled = 0;
  install(chain, SA_SIGINFO);
  EXPECT_EQ(area.wrong(1), 0u);
  EXPECT_EQ(handled > 0, needs_one_);
  EXPECT_EQ(testing::marked_in(area), 0u);
}

TEST_P(OverOurs, KeptBehindOurs) {
  install_jump();
  const Area area(16);
  area.fill(1);
  expect_mark(area);
  install(chain, SA_SIGINFO | SA_NODEFER);
  next_touch_keep_handlers();
  handled = 0;
  EXPECT_EQ(area.wrong(1), 0u);
  EXPECT_EQ(handled, 0);
  // What is not ours goes down the chain: ours, theirs, which calls ours from before, the first one. And ends.
  if (!needs_one_) return;
  if (sigsetjmp(back, 1) == 0) {
    raise(number_);
    ADD_FAILURE() << "went on";
  }
  EXPECT_EQ(handled, 2);
}

TEST_P(OverOurs, TheSameOneManyTimes) {
  install_jump();
  const Area area(16);
  area.fill(1);
  for (int i = 0; i < 50; ++i) {
    expect_mark(area);
    install(chain, SA_SIGINFO | SA_RESTART);
    next_touch_keep_handlers();
    EXPECT_EQ(testing::marked_in(area), 16u);
    handled = 0;
    EXPECT_EQ(area.wrong(1), 0u);
    EXPECT_EQ(handled, 0);
  }
}

TEST_P(OverOurs, TooManyEndTheMarks) {
  const Area area(16);
  area.fill(1);
  // Here ours would stay behind them all.
  const pid_t child = fork();
  if (child == 0) {
    if (mark(area) != kNextTouchOk) _exit(1);
    struct sigaction action = {};
    action.sa_handler = [](int) { _exit(2); };
    for (int i = 0; i < 12; ++i) {
      sigaddset(&action.sa_mask, SIGRTMIN + i);
      sigaction(number_, &action, nullptr);
      next_touch_keep_handlers();
    }
    if (needs_one_ != (testing::marked_in(area) == 0)) _exit(3);
    if (needs_one_ && mark(area) != kNextTouchNoBackend) _exit(4);
    _exit(area.wrong(1) == 0 ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_P(Handlers, AHandlerMayTouch) {
#ifdef BOSK_TSAN
  GTEST_SKIP() << "ThreadSanitizer runs handlers with all signals blocked, also those of faults";
#endif
  const Area area(64);
  area.fill(1);
  expect_mark(area);
  touched_by_handler = &area;
  struct sigaction mine = {}, before;
  mine.sa_handler = touch_in_handler;
  ASSERT_EQ(sigaction(SIGUSR1, &mine, &before), 0);
  handled = 0;
  raise(SIGUSR1);
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(testing::marked_in(area), 0u);
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(Handlers, WhatIsNotOursStillKills) {
  const Area area(4);
  area.fill(1);
  const pid_t child = fork();
  if (child == 0) {
    if (mark(area) != kNextTouchOk) _exit(1);
    signal(SIGSEGV, SIG_DFL);
    if (mark(area) != kNextTouchOk || area.wrong(1) != 0 || mark(area) != kNextTouchOk) _exit(2);
    read_null();
    _exit(3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
}

INSTANTIATE_TEST_SUITE_P(Backends, Handlers, testing::kBackends, testing::name_of_backend);
INSTANTIATE_TEST_SUITE_P(Backends, OverOurs, testing::kBackends, testing::name_of_backend);

}  // namespace
}  // namespace bosk::memory
