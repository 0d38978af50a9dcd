// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Seats of workers, and how far around them a worker is at home, on invented machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "invented_machine.h"
#include "sched/distance.h"
#include "sched/home_watch.h"
#include "sched/seats.h"
#include "sched/wishes.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using sched::HomeSample;
using sched::HomeWatch;

std::vector<std::uint32_t> seats(std::uint32_t pus, std::uint32_t team,
                                 const std::uint32_t* part_of = nullptr) {
  std::vector<std::uint32_t> tables(2 * std::size_t{pus}, topology::kNone);
  sched::assign_seats(pus, team, part_of, tables.data());
  for (std::uint32_t worker = 0; worker < pus; ++worker) {
    EXPECT_LT(tables[worker], pus);
    // Each the other's inverse: so nobody has two seats, and no seat two workers.
    EXPECT_EQ(tables[pus + tables[worker]], worker);
  }
  tables.resize(pus);
  return tables;
}

TEST(Seats, OfATeamAsLargeAsTheMachineAreInOrder) {
  for (const std::uint32_t team : {8u, 9u, 1000u})
    EXPECT_EQ(seats(8, team), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(seats(2, 2), (std::vector<std::uint32_t>{0, 1}));
}

TEST(Seats, OfASmallTeamAreSpreadWithHelpersBesideThem) {
  // Members on 0 and 4; then a helper for the first, one for the second, and so on.
  EXPECT_EQ(seats(8, 2), (std::vector<std::uint32_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(seats(7, 3), (std::vector<std::uint32_t>{0, 2, 4, 1, 3, 5, 6}));
  EXPECT_EQ(seats(4, 1), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(Seats, SayWhomTheirWorkersHelp) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t pus = 1 + random() % 200;
    const std::uint32_t team = 1 + random() % pus;
    std::vector<std::uint32_t> part_of(team);
    std::iota(part_of.begin(), part_of.end(), 0);
    std::shuffle(part_of.begin(), part_of.end(), random);
    std::vector<std::uint32_t> memory(sched::bytes_of_seats(pus) / sizeof(std::uint32_t) + 2);
    auto* made = new (memory.data()) sched::Seats{pus, team, true, nullptr};
    sched::assign_seats(pus, team, part_of.data(), reinterpret_cast<std::uint32_t*>(made + 1));
    std::vector<std::uint32_t> helpers(team);
    for (std::uint32_t worker = 0; worker < pus; ++worker) {
      const std::uint32_t member = member_of_seat(*made, made->pu_of_worker()[worker]);
      ASSERT_LT(member, team);
      ++helpers[member];
      if (worker < team) {
        ASSERT_EQ(member, worker) << pus << " PUs, " << team;
      }
    }
    for (const std::uint32_t each : helpers) {
      EXPECT_GE(each, pus / team);
      EXPECT_LE(each, (pus + team - 1) / team);
    }
  }
}

/// 2 nodes of 4 CPUs.
TEST(Wishes, AreAPermutationOfPartsWhateverTheyAre) {
  const MachinePtr owned = symmetric(2, 1, 4, 1);
  const topology::Machine& machine = *owned;
  using Parts = std::vector<std::uint32_t>;
  const auto wish = [&](const Parts& cpus, Parts part_of) {
    const auto team = static_cast<std::uint32_t>(cpus.size());
    return sched::parts_by_wish(machine, team, cpus.data(), part_of.data()) ? part_of : Parts();
  };
  EXPECT_EQ(wish({0, 2, 4, 6}, {0, 1, 2, 3}), (Parts{0, 1, 2, 3}));
  EXPECT_EQ(wish({4, 1, 7, 0}, {0, 1, 2, 3}), (Parts{2, 1, 3, 0}));
  // The same CPU: they stay as they are, beside each other.
  EXPECT_EQ(wish({0, 0, 0, 0}, {3, 1, 2, 0}), (Parts{3, 1, 2, 0}));
  EXPECT_EQ(wish({5, 0, 5, 0}, {0, 1, 2, 3}), (Parts{2, 0, 3, 1}));
  EXPECT_EQ(wish({0, 8}, {0, 1}), Parts()) << "there is no such CPU";
  EXPECT_EQ(wish({0, UINT32_MAX}, {0, 1}), Parts());
}

TEST(Seats, OfAnySizeAreAPermutationThatSpreadsMembersEvenly) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t pus = 1 + random() % 1024;
    const std::uint32_t team = 1 + random() % (pus + 3);
    const std::vector<std::uint32_t> seat = seats(pus, team);
    const std::uint32_t members = std::min(pus, team);
    for (std::uint32_t i = 0; i + 1 < members; ++i) {
      const std::uint32_t part = seat[i + 1] - seat[i];
      ASSERT_GE(part, pus / members);
      ASSERT_LE(part, pus / members + 1);
    }
    // With k whole turns of helpers everybody's part has k more workers.
    for (std::uint32_t turn = 1; (turn + 1) * members <= pus; ++turn)
      for (std::uint32_t i = 0; i < members; ++i)
        ASSERT_EQ(seat[turn * members + i], seat[i] + turn);
  }
}

TEST(Seats, ThatAreExchangedTakeTheirHelpersAlong) {
  // Member 0 goes to the third part of four PUs, and so on.
  const std::vector<std::uint32_t> parts{2, 0, 3, 1};
  EXPECT_EQ(seats(16, 4, parts.data()),
            (std::vector<std::uint32_t>{8, 0, 12, 4, 9, 1, 13, 5, 10, 2, 14, 6, 11, 3, 15, 7}));
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t pus = 1 + random() % 1024;
    const std::uint32_t team = 1 + random() % pus;
    std::vector<std::uint32_t> part_of(team);
    std::iota(part_of.begin(), part_of.end(), 0);
    const std::vector<std::uint32_t> in_order = seats(pus, team, part_of.data());
    ASSERT_EQ(in_order, seats(pus, team));
    std::shuffle(part_of.begin(), part_of.end(), random);
    const std::vector<std::uint32_t> seat = seats(pus, team, part_of.data());
    for (std::uint32_t i = 0; i < team; ++i) {
      ASSERT_EQ(sched::part_of_seat(pus, team, seat[i]), part_of[i]);
      ASSERT_EQ(seat[i], in_order[part_of[i]]);
    }
    for (std::uint32_t turn = 1; (turn + 1) * team <= pus; ++turn)
      for (std::uint32_t i = 0; i < team; ++i) ASSERT_EQ(seat[turn * team + i], seat[i] + turn);
  }
}

TEST(WorkerOrder, GoesBySeats) {
  const MachinePtr machine = symmetric(4, 1, 4, 1);
  std::vector<std::uint32_t> tables(32);
  sched::assign_seats(16, 4, nullptr, tables.data());
  const auto all = [&](std::uint32_t pu, std::uint32_t count) {
    sched::WorkerOrder order(*machine, machine->pu(pu), count, tables.data() + 16);
    std::vector<std::uint32_t> workers;
    for (std::uint32_t w; (w = order.next()) != sched::WorkerOrder::kEnd && workers.size() < 99;)
      workers.push_back(w);
    return workers;
  };
  // Node 1 has PUs 4 to 7, and on them the outer member 1 and the helpers 5, 9 and 13.
  std::vector<std::uint32_t> order = all(4, 16);
  EXPECT_EQ(std::vector(order.begin(), order.begin() + 4),
            (std::vector<std::uint32_t>{1, 5, 9, 13}));
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < 16; ++i) ASSERT_EQ(order[i], i);
  // Workers that have not been made are not named.
  EXPECT_EQ(all(4, 6), (std::vector<std::uint32_t>{1, 5, 2, 3, 0, 4}));
  // Those that have no seat go with the PUs of their numbers modulo 16.
  order = all(8, 18);
  EXPECT_EQ(order.size(), 18u);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(std::unique(order.begin(), order.end()), order.end());
}

// ---- Homes

constexpr std::uint64_t kPeriod = 20'000;

constexpr auto nobody = [](const Domain&) { return false; };

/// A worker whose looks come regularly, with a kernel that does what the test says.
struct Watched {
  explicit Watched(const Machine& m, std::uint32_t seat) : machine(m), watch(seat), pu(seat) {}

  /// One look; it goes where it is sent.
  template <typename Call = decltype(nobody)>
  bool look(std::uint64_t waited_since = 0, Call call = nobody) {
    now += kPeriod;
    waited += waited_since;
    const bool sent =
        watch.look(machine, {now, waited, pu, std::exchange(is_called, false)}, keeps_node, call);
    if (sent) {
      EXPECT_FALSE(watch.home(machine).contains_pu(pu)) << "sent where it is";
      pu = watch.home(machine).first_pu;
      ++moves;
    }
    return sent;
  }

  const Machine& machine;
  HomeWatch watch;
  std::uint32_t pu;
  std::uint64_t now = 1'000'000;
  std::uint64_t waited = 123'456;  // what it waited for before it was looked after does not count
  int moves = 0;
  bool keeps_node = false;
  bool is_called = false;
};

TEST(HomeWatch, GoesToItsSeatAtOnceAndStaysThere) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  Watched w(*machine, 5);
  w.pu = 12;
  EXPECT_TRUE(w.look());
  EXPECT_EQ(w.pu, 5u);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(w.look(i % 3));
  EXPECT_EQ(w.watch.level(), 0u);
}

TEST(HomeWatch, GoesBackWhenItWasMovedAfterALongTimeInPeace) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  Watched w(*machine, 5);
  for (int i = 0; i < 100; ++i) w.look();
  w.pu = 15;
  EXPECT_TRUE(w.look());
  EXPECT_EQ(w.watch.level(), 0u);
  // On a CPU that the machine does not know (it came later): not at home either.
  for (int i = 0; i < 100; ++i) w.look();
  w.pu = topology::kNone;
  EXPECT_TRUE(w.look());
}

TEST(HomeWatch, WidensLevelByLevelWhileItWaitsAndNoFurtherThanTheMachine) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  Watched w(*machine, 5);
  w.look();
  const std::uint32_t levels = machine->pu(5).depth;
  ASSERT_EQ(levels, 4u);
  for (std::uint32_t level = 1; level <= levels + 3; ++level) {
    EXPECT_FALSE(w.look(kPeriod / 2));
    const Domain& home = w.watch.home(*machine);
    EXPECT_TRUE(home.contains_pu(5));
    EXPECT_EQ(home.height, std::min(level, levels));
  }
  EXPECT_EQ(w.watch.home(*machine).parent, nullptr);
  // At home everywhere: it is left alone wherever it is.
  w.pu = 15;
  EXPECT_FALSE(w.look());
}

TEST(HomeWatch, DoesNotMindShortWaits) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  Watched w(*machine, 5);
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(w.look(kPeriod / 11));  // 9 % of the time
  EXPECT_EQ(w.watch.level(), 0u);
  EXPECT_FALSE(w.look(kPeriod / 9));
  EXPECT_EQ(w.watch.level(), 1u);
}

TEST(HomeWatch, AStrangersWaitsAreNotItsOwn) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  Watched w(*machine, 5);
  for (int i = 0; i < 5; ++i) w.look();
  // Another kernel thread plays the worker, which has waited for a minute in its life.
  w.waited += 60'000'000;
  w.watch.forget_waits();
  EXPECT_FALSE(w.look());
  EXPECT_EQ(w.watch.level(), 0u);
  // Nobody looked for a second: what was waited for then counts by that second, not by the last look.
  for (int i = 0; i < 50; ++i) {
    w.now += kPeriod;
    EXPECT_FALSE(w.watch.look(*machine, {w.now, HomeSample::kUnknown, w.pu}, false, nobody));
  }
  EXPECT_FALSE(w.look(kPeriod / 2));
  EXPECT_EQ(w.watch.level(), 0u);
}

TEST(HomeWatch, NarrowsAgainWhenTheContentionEnds) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  Watched w(*machine, 5);
  w.look();
  for (int i = 0; i < 4; ++i) w.look(kPeriod);
  ASSERT_EQ(w.watch.level(), 4u);
  w.pu = 15;
  const std::uint64_t patience = w.watch.patience_us();
  std::uint64_t looks = 0;
  while (w.watch.level() > 0 && looks < 10'000) {
    const std::uint32_t before = w.watch.level();
    w.look();
    ASSERT_LE(before - w.watch.level(), 1u) << "more than one level at once";
    ++looks;
  }
  EXPECT_EQ(w.watch.level(), 0u);
  EXPECT_EQ(w.pu, 5u);
  EXPECT_GE(looks * kPeriod, 4 * patience);
  EXPECT_LE(looks * kPeriod, 4 * (patience + kPeriod));
  // And forgets, in time.
  for (int i = 0; i < 3000; ++i) w.look();
  EXPECT_EQ(w.watch.patience_us(), HomeWatch::kShortestPatienceUs);
}

/// Somebody computes on the seat all the time, bound to it. The kernel moves the worker away within one
/// look, to `refuge`, each time that it comes.
TEST(HomeWatch, LearnsThatItsSeatIsTaken) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  for (const bool waits : {false, true}) {
    Watched w(*machine, 5);
    w.look();
    const int looks = 60'000'000 / static_cast<int>(kPeriod);  // a minute
    int shared = 0;
    for (int i = 0; i < looks; ++i) {
      const bool on_seat = w.pu == 5;
      shared += on_seat;
      if (on_seat) w.pu = 4;  // the kernel's answer
      w.look(on_seat && waits ? kPeriod / 4 : 0);
    }
    // Each try costs a look at most, and they get rarer: 0.1 s, 0.2, … 12.8 s.
    EXPECT_LE(shared, 16) << waits;
    EXPECT_LE(w.moves, 16) << waits;
    EXPECT_GE(w.moves, 4) << "it never tries again";
    EXPECT_TRUE(machine->domain_of_pu(5, Kind::kCore)->contains_pu(w.pu));
    // The stranger goes: the worker is on its seat again after its patience.
    for (int i = 0; i < 2 * 12'800'000 / static_cast<int>(kPeriod); ++i) w.look();
    EXPECT_EQ(w.pu, 5u);
    EXPECT_EQ(w.watch.level(), 0u);
  }
}

/// Workers of one pool, and a kernel that lets all on a PU run in turn, and takes one that waits to an idle PU where there is one.
struct Colleagues {
  Colleagues(const MachinePtr& m, std::uint32_t seed) : machine(*m), random(seed) {
    workers.reserve(machine.n_pus);
    for (std::uint32_t pu = 0; pu < machine.n_pus; ++pu) workers.emplace_back(machine, pu);
  }

  bool call(const Domain& domain) {
    bool any = false;
    for (Watched& other : workers)
      if (domain.contains_pu(other.pu) && !domain.contains_pu(other.watch.seat()))
        any = other.is_called = true;
    return any;
  }

  std::vector<std::uint32_t> crowds() const {
    std::vector<std::uint32_t> on(machine.n_pus);
    for (const Watched& w : workers) ++on[w.pu];
    for (const std::uint32_t pu : strangers) ++on[pu];
    return on;
  }

  /// 20 ms: looks in any order, since the last of which everybody has waited.
  void pass(bool may_call = true) {
    std::vector<std::uint32_t> on = crowds();
    std::vector<std::size_t> order(workers.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      Watched* w = &workers[i];
      const std::uint32_t before = w->pu;
      const std::uint64_t waited = kPeriod - kPeriod / std::max(on[before], 1u);
      if (waited > 0 && random() % 2 == 0) take_to_idle(w, on);
      --on[w->pu];
      w->look(waited, [&](const Domain& domain) { return may_call && call(domain); });
      ++on[w->pu];
    }
  }

  void take_to_idle(Watched* w, std::vector<std::uint32_t>& on) {
    const std::uint32_t first = random() % machine.n_pus;
    for (std::uint32_t i = 0; i < machine.n_pus; ++i) {
      const std::uint32_t pu = (first + i) % machine.n_pus;
      if (on[pu] != 0) continue;
      --on[w->pu];
      ++on[w->pu = pu];
      return;
    }
  }
  std::uint32_t at_home() const {
    return static_cast<std::uint32_t>(std::count_if(
        workers.begin(), workers.end(), [](const Watched& w) { return w.pu == w.watch.seat(); }));
  }
  /// Each is where another one has its seat, and has found it taken for a while.
  void begin_elsewhere() {
    for (Watched& w : workers) {
      w.look();
      for (std::uint32_t i = random() % 5; i > 0; --i) w.look(kPeriod / 2);
    }
    std::vector<std::uint32_t> pus(machine.n_pus);
    std::iota(pus.begin(), pus.end(), 0);
    std::shuffle(pus.begin(), pus.end(), random);
    for (std::uint32_t i = 0; i < machine.n_pus; ++i) workers[i].pu = pus[i];
  }

  const Machine& machine;
  std::mt19937 random;
  std::vector<Watched> workers;
  std::vector<std::uint32_t> strangers;  // the PUs of those who may go nowhere else
};

TEST(HomeWatch, ColleaguesOnEachOthersSeatsAllComeHome) {
  for (const auto& shape : {std::array{4u, 1u, 4u, 1u}, {2u, 2u, 2u, 2u}, {64u, 1u, 16u, 1u}}) {
    const MachinePtr machine = symmetric(shape[0], shape[1], shape[2], shape[3]);
    std::uint32_t without = 0;
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      Colleagues with(machine, seed);
      with.begin_elsewhere();
      for (int i = 0; i < 800; ++i) with.pass();  // 16 s
      EXPECT_EQ(with.at_home(), machine->n_pus) << "seed " << seed;
      for (const Watched& w : with.workers) EXPECT_LE(w.moves, 40) << "seed " << seed;
      Colleagues alone(machine, seed);
      alone.begin_elsewhere();
      for (int i = 0; i < 800; ++i) alone.pass(false);
      without += alone.at_home();
    }
    EXPECT_LT(without, 18 * machine->n_pus) << "they need not call each other";
  }
}

TEST(HomeWatch, CallsEndWhereStrangersAreEverywhere) {
  const MachinePtr machine = symmetric(4, 1, 4, 1);
  Colleagues some(machine, 5);
  some.begin_elsewhere();
  for (std::uint32_t pu = 0; pu < 16; ++pu) some.strangers.push_back(pu);
  for (int i = 0; i < 3000; ++i) some.pass();
  for (Watched& w : some.workers) w.moves = 0;
  for (int i = 0; i < 3000; ++i) {  // a minute
    some.pass();
    for (Watched& w : some.workers)
      if (some.random() % 8 == 0) w.pu = some.random() % 16;
  }
  for (const Watched& w : some.workers) EXPECT_LE(w.moves, 60);
}

/// Two programs on one machine, each with a worker for each PU: everybody waits half of the time wherever
/// it is, and is moved about. All end up with the whole machine as their home, and are hardly ever moved.
TEST(HomeWatch, LeavesAFullMachineToTheKernel) {
  const MachinePtr machine = symmetric(4, 1, 4, 1);
  std::mt19937 random(3);
  std::vector<Watched> workers;
  workers.reserve(32);
  for (std::uint32_t i = 0; i < 32; ++i) workers.emplace_back(*machine, i % 16);
  for (int look = 0; look < 3000; ++look)
    for (Watched& w : workers) {
      w.look(kPeriod / 2);
      if (random() % 8 == 0) w.pu = random() % 16;
    }
  for (const Watched& w : workers) {
    EXPECT_EQ(w.watch.home(*machine).parent, nullptr);
    EXPECT_LE(w.moves, 2);
  }
}

/// Its memory is there.
TEST(HomeWatch, DoesNotLeaveItsNodeWhereThatIsKept) {
  const MachinePtr machine = symmetric(2, 2, 2, 2);
  Watched w(*machine, 5);
  w.keeps_node = true;
  for (int i = 0; i < 20; ++i) w.look(kPeriod / 2);
  // Somebody is in the way, but not on other nodes: there everything would be far away.
  EXPECT_EQ(w.watch.home(*machine).first_pu, 0u);
  EXPECT_EQ(w.watch.home(*machine).n_pus(), 8u);
  for (const std::uint32_t pu : {15u, 8u, topology::kNone}) {
    w.pu = pu;
    EXPECT_TRUE(w.look(kPeriod / 2)) << pu;
    EXPECT_LT(w.pu, 8u);
  }
  // On the node the kernel decides, as on the machine elsewhere.
  w.pu = 7;
  EXPECT_FALSE(w.look(kPeriod / 2));
  // And it narrows as any home does.
  for (int i = 0; i < 3000; ++i) w.look();
  EXPECT_EQ(w.watch.level(), 0u);
  EXPECT_EQ(w.pu, 5u);
}

TEST(HomeWatch, ComesBackFromEverywhereOnceItsNodeIsKept) {
  const MachinePtr machine = symmetric(4, 1, 4, 1);
  Watched w(*machine, 5);
  for (int i = 0; i < 20; ++i) w.look(kPeriod / 2);
  ASSERT_EQ(w.watch.home(*machine).parent, nullptr);
  w.pu = 15;
  EXPECT_FALSE(w.look());
  w.keeps_node = true;
  EXPECT_TRUE(w.look());
  EXPECT_EQ(machine->node_of_pu(w.pu), machine->node_of_pu(5));
}

TEST(HomeWatch, NeverLeavesItsMachineOnAnyMachine) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const MachinePtr machine = any_machine(seed);
    std::mt19937 random(seed);
    Watched w(*machine, random() % machine->n_pus);
    for (int i = 0; i < 500; ++i) {
      if (random() % 4 == 0) w.pu = random() % machine->n_pus;
      w.look(random() % 3 == 0 ? random() % kPeriod : 0);
      const Domain& home = w.watch.home(*machine);
      ASSERT_TRUE(home.contains_pu(w.watch.seat()));
      ASSERT_LE(w.watch.patience_us(), HomeWatch::kLongestPatienceUs);
      ASSERT_GE(w.watch.patience_us(), HomeWatch::kShortestPatienceUs);
      if (home.parent == nullptr) {
        ASSERT_FALSE(w.watch.look(*machine, {++w.now, w.waited, w.pu}, false, nobody));
      }
    }
  }
}

}  // namespace
