// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lock word and the nestable lock.
#include "omp/locks.h"

#include <gtest/gtest.h>
#include <string.h>

#include <thread>
#include <vector>

#include "omp/critical.h"

namespace bosk::omp {
namespace {

template <typename Body>
void on_threads(int count, Body body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

TEST(Lock, ZeroBytesAreAFreeLock) {
  alignas(8) unsigned char bytes[8];
  memset(bytes, 0, sizeof bytes);
  memset(bytes + 4, 0x5a, 4);
  LockWord& word = named_critical(reinterpret_cast<void**>(bytes));
  EXPECT_TRUE(try_lock(word));
  EXPECT_FALSE(try_lock(word));
  unlock(word);
  EXPECT_TRUE(try_lock(word));
  unlock(word);
  for (int i = 4; i < 8; ++i) EXPECT_EQ(bytes[i], 0x5a) << "only 4 bytes are ours";
}

TEST(Lock, UncontendedNeverSaysContended) {
  LockWord word{kLockFree};
  lock(word);
  EXPECT_EQ(word.load(), uint32_t{kLockHeld});
  unlock(word);
  EXPECT_EQ(word.load(), uint32_t{kLockFree});
  unlock(word);  // the program's error; the lock stays usable
  EXPECT_TRUE(try_lock(word));
}

TEST(Lock, Excludes) {
  LockWord word{kLockFree};
  long count = 0;  // not atomic
  on_threads(6, [&](int) {
    for (int i = 0; i < 20000; ++i) {
      lock(word);
      ++count;
      unlock(word);
    }
  });
  EXPECT_EQ(count, 6 * 20000);
  EXPECT_EQ(word.load(), uint32_t{kLockFree});
}

TEST(Lock, ATestedLockExcludesToo) {
  LockWord word{kLockFree};
  long count = 0;
  long expected = 0;
  std::atomic<long> taken{0};
  on_threads(4, [&](int t) {
    for (int i = 0; i < 5000; ++i) {
      if (t % 2 == 0) {
        lock(word);
      } else if (!try_lock(word)) {
        continue;
      }
      ++count;
      taken.fetch_add(1);
      unlock(word);
    }
  });
  expected = taken.load();
  EXPECT_EQ(count, expected);
  EXPECT_GE(expected, 2 * 5000);
}

TEST(Lock, WaitersAreWokenOneAfterTheOther) {
  // All sleep before the first unlock, so every hand-over needs its wake-up.
  LockWord word{kLockFree};
  lock(word);
  std::atomic<int> through{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 5; ++t)
    threads.emplace_back([&] {
      lock(word);
      through.fetch_add(1);
      unlock(word);
    });
  while (word.load() != kLockContended) std::this_thread::yield();
  EXPECT_EQ(through.load(), 0);
  unlock(word);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(through.load(), 5);
}

TEST(NestLock, CountsForItsOwnerOnly) {
  NestLock nest;
  int me = 0;
  int other = 0;
  lock(nest, &me);
  EXPECT_EQ(try_lock(nest, &me), 2);
  EXPECT_EQ(try_lock(nest, &other), 0);
  lock(nest, &me);
  unlock(nest);
  unlock(nest);
  EXPECT_EQ(try_lock(nest, &other), 0);
  unlock(nest);
  EXPECT_EQ(try_lock(nest, &other), 1);
  unlock(nest);
  unlock(nest);  // nobody holds it
  EXPECT_EQ(try_lock(nest, &me), 1);
}

TEST(NestLock, Excludes) {
  NestLock nest;
  long count = 0;
  int owners[4];
  on_threads(4, [&](int t) {
    for (int i = 0; i < 5000; ++i) {
      lock(nest, &owners[t]);
      ++count;
      lock(nest, &owners[t]);
      ++count;
      unlock(nest);
      unlock(nest);
    }
  });
  EXPECT_EQ(count, 4 * 2 * 5000);
}

TEST(Critical, TheUnnamedAndTheAtomicLockAreTwo) {
  lock(unnamed_critical());
  EXPECT_TRUE(try_lock(wide_atomic()));
  unlock(wide_atomic());
  EXPECT_FALSE(try_lock(unnamed_critical()));
  unlock(unnamed_critical());
}

}  // namespace
}  // namespace bosk::omp
