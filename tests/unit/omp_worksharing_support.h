// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members of a team without a region, so that a test decides who does what when.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "omp/loop.h"
#include "omp/team.h"
#include "omp/workshare.h"

namespace bosk::omp {

/// A team and one record per member. The worksharing code sees nothing else of a region.
struct FakeTeam {
  explicit FakeTeam(uint32_t size) : team(new Team), members(size) {
    team->size = size;
    team->level = 1;
    icvs.run_sched = kScheduleDynamic;
    icvs.run_sched_chunk = 1;
    begin();
  }
  ~FakeTeam() { workshare_destroy(team.get()); }

  /// What the region's start does.
  void begin() {
    for (uint32_t i = 0; i < members.size(); ++i) {
      members[i].reset(new ImplicitTask);
      members[i]->team = team.get();
      members[i]->icvs = &icvs;
      members[i]->is_implicit = true;
      members[i]->index = i;
    }
  }
  /// What the region's end does, and the next one's start.
  void end() {
    if (team->workshares.used) workshare_reset(team.get());
    begin();
  }

  /// Runs body(member) on a kernel thread per member.
  template <typename Body>
  void run(Body body) {
    std::vector<std::thread> threads;
    for (auto& member : members) threads.emplace_back([&body, &member] { body(member.get()); });
    for (std::thread& thread : threads) thread.join();
  }

  uint32_t objects() const {
    uint32_t count = 0;
    for (WorkShare* share = team->workshares.all; share != nullptr; share = share->next_of_team)
      ++count;
    return count;
  }

  std::unique_ptr<Team> team;
  std::vector<std::unique_ptr<ImplicitTask>> members;
  DataIcvs icvs{};
};

}  // namespace bosk::omp
