// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lock between marking and resolving: readers never see half of what a writer does, writers exclude each other, and
// nobody sleeps for ever (the time limit of the test).
#include "memory/next_touch/gate.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

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
  std::atomic<uint64_t> together{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kReaders; ++i)
    threads.emplace_back([&] {
      uint64_t last = 0;
      for (uint64_t turn = 0; turn < kTurns; ++turn) {
        gate.lock_shared();
        if (inside.fetch_add(1) != 0) together.fetch_add(1);
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
  EXPECT_GT(together.load(), 0u) << "no two readers were in at the same time";
}

}  // namespace
}  // namespace bosk::memory
