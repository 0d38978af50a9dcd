// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checker on small programs that synchronise: data races, locks, futexes, loops that wait.
#include "checker/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;
using testing::HasSubstr;

struct Shared {
  A::atomic<int> flag, word, turn;
  A::plain<int> data;
};

model::Result run(const std::vector<std::function<void(Shared&)>>& threads,
                  const model::Options& options = {}) {
  return model::explore(options, [&] {
    auto shared = std::make_shared<Shared>();
    model::name(shared->flag, "flag");
    model::name(shared->word, "word");
    for (const auto& thread : threads) model::spawn([shared, &thread] { thread(*shared); });
  });
}

void expect_failure(const model::Result& result, const std::string& text) {
  EXPECT_TRUE(result.failed);
  EXPECT_THAT(result.failure, HasSubstr(text));
}
void expect_proved(const model::Result& result) {
  EXPECT_TRUE(result.proved()) << result.executions << "\n" << result.failure;
}

// ---- data races ---------------------------------------------------------------------------------

TEST(Race, UnorderedWriteAndReadAreFoundInEitherOrder) {
  expect_failure(run({[](Shared& s) { s.data = 1; }, [](Shared& s) { (void)s.data.get(); }}),
                 "data race: read by T2");
  expect_failure(run({[](Shared& s) { (void)s.data.get(); }, [](Shared& s) { s.data = 1; }}),
                 "data race: write by T2");
  expect_failure(run({[](Shared& s) { s.data = 1; }, [](Shared& s) { s.data = 2; }}),
                 "data race: write by T2");
}
TEST(Race, TwoReadsAreNone) {
  expect_proved(
      run({[](Shared& s) { (void)s.data.get(); }, [](Shared& s) { (void)s.data.get(); }}));
}

std::vector<std::function<void(Shared&)>> publish(std::memory_order store, std::memory_order load) {
  return {[=](Shared& s) {
            s.data = 7;
            s.flag.store(1, store);
          },
          [=](Shared& s) {
            if (s.flag.load(load) == 1) MODEL_ASSERT(s.data == 7);
          }};
}
TEST(Race, ReleaseAcquireOrdersData) { expect_proved(run(publish(release, acquire))); }
TEST(Race, RelaxedPublicationIsARace) {
  expect_failure(run(publish(relaxed, acquire)), "data race");
  expect_failure(run(publish(release, relaxed)), "data race");
}
TEST(Race, SeqCstFencesAloneOrderNothing) {
  // Both threads pass a fence, but no load reads the other's store: no happens-before.
  const std::function<void(Shared&)> thread = [](Shared& s) {
    A::fence(seq_cst);
    s.data = 1;
  };
  expect_failure(run({thread, thread}), "data race");
}
TEST(Race, WriteAfterTheReleaseIsNotPublished) {
  expect_failure(run({[](Shared& s) {
                        s.flag.store(1, release);
                        s.data = 7;
                      },
                      [](Shared& s) {
                        if (s.flag.load(acquire) == 1) (void)s.data.get();
                      }}),
                 "data race");
}
TEST(Race, AtomicMustBeConstructedVisibly) {
  const model::Result r = model::explore({}, [] {
    struct Box {
      A::atomic<A::atomic<int>*> pointer{nullptr};
      std::unique_ptr<A::atomic<int>> owned;
    };
    auto box = std::make_shared<Box>();
    model::spawn([=] {
      box->owned = std::make_unique<A::atomic<int>>(5);
      box->pointer.store(box->owned.get(), relaxed);
    });
    model::spawn([=] {
      if (auto* p = box->pointer.load(acquire)) (void)p->load(relaxed);
    });
  });
  expect_failure(r, "before its construction is visible");
}

// ---- locks --------------------------------------------------------------------------------------

struct SpinLock {
  std::memory_order acquire_order = acquire, release_order = release;
  bool test_only = false;  // planted: test, then set
  A::atomic<int> held;

  void lock() {
    for (;;) {
      if (test_only && held.load(acquire_order) == 0) {
        held.store(1, relaxed);
        return;
      }
      if (!test_only && held.exchange(1, acquire_order) == 0) return;
      A::pause();
    }
  }
  void unlock() { held.store(0, release_order); }
};

model::Result lock_test(int threads, std::memory_order acq, std::memory_order rel, bool test_only) {
  return model::explore({}, [=] {
    struct State {
      SpinLock lock;
      A::plain<int> count;
    };
    auto s = std::make_shared<State>();
    s->lock.acquire_order = acq;
    s->lock.release_order = rel;
    s->lock.test_only = test_only;
    for (int i = 0; i < threads; ++i)
      model::spawn([=] {
        s->lock.lock();
        s->count = s->count + 1;
        s->lock.unlock();
      });
    model::at_end([=] { MODEL_ASSERT(s->count == threads); });
  });
}
TEST(Lock, SpinLockIsCorrect) {
  expect_proved(lock_test(2, acquire, release, false));
  expect_proved(lock_test(3, acquire, release, false));
}
TEST(Lock, BrokenSpinLocksAreFound) {
  expect_failure(lock_test(2, relaxed, release, false), "data race");
  expect_failure(lock_test(2, acquire, relaxed, false), "data race");
  expect_failure(lock_test(2, acquire, release, true), "data race");
}

std::vector<std::function<void(Shared&)>> dekker(bool light, bool heavy) {
  return {[=](Shared& s) {
            s.flag.store(1, relaxed);
            if (light) A::light_barrier();
            if (s.word.load(acquire) == 0) s.data = 1;
          },
          [=](Shared& s) {
            s.word.store(1, relaxed);
            if (heavy) A::heavy_barrier();
            if (s.flag.load(acquire) == 0) s.data = 2;
          }};
}
TEST(Lock, DekkerEntryNeedsBothHalvesOfTheAsymmetricPair) {
  expect_proved(run(dekker(true, true)));
  expect_failure(run(dekker(false, true)), "data race");
  expect_failure(run(dekker(true, false)), "data race");
  expect_failure(run(dekker(false, false)), "data race");
}

// ---- loops that wait ----------------------------------------------------------------------------

TEST(Wait, LoopEndsWhenTheValueComes) {
  const model::Result r = run({[](Shared& s) { s.flag.store(1, release); },
                               [](Shared& s) {
                                 while (s.flag.load(acquire) == 0) A::pause();
                               }});
  expect_proved(r);
  EXPECT_EQ(r.executions, 2u);  // the first load reads 0 or 1, nothing else differs
}
TEST(Wait, LoopThatNobodyEndsIsALivelock) {
  expect_failure(run({[](Shared& s) { s.word.store(1, release); },
                      [](Shared& s) {
                        while (s.flag.load(acquire) == 0) A::pause();
                      }}),
                 "livelock: spins for ever on flag=0");
}
TEST(Wait, EachWaitingForTheOtherIsALivelock) {
  expect_failure(run({[](Shared& s) {
                        while (s.flag.load(acquire) == 0) A::pause();
                        s.word.store(1, release);
                      },
                      [](Shared& s) {
                        while (s.word.load(acquire) == 0) A::pause();
                        s.flag.store(1, release);
                      }}),
                 "livelock");
}
TEST(Wait, APulseMayBeMissed) {
  expect_failure(run({[](Shared& s) {
                        s.flag.store(1, release);
                        s.flag.store(0, release);
                      },
                      [](Shared& s) {
                        while (s.flag.load(acquire) == 0) A::pause();
                      }}),
                 "livelock");
}
TEST(Wait, LoopOverTwoPlaces) {
  expect_proved(
      run({[](Shared& s) { s.flag.store(1, release); }, [](Shared& s) { s.word.store(1, release); },
           [](Shared& s) {
             while (s.flag.load(acquire) == 0 || s.word.load(acquire) == 0) A::pause();
           },
           [](Shared& s) {
             while (s.flag.load(acquire) + s.word.load(acquire) < 1) {
               A::pause();
               A::pause();
             }
           }}));
}
TEST(Wait, LoopWithoutPauseIsNamed) {
  expect_failure(run({[](Shared& s) {
                   while (s.flag.load(acquire) == 0) {
                   }
                 }}),
                 "needs A::pause()");
}

// ---- futexes ------------------------------------------------------------------------------------

void sleep_while_zero(Shared& s) {
  while (s.word.load(acquire) == 0) A::futex_wait(&s.word, 0);
}
void set_and_wake(Shared& s) {
  s.word.store(1, release);
  A::futex_wake(&s.word, 1);
}
TEST(Futex, WaitAndWake) {
  expect_proved(run({sleep_while_zero, set_and_wake}));
  expect_proved(run({sleep_while_zero, set_and_wake}, {.spurious_wakes = 2}));
}
TEST(Futex, ForgottenWakeIsFound) {
  expect_failure(run({sleep_while_zero, [](Shared& s) { s.word.store(1, release); }}),
                 "deadlock: asleep for ever in futex_wait on word");
}
TEST(Futex, LuckDoesNotHideALostWake) {
  expect_failure(
      run({sleep_while_zero, [](Shared& s) { s.word.store(1, release); }}, {.spurious_wakes = 3}),
      "deadlock");
}
TEST(Futex, WakeBeforeTheStoreIsFound) {
  expect_failure(run({sleep_while_zero,
                      [](Shared& s) {
                        A::futex_wake(&s.word, 1);
                        s.word.store(1, release);
                      }}),
                 "deadlock");
}
TEST(Futex, WakeOfOneLeavesTheOtherAsleep) {
  expect_failure(run({sleep_while_zero, sleep_while_zero, set_and_wake}), "deadlock");
  expect_proved(run({sleep_while_zero, sleep_while_zero, [](Shared& s) {
                       s.word.store(1, release);
                       A::futex_wake(&s.word, 2);
                     }}));
}
TEST(Futex, SleepingOnAFlagThatIsCheckedWithoutAFenceIsFound) {
  // The waker looks whether anyone sleeps; without fences both sides may miss each other.
  const auto protocol = [](bool fences) {
    return std::vector<std::function<void(Shared&)>>{[=](Shared& s) {
                                                       s.word.store(1, relaxed);  // "I sleep"
                                                       if (fences) A::fence(seq_cst);
                                                       if (s.flag.load(acquire) == 0)
                                                         A::futex_wait(&s.word, 1);
                                                     },
                                                     [=](Shared& s) {
                                                       s.flag.store(1, release);
                                                       if (fences) A::fence(seq_cst);
                                                       if (s.word.load(relaxed) == 1) {
                                                         s.word.store(0, relaxed);
                                                         A::futex_wake(&s.word, 1);
                                                       }
                                                     }};
  };
  expect_proved(run(protocol(true)));
  expect_failure(run(protocol(false)), "deadlock");
}
// A wake-up orders nothing by itself, as nothing says that the kernel's does; a fence on the way
// out of the wait makes the waker's store visible.
std::vector<std::function<void(Shared&)>> wait_once(bool fence) {
  return {[=](Shared& s) {
            A::futex_wait(&s.word, 0);
            if (fence) A::fence(seq_cst);
            MODEL_ASSERT(s.word.load(acquire) == 1);
          },
          set_and_wake};
}
TEST(Futex, WakingOrdersNothing) {
  expect_proved(run(wait_once(true)));
  expect_failure(run(wait_once(false)), "assertion failed");
}
TEST(Futex, WokenForNoReason) {
  expect_failure(run(wait_once(true), {.spurious_wakes = 1}), "assertion failed");
}
TEST(Futex, TimeLimit) {
  const std::vector<std::function<void(Shared&)>> alone{[](Shared& s) {
    const timespec limit{0, 1000};
    model::outcome(A::futex_wait(&s.word, 0, &limit) ? "woken" : "timeout");
  }};
  expect_failure(run(alone), "deadlock");
  const model::Result late = run(alone, {.timeouts = 1});
  expect_proved(late);
  EXPECT_EQ(late.outcomes, (std::set<std::string>{"timeout"}));
  const model::Result both = run({alone[0], set_and_wake}, {.timeouts = 1});
  expect_proved(both);
  EXPECT_EQ(both.outcomes, (std::set<std::string>{"timeout", "woken"}));
}

// ---- the explorer -------------------------------------------------------------------------------

TEST(Explorer, IndependentThreadsNeedOneExecution) {
  const auto thread = [](auto member) {
    return [=](Shared& s) {
      for (int i = 0; i < 4; ++i) (s.*member).store(i, relaxed);
    };
  };
  const model::Result r =
      run({thread(&Shared::flag), thread(&Shared::word), thread(&Shared::turn)});
  expect_proved(r);
  EXPECT_EQ(r.executions, 1u);
}
TEST(Explorer, ExecutionLimitIsReported) {
  const model::Result r = run({sleep_while_zero, set_and_wake}, {.max_executions = 1});
  EXPECT_FALSE(r.complete);
  EXPECT_FALSE(r.proved());
}
std::vector<std::function<void(Shared&)>> needs_two_switches() {
  return {[](Shared& s) {
            s.flag.store(1, seq_cst);
            if (s.flag.load(seq_cst) == 2) s.flag.store(3, seq_cst);
            MODEL_ASSERT(s.flag.load(seq_cst) != 4);
          },
          [](Shared& s) {
            if (s.flag.load(seq_cst) == 1) s.flag.store(2, seq_cst);
            if (s.flag.load(seq_cst) == 3) s.flag.store(4, seq_cst);
          }};
}
TEST(Explorer, PreemptionBoundCutsAndSaysSo) {
  const model::Result none = run(needs_two_switches(), {.preemption_bound = 0});
  EXPECT_FALSE(none.failed);
  EXPECT_TRUE(none.bounded);
  EXPECT_FALSE(none.proved());
  expect_failure(run(needs_two_switches(), {.preemption_bound = 3}), "assertion failed");
  expect_failure(run(needs_two_switches()), "assertion failed");
}
TEST(Explorer, RandomWalksRepeatWithTheirSeed) {
  const model::Options options{.random_walks = 5000, .seed = 7};
  const model::Result first = run(needs_two_switches(), options);
  const model::Result second = run(needs_two_switches(), options);
  expect_failure(first, "assertion failed");
  EXPECT_EQ(first.executions, second.executions);
  EXPECT_EQ(first.failure, second.failure);
  EXPECT_FALSE(run(publish(release, acquire), options).failed);
}
TEST(Explorer, TraceNamesThreadPlaceValueAndLine) {
  const model::Result r = run(publish(relaxed, acquire));
  EXPECT_THAT(r.failure, HasSubstr("T1  flag.store(1, relaxed)  (checker_sync_test.cpp:"));
  EXPECT_THAT(r.failure, HasSubstr("T2  flag.load(acquire) = 1 [written by T1]"));
}
TEST(Explorer, MutationFindsTheOrdersThatMatter) {
  const auto body = [] {
    auto s = std::make_shared<Shared>();
    model::spawn([=] {
      s->data = 7;
      s->flag.store(1, release);
      s->word.store(1, release);  // too strong: nobody needs it
    });
    model::spawn([=] {
      if (s->flag.load(acquire) == 1) MODEL_ASSERT(s->data == 7);
    });
  };
  const std::vector<model::Mutant> mutants = model::mutate({}, {body}, "checker_sync_test.cpp");
  ASSERT_EQ(mutants.size(), 3u);
  for (const model::Mutant& m : mutants)
    EXPECT_EQ(m.caught, m.text.find("word") == std::string::npos) << m;
}

}  // namespace
