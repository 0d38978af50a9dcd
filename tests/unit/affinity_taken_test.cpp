// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A userfaultfd taken from a process that runs: a child of ours, which notices nothing.
#include "affinity/observer/taken_userfaultfd.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "affinity/observer/process_memory.h"
#include "affinity/observer/write_protection.h"
#include "child_process.h"

namespace bosk::affinity {
namespace {

/// It does not always compute at the moment that one looks.
TakenUserfaultfd take_patiently(pid_t process) {
  TakenUserfaultfd taken;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    taken = take_userfaultfd(process);
  } while (taken.error == EAGAIN && std::chrono::steady_clock::now() < until);
  return taken;
}

[[noreturn]] void compute() {
  Child::say_ready();
  for (volatile double sum = 0;;) sum = sum + 1;
}

constexpr size_t kPage = 4096;

class TakenUserfaultfdTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!WriteProtection::is_there()) GTEST_SKIP() << "no asynchronous write-protection here";
  }
};

TEST_F(TakenUserfaultfdTest, IsOfTheProcessMemoryAndNotOpenThere) {
  void* at = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Child child([at] {
    // Memory there, and not here.
    mmap(at, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    compute();
  });
  munmap(at, kPage);
  const TakenUserfaultfd taken = take_patiently(child.number());
  if (taken.error == EPERM) GTEST_SKIP() << "processes may not be stopped here";
  ASSERT_EQ(taken.error, 0) << std::strerror(taken.error);
  EXPECT_FALSE(has_userfaultfd(child.number()));
  uffdio_register area = {};
  area.range = {reinterpret_cast<uint64_t>(at), kPage};
  area.mode = UFFDIO_REGISTER_MODE_WP;
  EXPECT_EQ(ioctl(taken.descriptor.number(), UFFDIO_REGISTER, &area), 0) << std::strerror(errno);
}

/// What it computes with, and its signals, are as they were, however often it is done.
TEST_F(TakenUserfaultfdTest, ItGoesOnAsItWas) {
  constexpr int kTimes = 200;
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  // Of both processes; handlers see it by a static.
  static std::atomic<int>* signals = nullptr;
  void* const shared =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  signals = new (shared) std::atomic<int>(0);
  Child child([&] {
    signal(SIGUSR1, [](int) { signals->fetch_add(1); });
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGHUP);
    sigprocmask(SIG_BLOCK, &blocked, nullptr);
    Child::say_ready();
    long rounds = 0;
    double first = 0;
    pollfd wanted = {pipes[0], POLLIN, 0};
    while (poll(&wanted, 1, 0) <= 0) {  // EINTR, too
      double sum = 0;
      for (int i = 0; i < 20000; ++i) sum += std::sqrt(i + .5) * 1.25;
      if (rounds++ == 0) first = sum;
      if (sum != first) _exit(1);
    }
    sigset_t now;
    sigprocmask(SIG_BLOCK, nullptr, &now);
    for (int each = 1; each < SIGRTMAX; ++each)
      if (sigismember(&now, each) != (each == SIGHUP ? 1 : 0) && each != 32 && each != 33) _exit(2);
    _exit(0);
  });
  int taken = 0;
  for (int i = 0; i < kTimes; ++i) {
    const TakenUserfaultfd each = take_patiently(child.number());
    if (each.error == EPERM) GTEST_SKIP() << "processes may not be stopped here";
    EXPECT_EQ(each.error, 0) << std::strerror(each.error);
    taken += each.error == 0;
    kill(child.number(), SIGUSR1);
    // Until its handler has had that one: two that wait are one. A child that has ended has none more.
    while (signals->load() <= i && kill(child.number(), 0) == 0 &&
           !status_line("/proc/" + std::to_string(child.number()), "State").starts_with('Z'))
      std::this_thread::yield();
  }
  EXPECT_EQ(signals->load(), kTimes);
  EXPECT_EQ(taken, kTimes);
  ASSERT_EQ(write(pipes[1], "", 1), 1);
  const int status = child.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  munmap(shared, kPage);
  close(pipes[0]);
  close(pipes[1]);
}

TEST_F(TakenUserfaultfdTest, WhoSleepsIsLeftToSleep) {
  Child child([] {
    Child::say_ready();
    pause();
  });
  for (int i = 0; i < 20; ++i) {
    const TakenUserfaultfd taken = take_userfaultfd(child.number());
    if (taken.error == 0) continue;  // it was on its way
    EXPECT_EQ(taken.error, EAGAIN) << std::strerror(taken.error);
  }
}

TEST_F(TakenUserfaultfdTest, WhoIsStoppedStaysSo) {
  Child child(compute);
  kill(child.number(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child.number(), &status, WUNTRACED), child.number());
  EXPECT_EQ(take_userfaultfd(child.number()).error, EAGAIN);
  kill(child.number(), SIGCONT);
  const TakenUserfaultfd taken = take_patiently(child.number());
  EXPECT_TRUE(taken.error == 0 || taken.error == EPERM) << std::strerror(taken.error);
}

TEST_F(TakenUserfaultfdTest, WhoFiltersItsSystemCallsIsNotMadeToMakeOne) {
  Child child([] {
    sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    const sock_fprog program = {1, &allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(1);
    compute();
  });
  EXPECT_EQ(take_userfaultfd(child.number()).error, EACCES);
}

TEST_F(TakenUserfaultfdTest, WhoIsDebuggedIsLeftAlone) {
  Child child([] {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    compute();
  });
  EXPECT_EQ(take_userfaultfd(child.number()).error, EBUSY);
}

TEST_F(TakenUserfaultfdTest, WhoHasEnded) {
  Child child([] { Child::say_ready(); });
  const pid_t number = child.number();
  child.end();
  EXPECT_NE(take_userfaultfd(number).error, 0);
}

}  // namespace
}  // namespace bosk::affinity
