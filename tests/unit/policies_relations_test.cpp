// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Relations of bubbles: each is obeyed under every policy.
#include "policies/relations.h"

#include <gtest/gtest.h>

#include <set>

#include "policy_simulation.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using sched::Relation;

const char* const kPolicies[] = {"null",    "burst:machine", "burst", "spread", "spread:100000",
                                 "explode", "steal",         "cache", "gang"};

/// Runs `related` bubbles that `fill` makes, among others, under a policy; `see` gets, for every stretch
/// of time and related bubble, its threads that run and where.
template <class Fill, class See>
void run_related(const char* policy, MachinePtr machine, Relation relation, int bubbles,
                 Fill&& fill, See&& see) {
  SCOPED_TRACE(policy);
  World world(std::move(machine), policy);
  Simulation simulation(world, 50);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> related;
  for (int i = 0; i < bubbles; ++i) {
    simulation.team(&root, 3, 120);  // one without a relation beside each
    related.push_back(&simulation.bubble(&root));
    related.back()->relation = relation;
    fill(simulation, *related.back());
  }
  const std::uint32_t pus = world.machine().n_pus;
  std::uint64_t looks = 0;
  simulation.look = [&](std::uint64_t) {
    for (sched::NestedBubble* bubble : related) {
      std::vector<std::pair<const SimThread*, std::uint32_t>> running;
      for (std::uint32_t pu = 0; pu < pus; ++pu)
        if (simulation.on(pu) != nullptr && simulation.on(pu)->bubble == bubble)
          running.push_back({simulation.on(pu), pu});
      looks += !running.empty();
      see(world.machine(), bubble, running);
    }
  };
  world.engine().wake(root, 0);
  simulation.run();
  EXPECT_NE(looks, 0u);
}

TEST(Relations, DataSharingIsKeptUnderOneCache) {
  for (const char* policy : kPolicies) {
    std::map<const void*, std::set<std::uint32_t>> caches;
    run_related(
        policy, symmetric(2, 2, 2, 2), Relation::kDataSharing, 4,
        [](Simulation& s, sched::NestedBubble& b) {
          for (int i = 0; i < 4; ++i) s.thread(b, 300);
        },
        [&](const Machine& m, const sched::NestedBubble* b, const auto& running) {
          for (const auto& [thread, pu] : running)
            caches[b].insert(m.domain_of_pu(pu, Kind::kL3)->id);
          EXPECT_LE(caches[b].size(), 1u) << policy;
          caches[b].clear();
        });
    EXPECT_EQ(caches.size(), 4u) << policy;
  }
}

TEST(Relations, DataSharingThatNeedsMoreThanACacheIsKeptInANode) {
  for (const char* policy : kPolicies) {
    std::map<const void*, std::set<std::uint32_t>> nodes;
    run_related(
        policy, symmetric(2, 2, 2, 2), Relation::kDataSharing, 2,
        [](Simulation& s, sched::NestedBubble& b) {
          for (int i = 0; i < 7; ++i) s.thread(b, 300);
        },
        [&](const Machine& m, const sched::NestedBubble* b, const auto& running) {
          for (const auto& [thread, pu] : running)
            nodes[b].insert(m.domain_of_pu(pu, Kind::kNode)->id);
          EXPECT_LE(nodes[b].size(), 1u) << policy;
          nodes[b].clear();
        });
  }
}

TEST(Relations, CollectiveIsCloseAndEvenOverItsPus) {
  for (const char* policy : kPolicies) {
    std::map<const void*, std::set<std::uint32_t>> nodes;
    std::map<const SimThread*, std::uint32_t> home;
    run_related(
        policy, symmetric(2, 2, 2, 2), Relation::kCollective, 2,
        [](Simulation& s, sched::NestedBubble& b) {
          for (int i = 0; i < 8; ++i) s.thread(b, 1000);
        },
        [&](const Machine& m, const sched::NestedBubble* b, const auto& running) {
          std::set<std::uint32_t> pus;
          for (const auto& [thread, pu] : running) {
            nodes[b].insert(m.domain_of_pu(pu, Kind::kNode)->id);
            pus.insert(pu);
            home.emplace(thread, thread->booked_domain);
          }
          EXPECT_EQ(pus.size(), running.size());
          EXPECT_LE(nodes[b].size(), 1u) << policy;
          nodes[b].clear();
        });
    std::map<std::uint32_t, int> per_pu;
    for (const auto& [thread, domain] : home) ++per_pu[domain];
    for (const auto& [domain, n] : per_pu) EXPECT_LE(n, 2) << policy;
    EXPECT_GE(per_pu.size(), 8u) << policy;
  }
}

TEST(Relations, SmtSymbiosisIsOnThePusOfOneCore) {
  for (const char* policy : kPolicies) {
    std::map<const void*, std::set<std::uint32_t>> cores;
    std::map<const void*, std::set<std::uint32_t>> pus;
    run_related(
        policy, symmetric(2, 2, 2, 2), Relation::kSmtSymbiosis, 4,
        [](Simulation& s, sched::NestedBubble& b) {
          for (int i = 0; i < 2; ++i) s.thread(b, 300);
        },
        [&](const Machine& m, const sched::NestedBubble* b, const auto& running) {
          for (const auto& [thread, pu] : running) {
            cores[b].insert(m.domain_of_pu(pu, Kind::kCore)->id);
            pus[b].insert(pu);
          }
          EXPECT_LE(cores[b].size(), 1u) << policy;
          cores[b].clear();
        });
    EXPECT_EQ(cores.size(), 4u) << policy;
    for (const auto& [bubble, where] : pus) EXPECT_GE(where.size(), 2u) << policy;
  }
}

TEST(Relations, AGangIsNeverPartlyRun) {
  for (const char* policy : kPolicies) {
    std::uint64_t partly = 0;
    std::uint64_t wholly = 0;
    // Gangs only: other threads have their slices too, and may be on a PU when the gang comes.
    World world(symmetric(2, 1, 2, 2), policy);
    Simulation simulation(world, 50);
    std::vector<sched::NestedBubble*> gangs;
    for (int i = 0; i < 5; ++i) {
      gangs.push_back(&simulation.team(nullptr, 3 + i % 3, 330));
      gangs.back()->relation = Relation::kGang;
    }
    simulation.look = [&](std::uint64_t time) {
      std::map<const void*, std::uint32_t> running;
      for (std::uint32_t pu = 0; pu < 8; ++pu)
        if (simulation.on(pu) != nullptr) ++running[simulation.on(pu)->bubble];
      for (const sched::NestedBubble* gang : gangs) {
        if (running[gang] == 0) continue;
        (running[gang] == gang->member_count ? wholly : partly) += time;
      }
    };
    for (sched::NestedBubble* gang : gangs) world.engine().wake(*gang, 0);
    simulation.run();
    EXPECT_EQ(partly, 0u) << policy;
    EXPECT_NE(wholly, 0u) << policy;
  }
}

TEST(Relations, AGangInsideOfOtherBubblesIsNotTornApart) {
  for (const char* policy : kPolicies) {
    World world(symmetric(2, 1, 2, 2), policy);
    Simulation simulation(world, 50);
    sched::NestedBubble& root = simulation.bubble(nullptr);
    std::vector<sched::NestedBubble*> gangs;
    for (int i = 0; i < 4; ++i) {
      gangs.push_back(&simulation.team(&root, 4, 200));
      gangs.back()->relation = Relation::kGang;
    }
    std::uint64_t partly = 0;
    simulation.look = [&](std::uint64_t time) {
      std::map<const void*, std::uint32_t> running;
      for (std::uint32_t pu = 0; pu < 8; ++pu)
        if (simulation.on(pu) != nullptr) ++running[simulation.on(pu)->bubble];
      for (const sched::NestedBubble* gang : gangs) partly += running[gang] % 4 != 0 ? time : 0;
    };
    world.engine().wake(root, 0);
    simulation.run();
    EXPECT_EQ(partly, 0u) << policy;
  }
}

TEST(Relations, ASequenceRunsOneAfterAnotherInOnePlace) {
  for (const char* policy : kPolicies) {
    std::map<const void*, std::vector<std::uint32_t>> order;
    std::map<const void*, std::set<std::uint32_t>> pus;
    run_related(
        policy, symmetric(2, 1, 2, 2), Relation::kSequence, 3,
        [](Simulation& s, sched::NestedBubble& b) {
          for (int i = 0; i < 5; ++i) s.thread(b, 70);
        },
        [&](const Machine&, const sched::NestedBubble* b, const auto& running) {
          EXPECT_LE(running.size(), 1u) << policy;
          for (const auto& [thread, pu] : running) {
            if (order[b].empty() || order[b].back() != thread->number)
              order[b].push_back(thread->number);
            pus[b].insert(pu);
          }
        });
    EXPECT_EQ(order.size(), 3u) << policy;
    for (const auto& [bubble, threads] : order) {
      ASSERT_EQ(threads.size(), 5u) << policy;  // preempted ones went on before the next
      EXPECT_TRUE(std::is_sorted(threads.begin(), threads.end())) << policy;
      EXPECT_EQ(pus[bubble].size(), 1u) << policy;
    }
  }
}

TEST(Relations, MemoryBoundThreadsShareCoresWithComputeBoundOnes) {
  for (const bool told : {false, true}) {
    for (const char* policy : kPolicies) {
      std::map<const SimThread*, std::uint32_t> core;
      std::map<const SimThread*, bool> memory_bound;
      run_related(
          policy, symmetric(2, 1, 4, 2), Relation::kMemoryBesideCompute, 2,
          [&](Simulation& s, sched::NestedBubble& b) {
            for (int i = 0; i < 8; ++i) {
              SimThread& thread = s.threads().emplace_back();
              thread.work = 300;
              // Of whom nobody told, the first half counts as bound by memory.
              const bool memory = told ? i % 4 >= 2 : i < 4;
              if (told) thread.demand = memory ? sched::Demand::kMemory : sched::Demand::kCompute;
              memory_bound[&thread] = memory;
              sched::insert(b, thread);
            }
          },
          [&](const Machine& m, const sched::NestedBubble* b, const auto& running) {
            if (running.empty()) return;
            // As they are laid out first; what is left of them later may be pulled elsewhere.
            for (const sched::TreeEntity* at = b->first_member; at != nullptr; at = at->next_member)
              core.emplace(
                  static_cast<const SimThread*>(at),
                  m.domain_of_pu(m.domain_array[at->booked_domain].first_pu, Kind::kCore)->id);
          });
      std::map<std::pair<std::uint32_t, const void*>, int> excess;
      for (const auto& [thread, where] : core)
        excess[{where, nullptr}] += memory_bound[thread] ? 1 : -1;
      EXPECT_EQ(core.size(), 16u) << policy;
      for (const auto& [where, n] : excess) EXPECT_EQ(n, 0) << policy << " core " << where.first;
    }
  }
}

TEST(Relations, FewThreadsOfTwoKindsShareTheSmallestCache) {
  const MachinePtr machine = symmetric(1, 2, 2, 1);
  for (const std::uint32_t memory : {1u, 2u, 3u}) {
    policies::EntityView view[5] = {};
    view[0].kind = sched::EntityKind::kBubble;
    view[0].relation = Relation::kMemoryBesideCompute;
    view[0].first_child = 1;
    view[0].n_children = view[0].width = view[0].pieces = 4;
    for (std::uint32_t i = 1; i < 5; ++i) {
      view[i].width = view[i].pieces = 1;
      view[i].demand = i <= memory ? sched::Demand::kMemory : sched::Demand::kCompute;
    }
    policies::PlacementList answer;
    ASSERT_TRUE(policies::relations::lay_out(*machine, {view, 5, 1}, 0, &answer));
    ASSERT_EQ(answer.size(), 4u);
    std::uint32_t in_cache[2] = {0, 0};
    for (std::uint32_t i = 0; i < 4; ++i)
      if (view[answer[i].entity].demand == sched::Demand::kMemory)
        ++in_cache[machine
                       ->domain_of_pu(machine->domain_array[answer[i].domain].first_pu, Kind::kL3)
                       ->index];
    EXPECT_EQ(in_cache[0] + in_cache[1], memory);
    EXPECT_LE(in_cache[0], (memory + 1) / 2);
    EXPECT_LE(in_cache[1], (memory + 1) / 2);
    answer.release();
  }
}

TEST(Relations, AreNotBrokenByThoseWhoSteal) {
  // Everything in one node's bubble; the PUs of the others are idle and steal what they may.
  for (const char* policy : {"steal", "cache"}) {
    World world(symmetric(4, 1, 2, 2), policy);
    Simulation simulation(world, 20);
    std::vector<sched::NestedBubble*> pairs;
    sched::NestedBubble& root = simulation.bubble(nullptr);
    for (int i = 0; i < 8; ++i) {
      pairs.push_back(&simulation.team(&root, 2, 100 + 60 * i));
      pairs.back()->relation = Relation::kSmtSymbiosis;
    }
    std::uint64_t apart = 0;
    simulation.look = [&](std::uint64_t time) {
      std::map<const void*, std::set<std::uint32_t>> cores;
      for (std::uint32_t pu = 0; pu < 16; ++pu)
        if (simulation.on(pu) != nullptr) cores[simulation.on(pu)->bubble].insert(pu / 2);
      for (const auto& [bubble, where] : cores) apart += where.size() > 1 ? time : 0;
    };
    world.engine().wake(root, 0);
    simulation.run();
    EXPECT_EQ(apart, 0u) << policy;
  }
}

TEST(Relations, ThingsAreFoundOnceOnAnyMachine) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    for (const char* policy : kPolicies) {
      SCOPED_TRACE(testing::Message() << policy << ", seed " << seed);
      MachinePtr machine = any_machine(seed);
      if (machine->n_pus > 200) continue;
      World world(std::move(machine), policy);
      Simulation simulation(world, 40);
      std::mt19937 random(seed);
      simulation.bubble(nullptr);
      for (std::uint32_t i = 1; i < 20; ++i) {
        sched::NestedBubble& b = simulation.bubble(&simulation.bubbles()[random() % i]);
        b.relation = static_cast<Relation>(random() % sched::kRelations);
        b.priority = static_cast<std::int32_t>(random() % 3);
      }
      for (int i = 0; i < 60; ++i) {
        // One after the other: the order of arguments is the compiler's.
        sched::NestedBubble& around = simulation.bubbles()[random() % 20];
        simulation.thread(around, 1 + random() % 100);
      }
      world.engine().wake(simulation.bubbles()[0], 0);
      simulation.run();
    }
  }
}

}  // namespace
