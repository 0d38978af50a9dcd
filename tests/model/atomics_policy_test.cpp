// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The production policy: the same interface as the checker's, and what it promises on this machine.
#include "base/atomics_policy.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <concepts>
#include <thread>

#include "checker/checker.h"
#include "sched/claim_protocol.h"
#include "sched/join_protocol.h"
#include "sched/parking_protocol.h"

namespace {

using bosk::base::Membarrier;
using bosk::base::membarrier_state;
using bosk::base::StdAtomics;

template <class A>
concept Policy = requires(typename A::template atomic<std::uint32_t>& word,
                          typename A::template plain<int>& data, const timespec* limit) {
  A::fence(std::memory_order_seq_cst);
  A::pause();
  A::relax();
  A::light_barrier();
  A::heavy_barrier();
  { A::futex_wait(&word, 1) } -> std::same_as<bool>;
  { A::futex_wait(&word, 1, limit) } -> std::same_as<bool>;
  A::futex_wake(&word, 1);
  { data + 1 } -> std::same_as<int>;
  { word.load(std::memory_order_acquire) } -> std::same_as<std::uint32_t>;
};
static_assert(Policy<StdAtomics>);
static_assert(Policy<model::ModelAtomics>);

/// Forces one kind of barrier for a test that runs no other threads outside its own.
class Forced {
 public:
  explicit Forced(Membarrier state) : before_(membarrier_state.exchange(state)) {}
  ~Forced() { membarrier_state = before_; }

 private:
  Membarrier before_;
};

/// Two threads that start each round as nearly together as they can.
class Rounds {
 public:
  void meet() {
    const int last = (arrived_.fetch_add(1) / 2 + 1) * 2;
    for (int spins = 0; arrived_.load(std::memory_order_acquire) < last; ++spins)
      if (spins > 10'000) std::this_thread::yield();
  }

 private:
  std::atomic<int> arrived_{0};
};

/// Store buffering on the real machine: rounds in which neither side saw the other's store.
template <class First, class Second>
int both_missed(int rounds, First first, Second second) {
  struct alignas(128) Side {
    std::atomic<int> stored{0};
    int seen = 0;
  };
  Side a, b;
  Rounds rounds_of_two;
  int missed = 0;
  const auto play = [&](Side& mine, Side& other, auto barrier, bool counts) {
    for (int i = 1; i <= rounds; ++i) {
      rounds_of_two.meet();
      mine.stored.store(i, std::memory_order_relaxed);
      barrier();
      mine.seen = other.stored.load(std::memory_order_relaxed);
      rounds_of_two.meet();
      if (counts) missed += mine.seen < i && other.seen < i;
    }
  };
  std::thread thread([&] { play(a, b, first, false); });
  play(b, a, second, true);
  thread.join();
  return missed;
}

constexpr auto kLight = [] { StdAtomics::light_barrier(); };
constexpr auto kHeavy = [] { StdAtomics::heavy_barrier(); };

TEST(AtomicsPolicy, KernelBarrierHoldsOnThisMachine) {
  if (!StdAtomics::prepare_barriers()) GTEST_SKIP() << "membarrier(2) is not available";
  EXPECT_EQ(membarrier_state.load(), Membarrier::kKernel);
  EXPECT_EQ(both_missed(5000, kHeavy, kLight), 0);
}
TEST(AtomicsPolicy, FencesReplaceIt) {
  const Forced forced(Membarrier::kFences);
  EXPECT_FALSE(StdAtomics::prepare_barriers());
  EXPECT_EQ(both_missed(5000, kHeavy, kLight), 0);
}
TEST(AtomicsPolicy, BarriersWorkInAForkedChild) {
  StdAtomics::prepare_barriers();
  const pid_t child = fork();
  if (child == 0) {
    StdAtomics::heavy_barrier();
    _exit(42);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
}
TEST(AtomicsPolicy, FutexAnswers) {
  std::atomic<std::uint32_t> word{1};
  const timespec limit{0, 1'000'000};
  EXPECT_TRUE(StdAtomics::futex_wait(&word, 0, &limit));   // another value: no wait
  EXPECT_FALSE(StdAtomics::futex_wait(&word, 1, &limit));  // nobody wakes
}

/// Two threads hand a number to each other; each sleeps until it is its turn.
void hand_over(int rounds) {
  struct Side {
    bosk::sched::ParkingSpot<StdAtomics> spot;
    std::atomic<int> number{0};
  };
  Side side[2];
  const auto play = [&](Side& me, Side& other, int first) {
    for (int i = first; i <= rounds; i += 2) {
      while (me.number.load(std::memory_order_acquire) < i) {
        me.spot.prepare();
        if (me.number.load(std::memory_order_acquire) == i)
          me.spot.cancel();
        else
          me.spot.sleep();
      }
      other.number.store(i + 1, std::memory_order_release);
      if (other.spot.needs_wake()) other.spot.wake();
    }
  };
  std::thread thread([&] { play(side[1], side[0], 1); });
  play(side[0], side[1], 0);
  thread.join();
  EXPECT_EQ(side[0].number.load() + side[1].number.load(), 2 * rounds + 1);
}
TEST(ParkingOnThisMachine, NoWakeUpIsLost) { hand_over(2000); }
TEST(ParkingOnThisMachine, NoWakeUpIsLostWithFences) {
  const Forced forced(Membarrier::kFences);
  hand_over(2000);
}

TEST(ClaimOnThisMachine, LargestTeam) {
  using bosk::sched::kMaxTeam;
  bosk::sched::ClaimWord<StdAtomics> ghosts;
  const auto expect_claim = [&](std::uint32_t most, std::uint32_t index, std::uint32_t count) {
    const bosk::sched::Claim claim = ghosts.claim(most);
    EXPECT_EQ(claim.index, index);
    EXPECT_EQ(claim.count, count);
  };
  expect_claim(1, 0, 0);
  ghosts.open(kMaxTeam, 1);
  EXPECT_EQ(ghosts.left(), kMaxTeam - 1);
  expect_claim(kMaxTeam - 2, 1, kMaxTeam - 2);
  expect_claim(kMaxTeam, kMaxTeam - 1, 1);
  expect_claim(1, 0, 0);
  EXPECT_EQ(ghosts.left(), 0u);
}
TEST(ClaimOnThisMachine, GenerationWrapsAround) {
  bosk::sched::ClaimWord<StdAtomics> ghosts;
  for (std::uint32_t i = 0; i < 1u << 24; ++i) ghosts.open(0, 0);
  EXPECT_EQ(ghosts.generation(), 0u);
  ghosts.open(5, 2);
  EXPECT_EQ(ghosts.generation(), 1u);
  EXPECT_EQ(ghosts.left(), 3u);
  EXPECT_FALSE(ghosts.claim_of(0, 1));
  EXPECT_TRUE(ghosts.claim_of(1, 1));
}
TEST(JoinOnThisMachine, LastOneIsTold) {
  bosk::sched::JoinCount<StdAtomics> join;
  join.open(5);
  EXPECT_FALSE(join.finish(2));
  EXPECT_FALSE(join.try_last(2));
  EXPECT_FALSE(join.done());
  EXPECT_TRUE(join.try_last(3));
  EXPECT_TRUE(join.done());
  join.open(2);
  EXPECT_FALSE(join.finish(1));
  EXPECT_TRUE(join.suspend(1));
  EXPECT_TRUE(join.done());
  EXPECT_FALSE(join.pull());
  join.open(2);
  EXPECT_FALSE(join.suspend(1));
  EXPECT_TRUE(join.pull());
  EXPECT_FALSE(join.pull());
  EXPECT_FALSE(join.finish(1));
  EXPECT_TRUE(join.try_last(0));
}

}  // namespace
