// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Explicit tasks in real regions: who waits for whom, data, nesting, groups, events, bounds.
#include <gtest/gtest.h>

#include <pthread.h>
#include <string.h>

#include <exception>
#include <thread>
#include <vector>

#include "omp_task_support.h"

namespace bosk::omp {
namespace {

class TaskRun : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, TaskRun, testing::Values(1, 2, 3, 8));

int fib(int n) {
  if (n < 2) return n;
  int a = 0;
  int b = 0;
  plain_task([&a, n] { a = fib(n - 1); });
  task([&b, n] { b = fib(n - 2); });
  wait_for_children();
  return a + b;
}

TEST_P(TaskRun, RecursiveTasksGiveTheSequentialResult) {
  int result = 0;
  for (int round = 0; round < 3; ++round) {
    single_region(GetParam(), [&] { result = fib(17); });
    EXPECT_EQ(result, 1597);
  }
}

TEST_P(TaskRun, EveryMemberCreatesAndWaits) {
  std::vector<int> results(GetParam(), 0);
  region(GetParam(), [&](uint32_t index) { results[index] = fib(12 + index % 3); });
  for (uint32_t i = 0; i < GetParam(); ++i)
    EXPECT_EQ(results[i], std::vector<int>({144, 233, 377})[i % 3]);
}

TEST_P(TaskRun, ABarrierCompletesAllTasksAndTheirDescendants) {
  std::atomic<int> done{0};
  std::atomic<int> early{0};
  region(GetParam(), [&](uint32_t) {
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 10; ++i)
        plain_task([&] {
          // Orphans: their creator ends before they do.
          for (int k = 0; k < 4; ++k)
            plain_task([&] {
              plain_task([&] { done.fetch_add(1); });
              done.fetch_add(1);
            });
          done.fetch_add(1);
        });
      barrier();
      const int expected = static_cast<int>(GetParam()) * 10 * 9 * (round + 1);
      if (done.load() != expected) early.fetch_add(1);
      barrier();
    }
  });
  EXPECT_EQ(early.load(), 0);
  EXPECT_EQ(done.load(), static_cast<int>(GetParam()) * 450);
}

TEST_P(TaskRun, TheRegionsEndCompletesAllTasks) {
  std::atomic<int> done{0};
  region(GetParam(), [&](uint32_t) {
    for (int i = 0; i < 100; ++i) plain_task([&] { plain_task([&] { done.fetch_add(1); }); });
  });
  EXPECT_EQ(done.load(), static_cast<int>(GetParam()) * 100);
}

TEST_P(TaskRun, TaskwaitWaitsForChildrenAndSeesWhatTheyWrote) {
  constexpr int kChildren = 50;
  std::atomic<int> wrong{0};
  region(GetParam(), [&](uint32_t) {
    int results[kChildren] = {};
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < kChildren; ++i)
        plain_task([&results, i, round] { results[i] = i + round; });
      wait_for_children();
      for (int i = 0; i < kChildren; ++i)
        if (results[i] != i + round) wrong.fetch_add(1);
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(TaskRun, ATaskRunsAsAMemberOfItsTeamAndKeepsItsNumber) {
  std::atomic<int> wrong{0};
  region(GetParam(), [&](uint32_t) {
    const Team* team = current_task()->team;
    for (int i = 0; i < 20; ++i)
      plain_task([&, team] {
        const uint32_t number = current_member()->index;
        if (current_task()->team != team || number >= GetParam()) wrong.fetch_add(1);
        plain_task([] {});
        wait_for_children();
        if (current_member()->index != number) wrong.fetch_add(1);
      });
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(TaskRun, WhatATaskwaitStartsAreDescendantsOfTheWaitingTask) {
  // Another tied task on top of a waiting one could take a lock that the waiting one holds.
  struct Frame {
    const Task* task;
    Frame* outer;
  };
  static thread_local Frame* top;
  std::atomic<int> wrong{0};
  struct Body {
    std::atomic<int>* wrong;
    int depth;
    void operator()() const {
      for (Frame* frame = top; frame != nullptr; frame = frame->outer)
        if (!is_descendant(static_cast<ExplicitTask*>(current_task()), frame->task,
                           depth_of(frame->task)))
          wrong->fetch_add(1);
      Frame mine{current_task(), top};
      top = &mine;
      for (int i = 0; i < 3 && depth > 0; ++i) plain_task(Body{wrong, depth - 1});
      wait_for_children();
      top = mine.outer;
    }
  };
  // Kernel thread = member only if members do not share kernel threads.
  if (GetParam() > 2) return;
  region(GetParam(), [&](uint32_t) {
    for (int i = 0; i < 8; ++i) plain_task(Body{&wrong, 4});
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(TaskRun, UndeferredTasksRunAtOnceInPlace) {
  region(GetParam(), [&](uint32_t) {
    int value = 1;
    const Task* creator = current_task();
    task(
        [&value, creator] {
          EXPECT_EQ(current_task()->parent, creator);
          value = 2;
        },
        {.deferrable = false});
    EXPECT_EQ(value, 2);
  });
}

TEST_P(TaskRun, DescendantsOfAFinalTaskAreIncluded) {
  region(GetParam(), [&](uint32_t) {
    EXPECT_FALSE(current_task()->final_task);
    task(
        [] {
          EXPECT_TRUE(current_task()->final_task);
          const auto self = pthread_self();
          int order = 0;
          task([&order, self] {
            EXPECT_TRUE(current_task()->final_task);
            EXPECT_TRUE(pthread_equal(self, pthread_self()));
            task([&order] { order = 1; });
            EXPECT_EQ(order, 1);
            order = 2;
          });
          EXPECT_EQ(order, 2);
        },
        {.flags = kTaskFinal});
  });
}

template <size_t kBytes, size_t kAlignment>
struct alignas(kAlignment) Payload {
  unsigned char bytes[kBytes];
};

template <size_t kBytes, size_t kAlignment>
void check_payload(uint32_t threads) {
  using Data = Payload<kBytes, kAlignment>;
  std::atomic<int> good{0};
  single_region(threads, [&] {
    for (int i = 0; i < 40; ++i) {
      Data data;
      memset(data.bytes, i + 1, sizeof(data.bytes));
      struct Body {
        Data data;
        std::atomic<int>* good;
        int i;
        void operator()() const {
          bool same = reinterpret_cast<uintptr_t>(this) % kAlignment == 0;
          for (unsigned char byte : data.bytes) same = same && byte == i + 1;
          if (same) good->fetch_add(1);
        }
      };
      task(Body{data, &good, i});
      memset(data.bytes, 0xee, sizeof(data.bytes));
    }
  });
  EXPECT_EQ(good.load(), 40) << kBytes << " bytes aligned to " << kAlignment;
}

TEST_P(TaskRun, DataIsCopiedAtOnceWithItsAlignment) {
  check_payload<1, 1>(GetParam());
  check_payload<32, 16>(GetParam());
  check_payload<64, 64>(GetParam());
  check_payload<200, 32>(GetParam());
  check_payload<1000, 64>(GetParam());
  check_payload<5000, 64>(GetParam());
  check_payload<128, 128>(GetParam());
  check_payload<9000, 4096>(GetParam());
}

TEST_P(TaskRun, CopyFunctionsRunInTheCreatorBeforeItGoesOn) {
  single_region(GetParam(), [&] {
    static int copies;
    copies = 0;
    static std::atomic<int> sum;
    sum = 0;
    for (int i = 0; i < 30; ++i) {
      int data = i;
      create_task({[](void* p) { sum += *static_cast<int*>(p); }, &data,
                   [](void* to, void* from) {
                     ++copies;
                     *static_cast<int*>(to) = *static_cast<int*>(from) + 1;
                   },
                   sizeof(int), alignof(int), i % 2 == 0, 0, nullptr, 0, nullptr, nullptr});
      EXPECT_EQ(copies, i + 1);
      data = -1000;
    }
    wait_for_children();
    EXPECT_EQ(sum.load(), 30 * 29 / 2 + 30);
  });
}

TEST_P(TaskRun, ATaskgroupWaitsForDescendants) {
  std::atomic<int> wrong{0};
  region(GetParam(), [&](uint32_t) {
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> inside{0};
      taskgroup_push(current_task());
      for (int i = 0; i < 5; ++i)
        task([&inside] {
          for (int k = 0; k < 5; ++k) task([&inside] { task([&inside] { inside.fetch_add(1); }); });
        });
      taskgroup_end();
      if (inside.load() != 25) wrong.fetch_add(1);
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(TaskRun, NestedTaskgroupsEndInsideOut) {
  std::atomic<int> wrong{0};
  struct Level {
    std::atomic<int>* wrong;
    int depth;
    void operator()() const {
      if (depth == 0) return;
      std::atomic<int> ended{0};
      taskgroup_push(current_task());
      for (int i = 0; i < 3; ++i) {
        const Level inner{wrong, depth - 1};
        std::atomic<int>* count = &ended;
        task([inner, count] {
          inner();
          count->fetch_add(1);
        });
      }
      taskgroup_end();
      if (ended.load() != 3) wrong->fetch_add(1);
    }
  };
  region(GetParam(), [&](uint32_t) { Level{&wrong, 4}(); });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(TaskRun, CancelledGroupsDropWhatHasNotStarted) {
  single_region(GetParam(), [&] {
    std::atomic<int> ran{0};
    taskgroup_push(current_task());
    cancel_taskgroup(current_task());
    EXPECT_TRUE(taskgroup_cancelled(current_task()));
    for (int i = 0; i < 100; ++i) task([&ran] { ran.fetch_add(1); });
    taskgroup_end();
    EXPECT_EQ(ran.load(), 0);
    EXPECT_FALSE(taskgroup_cancelled(current_task()));
    task([&ran] { ran.fetch_add(1); });
    wait_for_children();
    EXPECT_EQ(ran.load(), 1);
  });
}

TEST_P(TaskRun, NestedRegionsInsideTasks) {
  std::atomic<int> sum{0};
  single_region(GetParam(), [&] {
    for (int i = 0; i < 6; ++i)
      task([&sum] {
        const Task* outer = current_task();
        region(2, [&sum, outer](uint32_t) {
          EXPECT_EQ(current_task()->parent, outer);
          for (int k = 0; k < 5; ++k) plain_task([&sum] { sum.fetch_add(1); });
        });
        EXPECT_EQ(current_task(), outer);
      });
  });
  EXPECT_GE(sum.load(), 30);  // nested regions of one thread where nesting is off
}

TEST_P(TaskRun, EventsHoldBackTheEnd) {
  single_region(GetParam(), [&] {
    constexpr int kTasks = 20;
    std::atomic<int> fulfilled{0};
    uintptr_t events[kTasks] = {};
    std::atomic<int> bodies{0};
    for (int i = 0; i < kTasks; ++i) {
      uintptr_t* seen = &events[i];
      std::atomic<int>* count = &bodies;
      detached_task(&events[i], [seen, count](uintptr_t event) {
        EXPECT_EQ(event, *seen);
        count->fetch_add(1);
      });
      EXPECT_NE(events[i], 0u);
    }
    // By a thread that OpenMP does not know.
    std::thread stranger([&] {
      while (bodies.load() < kTasks / 2) std::this_thread::yield();
      for (uintptr_t event : events) {
        fulfilled.fetch_add(1);
        fulfill_event(event);
      }
    });
    wait_for_children();
    EXPECT_EQ(fulfilled.load(), kTasks);
    EXPECT_EQ(bodies.load(), kTasks);
    stranger.join();
  });
}

TEST_P(TaskRun, AnEventMayBeFulfilledBeforeDuringAndAfterTheBody) {
  region(GetParam(), [&](uint32_t) {
    for (int round = 0; round < 50; ++round) {
      uintptr_t before = 0;
      detached_task(&before, [](uintptr_t) {});
      fulfill_event(before);
      uintptr_t inside = 0;
      detached_task(&inside, [](uintptr_t event) { fulfill_event(event); });
      uintptr_t undeferred = 0;
      detached_task(&undeferred, [](uintptr_t event) { fulfill_event(event); },
                    {.deferrable = false});
      wait_for_children();
      EXPECT_EQ(own_count(current_task()->children), 0u);
    }
  });
}

TEST_P(TaskRun, ChildrenStartWithTheirCreatorsIcvs) {
  region(GetParam(), [&](uint32_t) {
    for (int round = 0; round < 10; ++round) {
      task([] {
        own_icvs(current_task())->nthreads = 77;
        for (int i = 0; i < 4; ++i)
          task([] {
            EXPECT_EQ(current_task()->icvs->nthreads, 77u);
            own_icvs(current_task())->nthreads = 5;
            task([] { EXPECT_EQ(current_task()->icvs->nthreads, 5u); });
          });
        // The creator changes its own and ends: its children keep what they were given.
        own_icvs(current_task())->nthreads = 99;
      });
    }
    wait_for_children();
    EXPECT_NE(current_task()->icvs->nthreads, 77u);
  });
}

TEST_P(TaskRun, TasksInAHandlerDoNotSeeTheExceptionThatIsHandled) {
  std::atomic<int> wrong{0};
  std::atomic<int> ran{0};
  region(GetParam(), [&](uint32_t index) {
    try {
      throw static_cast<int>(index);
    } catch (int& handled) {
      for (int i = 0; i < 10; ++i)
        plain_task([&wrong, &ran, i] {
          if (std::current_exception() != nullptr || std::uncaught_exceptions() != 0)
            wrong.fetch_add(1);
          try {
            throw 1000 + i;
          } catch (int& own) {
            plain_task([&wrong, &ran] {
              if (std::current_exception() != nullptr) wrong.fetch_add(1);
              ran.fetch_add(1);
            });
            wait_for_children();
            if (own != 1000 + i) wrong.fetch_add(1);
          }
          ran.fetch_add(1);
        });
      wait_for_children();
      try {
        throw;
      } catch (int& again) {
        if (&again != &handled || again != static_cast<int>(index)) wrong.fetch_add(1);
      }
      // Undeferred ones run on top of the handler, too.
      task(
          [&wrong] {
            if (std::current_exception() != nullptr) wrong.fetch_add(1);
          },
          {.deferrable = false});
    }
    if (std::uncaught_exceptions() != 0) wrong.fetch_add(1);
  });
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(ran.load(), static_cast<int>(GetParam()) * 20);
}

TEST(TaskBounds, AQueueFullOfTasksMakesTheCreatorRunThem) {
  constexpr int kTasks = 200000;
  int ran = 0;
  int most_ahead = 0;
  region(1, [&](uint32_t) {
    // A team of one: nobody else can run them.
    for (int i = 0; i < kTasks; ++i) {
      plain_task([&ran] { ++ran; });
      if (i + 1 - ran > most_ahead) most_ahead = i + 1 - ran;
    }
  });
  EXPECT_EQ(ran, kTasks);
  EXPECT_GE(most_ahead, 256);
  EXPECT_LE(most_ahead, 8192);
}

TEST(TaskBounds, AQueuedTaskTakes128BytesAndItsData) {
  EXPECT_LE(sizeof(ExplicitTask), 128u);
  EXPECT_EQ(TaskMemory::kBytes[0], 128u);
  EXPECT_LE(sizeof(ExplicitTask) + 32, TaskMemory::kBytes[0]);
}

TEST(TaskBeside, ASecondContextRunsWhatTheFirstOneSpinsFor) {
  // The member is busy with a task that waits for a later one; the second context is another kernel
  // thread here, so that both are at it at once.
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ran{0};
    std::atomic<bool> busy{false};
    std::atomic<int> wrong{0};
    region(1, [&](uint32_t) {
      const ImplicitTask* member = current_member();
      std::thread second([&, member] {
        while (!busy.load()) std::this_thread::yield();
        sched::Thread* other = current_thread();
        Task* const own_task = other->task;
        ImplicitTask* const own_member = other->member;
        ImplicitTask beside;
        beside.team = member->team;
        beside.icvs = member->icvs;
        beside.is_implicit = true;
        beside.index = member->index;
        other->task = other->member = &beside;
        while (ran.load() < 150) run_one_team_task(other, beside.team);
        if (beside.dependences != nullptr) free_dependences(&beside);
        other->task = own_task;
        other->member = own_member;
      });
      plain_task([&] {
        busy.store(true);
        // Creates tasks while the other one takes them away and creates more.
        for (int i = 0; i < 50; ++i)
          plain_task([&] {
            if (current_member()->index != 0) wrong.fetch_add(1);
            for (int k = 0; k < 2; ++k) plain_task([&] { ran.fetch_add(1); });
            wait_for_children();
            ran.fetch_add(1);
          });
        while (ran.load() < 150) std::this_thread::yield();
      });
      wait_for_children();
      second.join();
    });
    EXPECT_EQ(ran.load(), 150);
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST(TaskOutside, TasksOutsideOfRegionsRunAtOnce) {
  int value = 0;
  task([&value] { value = 1; });
  EXPECT_EQ(value, 1);
  wait_for_children();
  uintptr_t event = 0;
  detached_task(&event, [&value](uintptr_t) { value = 2; });
  EXPECT_EQ(value, 2);
  fulfill_event(event);
  wait_for_children();
  EXPECT_EQ(own_count(current_task()->children), 0u);
}

}  // namespace
}  // namespace bosk::omp
