// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Synchronisation objects under load, by members of nested teams, threads of bosk and pthreads at once. What each guards is not
// atomic: ThreadSanitizer sees it if one lets two in, or hands on too early.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <bosk/error.h>
#include "omp/routines.h"
#include "omp/team.h"
#include "sched/fd_wait.h"
#include "threads/operations.h"
#include "threads/sync/counters.h"
#include "threads/sync/io.h"
#include "threads/sync/keys.h"
#include "threads/sync/mutex.h"

namespace bosk::threads {
namespace {

constexpr int kOuter = 3;
constexpr int kInner = 4;
constexpr int kPthreads = 2;
constexpr int kExplicit = 4;  // half of them light
constexpr int kThreads = kOuter * kInner + kPthreads + kExplicit;

template <typename Body>
void region(uint32_t size, Body body) {
  omp::parallel([](void* data) { (*static_cast<Body*>(data))(); }, &body, size, 0);
}

/// body() by kThreads threads of all kinds, which begin together.
template <typename Body>
void by_all(Body body) {
  Barrier start;
  start.init(kThreads);
  const auto together = [&] {
    start.wait();
    body();
  };
  std::vector<std::thread> pthreads;
  for (int i = 0; i < kPthreads; ++i) pthreads.emplace_back(together);
  bosk_thread_t threads[kExplicit];
  for (int i = 0; i < kExplicit; ++i) {
    bosk_thread_attr_t how;
    init_attributes(&how);
    how.light = i % 2;
    using Together = decltype(together);
    ASSERT_EQ(create_thread(
                  &threads[i], &how,
                  [](void* data) -> void* {
                    (*static_cast<const Together*>(data))();
                    return nullptr;
                  },
                  const_cast<void*>(static_cast<const void*>(&together))),
              0);
  }
  omp::changeable_icvs()->max_active_levels = 2;
  region(kOuter, [&] { region(kInner, together); });
  for (bosk_thread_t thread : threads) EXPECT_EQ(join_thread(thread, nullptr), 0);
  for (std::thread& thread : pthreads) thread.join();
}

uint64_t soon(uint64_t us) { return sched::clock_now() + us * 1000; }

/// 0 in the end, however often the deadline passes before.
template <typename Attempt>
void insist(Attempt attempt) {
  for (uint64_t us = 0;; us = us * 2 + 1) {
    const int result = attempt(soon(us));
    if (result == 0) return;
    ASSERT_EQ(result, BOSK_ETIMEDOUT);
  }
}

TEST(Sync, MutexesExcludeWhoeverGivesUpWaiting) {
  Mutex plain;
  Mutex recursive;
  recursive.init(1);
  long count = 0;
  long deep = 0;
  by_all([&] {
    for (int i = 0; i < 300; ++i) {
      if (i % 3 == 0) {
        insist([&](uint64_t deadline) { return plain.lock(deadline); });
      } else if (i % 3 == 1 || plain.try_lock() != 0) {
        ASSERT_EQ(plain.lock(kForever), 0);
      }
      ++count;
      ASSERT_EQ(plain.unlock(), 0);
      ASSERT_EQ(recursive.lock(kForever), 0);
      ASSERT_EQ(recursive.lock(kForever), 0);
      ++deep;
      ASSERT_EQ(recursive.unlock(), 0);
      ASSERT_EQ(recursive.unlock(), 0);
      ASSERT_EQ(recursive.unlock(), BOSK_EPERM);
    }
  });
  EXPECT_EQ(count, 300 * kThreads);
  EXPECT_EQ(deep, 300 * kThreads);
  EXPECT_EQ(plain.destroy(), 0);
}

TEST(Sync, EverySignalWakesSomebody) {
  // A token for each signal: were one lost, or spent on a wait that timed out, somebody would wait for ever.
  Mutex mutex;
  Condition condition;
  int tokens = 0;
  long taken = 0;
  std::atomic<int> number{0};
  by_all([&] {
    const bool gives = number.fetch_add(1) % 2 == 0;
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(mutex.lock(kForever), 0);
      if (gives) {
        ++tokens;
        if (i % 2 == 0) {
          ASSERT_EQ(condition.signal(), 0);
        }
        ASSERT_EQ(mutex.unlock(), 0);
        if (i % 2 != 0) {
          ASSERT_EQ(condition.signal(), 0);
        }
      } else {
        while (tokens == 0) {
          const int result = condition.wait(mutex, i % 3 == 0 ? soon(i % 50) : kForever);
          ASSERT_TRUE(result == 0 || result == BOSK_ETIMEDOUT) << result;
        }
        --tokens;
        ++taken;
        ASSERT_EQ(mutex.unlock(), 0);
      }
    }
  });
  static_assert(kThreads % 2 == 0);
  EXPECT_EQ(tokens, 0);
  EXPECT_EQ(taken, 200 * kThreads / 2);
  EXPECT_EQ(condition.destroy(), 0);
}

TEST(Sync, BarriersCanBeFreedByTheLastOneOut) {
  // Each round has a barrier of its own, which its serial thread frees while the others may not yet be back.
  constexpr int kRounds = 200;
  struct Round {
    Barrier barrier;
    int written[kThreads] = {};
  };
  std::vector<std::unique_ptr<Round>> rounds(kRounds);
  for (auto& round : rounds) {
    round = std::make_unique<Round>();
    round->barrier.init(kThreads);
  }
  std::atomic<int> number{0};
  std::atomic<int> serials{0};
  Barrier both;
  both.init(kThreads);
  by_all([&] {
    const int me = number.fetch_add(1);
    for (int i = 0; i < kRounds; ++i) {
      rounds[static_cast<size_t>(i)]->written[me] = i;
      const int result = rounds[static_cast<size_t>(i)]->barrier.wait();
      ASSERT_TRUE(result == 0 || result == 1) << result;
      if (result == 1) {
        // Nothing of it is used any more by those that it let go.
        for (int value : rounds[static_cast<size_t>(i)]->written) ASSERT_EQ(value, i);
        ASSERT_EQ(rounds[static_cast<size_t>(i)]->barrier.destroy(), 0);
        rounds[static_cast<size_t>(i)].reset();
        serials.fetch_add(1);
      }
      if (i % 10 == 0) both.wait();
    }
  });
  EXPECT_EQ(serials.load(), kRounds);
}

TEST(Sync, UnitsAreNeitherLostNorMade) {
  Semaphore items;
  Semaphore room;
  items.init(0);
  room.init(3);
  Mutex mutex;
  long sum = 0;
  std::atomic<int> number{0};
  by_all([&] {
    const bool gives = number.fetch_add(1) % 2 == 0;
    for (int i = 0; i < 300; ++i) {
      Semaphore& takes = gives ? room : items;
      if (i % 2 == 0) {
        insist([&](uint64_t deadline) { return takes.wait(deadline); });
      } else if (takes.try_wait() != 0) {
        ASSERT_EQ(takes.wait(kForever), 0);
      }
      ASSERT_EQ(mutex.lock(kForever), 0);
      sum += gives ? 1 : -1;
      ASSERT_GE(sum, -kThreads);
      ASSERT_EQ(mutex.unlock(), 0);
      ASSERT_EQ((gives ? items : room).post(), 0);
    }
  });
  EXPECT_EQ(sum, 0);
  uint32_t left = 0;
  EXPECT_EQ(room.value(&left), 0);
  EXPECT_EQ(left, 3u);
  EXPECT_EQ(items.value(&left), 0);
  EXPECT_EQ(left, 0u);
}

TEST(Sync, WritersAreAlone) {
  ReadWriteLock lock;
  long values[2] = {0, 0};
  std::atomic<int> number{0};
  by_all([&] {
    const int me = number.fetch_add(1);
    for (int i = 0; i < 300; ++i) {
      if ((me + i) % 4 == 0) {
        if (i % 2 == 0) {
          insist([&](uint64_t deadline) { return lock.write(deadline); });
        } else if (lock.try_write() != 0) {
          ASSERT_EQ(lock.write(kForever), 0);
        }
        ++values[0];
        ++values[1];
      } else {
        if (i % 2 == 0) {
          insist([&](uint64_t deadline) { return lock.read(deadline); });
        } else if (lock.try_read() != 0) {
          ASSERT_EQ(lock.read(kForever), 0);
        }
        ASSERT_EQ(values[0], values[1]);
      }
      ASSERT_EQ(lock.unlock(), 0);
    }
  });
  EXPECT_EQ(lock.destroy(), 0);
  long written = 0;
  for (int me = 0; me < kThreads; ++me)
    for (int i = 0; i < 300; ++i) written += (me + i) % 4 == 0;
  EXPECT_EQ(values[0], written);
}

TEST(Sync, OnceIsOnceAndSeenByAll) {
  static int value;
  static Once* once;
  for (int round = 0; round < 20; ++round) {
    Once fresh;
    once = &fresh;
    value = 0;
    by_all([] {
      ASSERT_EQ(once->call([] { value += 7; }), 0);
      ASSERT_EQ(value, 7);
    });
  }
}

TEST(Sync, KeysBelongToTheirThreads) {
  uint64_t shared_key = 0;
  static std::atomic<int> destroyed;
  destroyed = 0;
  ASSERT_EQ(create_key(&shared_key, [](void*) { ++destroyed; }), 0);
  Barrier all;
  all.init(kThreads);
  by_all([&] {
    int mine = 0;
    ASSERT_EQ(set_value_of_key(shared_key, &mine), 0);
    all.wait();
    for (int i = 0; i < 50; ++i) {
      uint64_t key = 0;
      ASSERT_EQ(create_key(&key, nullptr), 0);
      ASSERT_EQ(value_of_key(key), nullptr);
      ASSERT_EQ(set_value_of_key(key, &key), 0);
      sleep_until(soon(i));
      ASSERT_EQ(value_of_key(key), &key);
      ASSERT_EQ(delete_key(key), 0);
      ASSERT_EQ(value_of_key(key), nullptr);
      ASSERT_EQ(value_of_key(shared_key), &mine);
    }
    all.wait();
    ASSERT_EQ(set_value_of_key(shared_key, nullptr), 0);
  });
  EXPECT_EQ(destroyed.load(), 0);
  EXPECT_EQ(delete_key(shared_key), 0);
}

TEST(Sync, BytesThroughPipesAreNeitherLostNorSeenTwice) {
  constexpr int kPipes = 3;
  int pipes[kPipes][2];
  for (auto& ends : pipes) ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  std::atomic<int> number{0};
  std::atomic<long> written{0};
  std::atomic<long> read_back{0};
  by_all([&] {
    const int me = number.fetch_add(1);
    const auto& ends = pipes[me / 2 % kPipes];
    for (int i = 0; i < 200; ++i) {
      auto byte = static_cast<unsigned char>(1 + i % 100);
      if (me % 2 == 0) {
        ASSERT_EQ(write_fd(ends[1], &byte, 1), 1);
        written.fetch_add(byte);
        if (i % 16 == 0) sleep_until(soon(30));
        continue;
      }
      // Several wait for the same pipe; some with deadlines, some for all pipes.
      if (i % 3 == 0) {
        while (wait_fd(ends[0], POLLIN, soon(20)) == BOSK_ETIMEDOUT) {
        }
      } else if (i % 3 == 1) {
        pollfd all[kPipes];
        for (int p = 0; p < kPipes; ++p) all[p] = {pipes[p][0], POLLIN, 0};
        ASSERT_GT(poll_fds(all, kPipes, kForever), 0);
      }
      ASSERT_EQ(read_fd(ends[0], &byte, 1), 1);
      read_back.fetch_add(byte);
    }
  });
  EXPECT_EQ(written.load(), read_back.load());
  EXPECT_FALSE(sched::poller_is_needed());
  for (auto& ends : pipes) close(ends[0]), close(ends[1]);
}

TEST(Sync, ServicesEndWithAPauseAndComeBack) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(wait_fd(ends[0], POLLIN, soon(100)), BOSK_ETIMEDOUT);
    EXPECT_EQ(sleep_until(soon(100)), 0);
    if (round % 2 == 0) {
      EXPECT_EQ(omp::pause_host(2), 0);
    }
  }
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace bosk::threads
