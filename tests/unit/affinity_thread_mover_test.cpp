// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads go to those that they share with, on invented machines with invented threads; and nobody is left with fewer CPUs than it should have.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "affinity/acting/thread_mover.h"
#include "base/observer_messages.h"
#include "invented_machine.h"
#include "observed/hand_over.h"

namespace bosk::affinity {
namespace {

constexpr pid_t kProcess = 1000;
constexpr double kSecond = 1e9;

class InventedThreads : public ThreadSystem {
 public:
  CpuSet mask(uint32_t thread) override {
    const auto at = masks.find(thread);
    return at == masks.end() ? CpuSet() : at->second;
  }
  int set_mask(uint32_t thread, const CpuSet& cpus) override {
    if (error != 0) return error;
    if (!masks.contains(thread)) return ESRCH;
    masks[thread] = cpus;
    ++sets;
    return 0;
  }
  std::vector<uint32_t> threads_of(pid_t) override {
    std::vector<uint32_t> all;
    for (const auto& [thread, mask] : masks) all.push_back(thread);
    return all;
  }

  std::map<uint32_t, CpuSet> masks;
  int sets = 0;
  int error = 0;
};

class Mover : public testing::Test {
 protected:
  Mover() : owned(test::symmetric(4, 1, 4, 1)), machine(owned.get()) {
    given.assign(1, (uint64_t{1} << machine->n_pus) - 1);
    learner = std::make_unique<Learner>(nodes_of(*machine), Learner::kRecentAccesses);
    mover = std::make_unique<ThreadMover>(&system, machine, learner.get(), given, true);
  }

  void begin(uint32_t threads) {
    system.masks[kProcess] = given;
    mover->saw(kProcess, kProcess);
    for (uint32_t i = 1; i <= threads; ++i) {
      system.masks[kProcess + i] = given;
      mover->made(kProcess, kProcess + i, kProcess, now);
    }
  }
  /// Both write to a page, one after the other. They run on CPUs by their number.
  void share(uint32_t a, uint32_t b, int times) {
    for (int i = 0; i < times; ++i)
      for (const uint32_t thread : {a, b}) {
        const uint64_t page = (uint64_t{std::min(a, b)} * 1000 + std::max(a, b)) * 4096;
        mover->saw(kProcess, kProcess + thread);
        learner->add({1, page, kProcess + thread, 1,
                      static_cast<uint16_t>((thread - 1) % machine->n_pus), AccessKind::kWrite});
      }
  }
  void share_in_far_pairs(uint32_t threads, int times = 200) {
    for (uint32_t i = 1; i <= threads / 2; ++i) share(i, i + threads / 2, times);
  }
  /// It alone writes to some pages of its own, on that CPU.
  void use_own(uint32_t thread, uint16_t cpu, int times = 20) {
    for (int i = 0; i < times; ++i)
      for (uint64_t page = 0; page < 8; ++page) {
        mover->saw(kProcess, kProcess + thread);
        learner->add({1, (1'000'000 + uint64_t{thread} * 1000 + page) * 4096, kProcess + thread, 1,
                      cpu, AccessKind::kWrite});
      }
  }
  void act() { mover->act(now += kSecond); }
  uint32_t node_of(uint32_t thread) {
    const CpuSet& mask = system.masks.at(kProcess + thread);
    for (uint32_t node = 0; node < 4; ++node)
      if (mask[0] == uint64_t{0xf} << (4 * node)) return node;
    return 99;
  }

  test::MachinePtr owned;
  const topology::Machine* machine;
  CpuSet given;
  InventedThreads system;
  std::unique_ptr<Learner> learner;
  std::unique_ptr<ThreadMover> mover;
  double now = 1000 * kSecond;
};

TEST_F(Mover, ThoseThatShareComeTogether) {
  begin(16);
  share_in_far_pairs(16);
  act();
  std::map<uint32_t, int> on;
  for (uint32_t i = 1; i <= 16; ++i) ++on[node_of(i)];
  for (uint32_t i = 1; i <= 8; ++i) EXPECT_EQ(node_of(i), node_of(i + 8)) << i;
  for (const auto& [node, count] : on) EXPECT_EQ(count, 4) << "node " << node;
  EXPECT_EQ(mover->counts().mappings, 1U);
  EXPECT_EQ(system.masks[kProcess], given) << "the first thread may make more";
}

TEST_F(Mover, WhoSharesWithNobodyStaysWithItsMemory) {
  begin(8);
  for (uint32_t i = 1; i <= 8; ++i) use_own(i, static_cast<uint16_t>(2 * (i - 1)));
  act();
  for (uint32_t i = 1; i <= 8; ++i) EXPECT_EQ(node_of(i), (i - 1) / 2) << i;
  EXPECT_EQ(mover->counts().mappings, 0U);
  EXPECT_EQ(mover->counts().stay, 8U);
  const int sets = system.sets;
  for (uint32_t i = 1; i <= 8; ++i) use_own(i, static_cast<uint16_t>(2 * (i - 1)));
  act();
  EXPECT_EQ(system.sets, sets);
}

TEST_F(Mover, WhoWasMovedAwayFromItsMemoryComesBack) {
  begin(2);
  for (const uint32_t thread : {1, 2}) {
    use_own(thread, 0);
    use_own(thread, 9, 1);
  }
  act();
  EXPECT_EQ(node_of(1), 0U);
  EXPECT_EQ(node_of(2), 0U);
}

TEST_F(Mover, NoNodeGetsMoreThanItHasRoomFor) {
  begin(16);
  for (uint32_t i = 1; i <= 16; ++i) use_own(i, static_cast<uint16_t>(i % 4));
  // Not yet seen anywhere else: 17 threads on 16 CPUs, two for each.
  act();
  std::map<uint32_t, int> on;
  for (uint32_t i = 1; i <= 16; ++i) ++on[node_of(i)];
  EXPECT_EQ(on[0], 8);
  EXPECT_EQ(on[99], 8);
  // One ends: one for each CPU.
  mover->ended(kProcess + 16);
  act();
  on.clear();
  for (uint32_t i = 1; i <= 15; ++i) ++on[node_of(i)];
  EXPECT_EQ(on[0], 4);
  EXPECT_EQ(on[99], 11);
}

TEST_F(Mover, WhereAllUseTheSameMemoryNobodyStays) {
  begin(16);
  for (int round = 0; round < 40; ++round)
    for (uint32_t i = 1; i <= 16; ++i) {
      mover->saw(kProcess, kProcess + i);
      for (uint64_t page = 0; page < 8; ++page)
        learner->add(
            {1, page * 4096, kProcess + i, 1, static_cast<uint16_t>(i - 1), AccessKind::kWrite});
    }
  act();
  for (uint32_t i = 1; i <= 16; ++i) EXPECT_EQ(node_of(i), 99U) << i;
}

TEST_F(Mover, WhereMemoryIsNotMovedNobodyStaysForIt) {
  mover = std::make_unique<ThreadMover>(&system, machine, learner.get(), given, false);
  begin(8);
  for (uint32_t i = 1; i <= 8; ++i) use_own(i, static_cast<uint16_t>(2 * (i - 1)));
  act();
  EXPECT_EQ(system.sets, 0);
}

TEST_F(Mover, TheyStayWhileNothingChanges) {
  begin(16);
  share_in_far_pairs(16);
  act();
  const int sets = system.sets;
  for (int i = 0; i < 10; ++i) {
    share_in_far_pairs(16);
    act();
  }
  EXPECT_EQ(system.sets, sets);
}

TEST_F(Mover, TheyFollowWhenOthersShare) {
  begin(16);
  share_in_far_pairs(16);
  act();
  for (int i = 0; i < 8; ++i) {
    for (uint32_t a = 1; a <= 16; a += 2) share(a, a + 1, 200);
    act();
  }
  for (uint32_t a = 1; a <= 16; a += 2) EXPECT_EQ(node_of(a), node_of(a + 1)) << a;
}

/// One of them does not move; the others do, whoever it is. Few accesses at a time, of some pairs only.
TEST_F(Mover, WhatIsSeldomSeenAddsUp) {
  begin(16);
  for (int round = 0; round < 60; ++round) {
    share_in_far_pairs(16, 1);
    for (uint32_t i = 1; i <= 16; ++i) use_own(i, static_cast<uint16_t>(i - 1));
    act();
  }
  for (uint32_t i = 1; i <= 8; ++i) EXPECT_EQ(node_of(i), node_of(i + 8)) << i;
}

TEST_F(Mover, TheyFollowAlsoIfOneIsLeftAlone) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::minstd_rand random(seed);
    system.masks.clear();
    learner = std::make_unique<Learner>(nodes_of(*machine), Learner::kRecentAccesses);
    mover = std::make_unique<ThreadMover>(&system, machine, learner.get(), given, true);
    begin(16);
    share_in_far_pairs(16);
    act();
    const uint32_t maker = 1 + static_cast<uint32_t>(random() % 16);
    system.masks[2000] = given;
    mover->made(2000, 2000, kProcess + maker, now);
    for (int i = 0; i < 60; ++i) {
      for (int j = 0; j < 4; ++j) {
        const auto pair = static_cast<uint32_t>(random() % 8);
        share(2 * pair + 1, 2 * pair + 2, 150);
      }
      act();
    }
    int together = 0;
    for (uint32_t a = 1; a <= 16; a += 2) together += node_of(a) == node_of(a + 1) ? 1 : 0;
    EXPECT_EQ(together, 7);
  }
}

TEST_F(Mover, NobodyMovesForNoise) {
  begin(16);
  for (int round = 0; round < 20; ++round) {
    for (uint32_t a = 1; a <= 16; ++a)
      for (uint32_t b = 1; b < a; ++b) share(a, b, 10);
    act();
  }
  EXPECT_EQ(system.sets, 0);
  for (uint32_t i = 1; i <= 16; ++i) EXPECT_EQ(node_of(i), 99U);
}

TEST_F(Mover, WhoHasBoundItselfIsLeftAlone) {
  begin(16);
  system.masks[kProcess + 3] = {1};
  share_in_far_pairs(16);
  act();
  EXPECT_EQ(system.masks[kProcess + 3], CpuSet{1});
  EXPECT_EQ(mover->counts().bound, 1U);
  // And who does so later.
  system.masks[kProcess + 5] = {2};
  for (int i = 0; i < 8; ++i) {
    for (uint32_t a = 1; a <= 16; a += 2) share(a, a + 1, 200);
    act();
  }
  EXPECT_EQ(system.masks[kProcess + 5], CpuSet{2});
  mover->give_back(now);
  EXPECT_EQ(system.masks[kProcess + 5], CpuSet{2});
  EXPECT_EQ(system.masks[kProcess + 4], given);
}

TEST_F(Mover, WhoMakesThreadsKeepsAllCpusAndSoDoWhomItMakes) {
  begin(16);
  share_in_far_pairs(16);
  act();
  ASSERT_NE(node_of(7), 99U);
  system.masks[kProcess + 50] = system.masks[kProcess + 7];  // inherited
  mover->made(kProcess, kProcess + 50, kProcess + 7, now);
  EXPECT_EQ(system.masks[kProcess + 50], given);
  EXPECT_EQ(system.masks[kProcess + 7], given);
  EXPECT_EQ(mover->counts().makers, 1U);
  for (int i = 0; i < 5; ++i) {
    share_in_far_pairs(16);
    act();
  }
  EXPECT_EQ(system.masks[kProcess + 7], given);
}

/// We hear of it late: it had made another meanwhile, before it got its CPUs back.
TEST_F(Mover, AllThatWasMadeByANarrowedThreadHasAllCpus) {
  begin(16);
  share_in_far_pairs(16);
  act();
  system.masks[2000] = system.masks[kProcess + 50] = system.masks[kProcess + 7];
  mover->made(2000, 2000, kProcess + 7, now);
  mover->made(kProcess, kProcess + 50, kProcess + 7, now);
  EXPECT_EQ(system.masks[2000], given);
  EXPECT_EQ(system.masks[kProcess + 50], given);
}

TEST_F(Mover, AChildHasAllCpus) {
  begin(16);
  share_in_far_pairs(16);
  act();
  system.masks[2000] = system.masks[kProcess + 7];
  mover->made(2000, 2000, kProcess + 7, now);
  EXPECT_EQ(system.masks[2000], given);
  // One that has bound itself at once.
  system.masks[2001] = {4};
  mover->made(2001, 2001, kProcess + 8, now);
  EXPECT_EQ(system.masks[2001], CpuSet{4});
}

TEST_F(Mover, WhomNobodyHasAnnouncedIsFound) {
  begin(16);
  share_in_far_pairs(16);
  act();
  system.masks[kProcess + 60] = system.masks[kProcess + 2];
  mover->look_for_unknown(now);
  EXPECT_EQ(system.masks[kProcess + 60], given);
  EXPECT_NE(system.masks[kProcess + 2], given);
}

TEST_F(Mover, AChildThatOnlySaysHelloHasAllCpus) {
  begin(16);
  share_in_far_pairs(16);
  act();
  system.masks[3000] = system.masks[kProcess + 2];
  mover->look_at(3000);
  EXPECT_EQ(system.masks[3000], given);
  // With another mask it has bound itself.
  system.masks[3001] = {3};
  mover->look_at(3001);
  EXPECT_EQ(system.masks[3001], CpuSet{3});
}

TEST_F(Mover, AProcessThatPlacesItsThreadsGetsThemBack) {
  begin(16);
  share_in_far_pairs(16);
  act();
  mover->leave_process(kProcess, now);
  for (const auto& [thread, mask] : system.masks) EXPECT_EQ(mask, given) << thread;
  for (int i = 0; i < 5; ++i) {
    share_in_far_pairs(16);
    act();
  }
  for (const auto& [thread, mask] : system.masks) EXPECT_EQ(mask, given) << thread;
  EXPECT_FALSE(mover->has_narrowed());
}

TEST_F(Mover, ItsChildrenPlaceTheirsToo) {
  mover->saw(500, 500);
  mover->leave_process(500, now);
  system.masks[kProcess] = given;
  mover->made(kProcess, kProcess, 500, now);
  begin(16);
  share_in_far_pairs(16);
  act();
  EXPECT_EQ(system.sets, 0);
}

TEST_F(Mover, AtTheEndAllHaveWhatTheyHad) {
  begin(16);
  share_in_far_pairs(16);
  act();
  EXPECT_TRUE(mover->has_narrowed());
  mover->give_back(now);
  for (const auto& [thread, mask] : system.masks) EXPECT_EQ(mask, given) << thread;
  EXPECT_FALSE(mover->has_narrowed());
}

TEST_F(Mover, WhoEndsIsForgotten) {
  begin(16);
  share_in_far_pairs(16);
  act();
  for (uint32_t i = 1; i <= 16; ++i) {
    mover->ended(kProcess + i);
    learner->thread_ended(kProcess + i);
    system.masks.erase(kProcess + i);
  }
  EXPECT_FALSE(mover->has_narrowed());
  // Numbers come again, in another order: what the dead have shared says nothing of them.
  for (uint32_t i = 1; i <= 16; ++i) {
    system.masks[kProcess + i] = given;
    mover->made(kProcess, kProcess + i, kProcess, now);
  }
  for (int round = 0; round < 3; ++round) {
    for (uint32_t a = 1; a <= 16; a += 2) share(a, a + 1, 200);
    act();
  }
  for (uint32_t a = 1; a <= 16; a += 2) EXPECT_EQ(node_of(a), node_of(a + 1)) << a;
}

TEST_F(Mover, WhatTheKernelRefusesIsSaidAndNotTriedAgain) {
  begin(16);
  system.error = EPERM;
  for (int i = 0; i < 3; ++i) {
    share_in_far_pairs(16);
    act();
  }
  EXPECT_GT(mover->counts().refused, 0U);
  EXPECT_LE(mover->counts().refused, 16U);
  EXPECT_EQ(mover->counts().why, EPERM);
  EXPECT_EQ(mover->counts().moved, 0U);
}

/// A process that places its threads by wishes: our words are in the same file.
class PlayedProcess {
 public:
  explicit PlayedProcess(const FileDescriptor& socket) {
    const int file = base::take_wishes(socket.number(), 100'000'000);
    if (file < 0) return;
    void* memory = mmap(nullptr, sizeof(bosk_wishes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_NE(ftruncate(file, 0), 0) << "it is sealed: who maps it has it";
    close(file);
    if (memory != MAP_FAILED) words = static_cast<bosk_wishes*>(memory);
  }
  ~PlayedProcess() {
    if (words != nullptr) munmap(words, sizeof *words);
  }
  PlayedProcess(const PlayedProcess&) = delete;
  PlayedProcess& operator=(const PlayedProcess&) = delete;

  bosk_wishes* words = nullptr;
};

class Wishes : public Mover {
 protected:
  Wishes() {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    const FileDescriptor observers(pair[0]);
    const FileDescriptor processes(pair[1]);
    begin(16);
    mover->leave_process(kProcess, now);
    mover->place_by_wishes(kProcess, observers);
    process = std::make_unique<PlayedProcess>(processes);
  }
  /// Workers are the threads 1 to `workers`, and the first ones the team.
  void tell(uint32_t team, uint32_t workers) {
    for (uint32_t i = 0; i < workers; ++i) {
      // Helpers beside their members, as seats.h has them.
      const uint32_t member = i % team;
      process->words->seat[i] = {kProcess + 1 + i, member, member * workers / team + i / team};
    }
    process->words->seats = workers;
    process->words->team = team;
  }
  uint32_t node_wished(uint32_t member) const { return process->words->wish[member] / 4; }

  std::unique_ptr<PlayedProcess> process;
};

TEST_F(Wishes, OfMembersThatShareAreForTheSameNode) {
  ASSERT_NE(process->words, nullptr);
  tell(16, 16);
  const uint32_t rung = process->words->news;
  share_in_far_pairs(16);
  act();
  EXPECT_GT(process->words->news, rung);
  ASSERT_EQ(process->words->wished, 16U);
  std::map<uint32_t, int> on;
  for (uint32_t i = 0; i < 16; ++i) ++on[node_wished(i)];
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(node_wished(i), node_wished(i + 8)) << i;
  for (const auto& [node, count] : on) EXPECT_EQ(count, 4) << "node " << node;
  EXPECT_EQ(system.sets, 0) << "masks are the process's own affair";
  EXPECT_GT(mover->counts().wished, 0U);
}

TEST_F(Wishes, WhoHelpsAMemberIsOneWithIt) {
  ASSERT_NE(process->words, nullptr);
  tell(8, 16);
  // Helpers share, not the members themselves: of 0 and 4, 1 and 5, and so on.
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 4; ++i) share(9 + i, 9 + i + 4, 200);
    for (uint32_t i = 1; i <= 8; ++i) use_own(i, static_cast<uint16_t>(i - 1), 2);
    act();
  }
  ASSERT_EQ(process->words->wished, 8U);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(node_wished(i), node_wished(i + 4)) << i;
}

TEST_F(Wishes, WhoSharesWithNobodyIsToStayWhereItIs) {
  ASSERT_NE(process->words, nullptr);
  tell(16, 16);
  for (uint32_t i = 1; i <= 16; ++i) use_own(i, static_cast<uint16_t>(15 - (i - 1)));
  act();
  ASSERT_EQ(process->words->wished, 16U);
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(process->words->wish[i], i);
  EXPECT_EQ(mover->counts().wished, 0U);
  const uint32_t rung = process->words->news;
  act();
  EXPECT_EQ(process->words->news, rung) << "nothing new was seen";
}

TEST_F(Wishes, AreNoneWhereNothingIsToldOrShared) {
  ASSERT_NE(process->words, nullptr);
  share_in_far_pairs(16);
  act();
  EXPECT_EQ(process->words->wished, 0U);
  EXPECT_EQ(mover->counts().moved, 0U);
  tell(16, 16);
  process->words->seats = 5000;
  act();
  process->words->seats = 16;
  process->words->team = 17;
  share_in_far_pairs(16);
  act();
  EXPECT_EQ(process->words->wished, 0U) << "numbers that cannot be";
  mover->process_ended(kProcess);
  process->words->team = 16;
  share_in_far_pairs(16);
  act();
  EXPECT_EQ(process->words->wished, 0U);
}

TEST(ThreadMover, IsOfUseWhereThereIsAChoice) {
  EXPECT_TRUE(ThreadMover::is_any_use(*test::symmetric(4, 1, 4, 1)));
  EXPECT_TRUE(ThreadMover::is_any_use(*test::symmetric(1, 2, 4, 2)));
  EXPECT_TRUE(ThreadMover::is_any_use(*test::symmetric(4, 1, 1, 1)));
  EXPECT_FALSE(ThreadMover::is_any_use(*test::symmetric(1, 1, 4, 2)));
  EXPECT_FALSE(ThreadMover::is_any_use(*test::symmetric(1, 1, 1, 1)));
  // Caches of one CPU each give no room to balance.
  EXPECT_FALSE(ThreadMover::is_any_use(*test::symmetric(1, 4, 1, 1)));
}

TEST(KernelThreads, MasksOfOurselves) {
  KernelThreads kernel;
  const auto self = static_cast<uint32_t>(gettid());
  const CpuSet before = kernel.mask(self);
  ASSERT_FALSE(before.empty());
  EXPECT_EQ(kernel.set_mask(self, before), 0);
  EXPECT_EQ(kernel.mask(self), before);
  EXPECT_TRUE(kernel.mask(1U << 30).empty());
  EXPECT_EQ(kernel.set_mask(1U << 30, before), ESRCH);
  const std::vector<uint32_t> threads = kernel.threads_of(getpid());
  EXPECT_NE(std::find(threads.begin(), threads.end(), self), threads.end());
}

}  // namespace
}  // namespace bosk::affinity
