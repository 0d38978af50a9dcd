// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lock between marking and resolving: readers never see half of what a writer does, writers exclude each other, nobody
// is kept out by others who come again and again, and nobody sleeps for ever (the time limit of the test).
#include "memory/next_touch/gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/cpu.h"

namespace bosk::memory {
namespace {

constinit SharedLock gate;

TEST(NextTouchGate, ReadersAndWriters) {
  constexpr int kReaders = 6;
  constexpr int kWriters = 3;
  constexpr uint64_t kTurns = 2000;
  struct {
    uint64_t a = 0;
    char apart[256];
    uint64_t b = 0;
  } data;  // plain: ThreadSanitizer sees what the lock leaves open
  std::atomic<uint64_t> torn{0};
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kReaders; ++i)
    threads.emplace_back([&] {
      uint64_t last = 0;
      for (uint64_t turn = 0; turn < kTurns; ++turn) {
        gate.lock_shared();
        inside.fetch_add(1);
        const uint64_t a = data.a;
        if (turn % 64 == 0) std::this_thread::yield();  // so that others meet it
        if (a != data.b || a < last) torn.fetch_add(1);
        last = a;
        inside.fetch_sub(1);
        gate.unlock_shared();
      }
    });
  for (int i = 0; i < kWriters; ++i)
    threads.emplace_back([&] {
      for (uint64_t turn = 0; turn < kTurns; ++turn) {
        gate.lock();
        if (inside.load() != 0) torn.fetch_add(1);
        ++data.a;
        if (turn % 64 == 0) std::this_thread::yield();
        ++data.b;
        gate.unlock();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_EQ(data.a, kWriters * kTurns);
  EXPECT_EQ(data.b, kWriters * kTurns);
}

TEST(NextTouchGate, ReadersAreInTogether) {
  std::atomic<bool> both{false};
  gate.lock_shared();
  std::thread other([&] {
    gate.lock_shared();
    both.store(true);
    gate.unlock_shared();
  });
  while (!both.load()) std::this_thread::yield();  // or until the test's time limit
  gate.unlock_shared();
  other.join();
}

// Who marks one area after the other leaves the lock for a moment only: those who touch get in all the same.
TEST(NextTouchGate, ReadersGetInBetweenTheTurnsOfOneWriter) {
  constexpr size_t kTurns = 500;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> writes{0};
  std::thread writer([&] {
    while (!done.load(std::memory_order_relaxed)) {
      gate.lock();
      writes.fetch_add(1, std::memory_order_relaxed);
      // As long as a mark: he who waits goes to sleep.
      for (int i = 0; i < 500; ++i) base::cpu_pause();
      gate.unlock();
    }
  });
  while (writes.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
  std::vector<uint64_t> waited;
  for (size_t turn = 0; turn < kTurns; ++turn) {
    for (int i = 0; i < 2000; ++i) base::cpu_pause();  // so that the writer has it
    const uint64_t before = writes.load(std::memory_order_relaxed);
    gate.lock_shared();
    waited.push_back(writes.load(std::memory_order_relaxed) - before);
    gate.unlock_shared();
  }
  done.store(true, std::memory_order_relaxed);
  writer.join();
  std::sort(waited.begin(), waited.end());
  // One, and those that come while a reader is not on a CPU, between looking and asking. A lock that goes to writers first has some
  // 200 here.
  EXPECT_LE(waited[kTurns * 9 / 10], 4u);
}

}  // namespace
}  // namespace bosk::memory
