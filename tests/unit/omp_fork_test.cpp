// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A forked child is alone: locks that others held in its parent are free there, and nobody sleeps.
#include <gtest/gtest.h>

#include <string>

#include "in_child.h"
#include "omp_task_support.h"

namespace bosk::omp {
namespace {

testing::ChildResult fork_inside(Team* (*which)(Team*)) {
  return testing::in_child({}, [&]() -> std::string {
    std::string found = "the child did not answer";
    region(2, [&](uint32_t outer) {
      barrier();
      if (outer != 0) return;
      Team* const outer_team = current_member()->team;
      region(2, [&](uint32_t inner) {
        barrier();
        if (inner != 0) return;
        Team* team = which(current_member()->team);
        EXPECT_EQ(parent_team(current_member()->team), outer_team);
        // As if another member were in the middle of queueing a task, and one asleep.
        team->tasks.lock.lock();
        team->tasks.sleepers.store(1, std::memory_order_relaxed);
        auto* nobody = reinterpret_cast<MemberQueue*>(&found);
        team->tasks.first_sleeper = nobody;
        const pid_t child = fork();
        if (child == 0) {
          const bool is_free = team->tasks.lock.try_lock();
          const bool sleeps = team->tasks.sleepers.load(std::memory_order_relaxed) != 0 ||
                              team->tasks.first_sleeper != nullptr;
          _exit(!is_free ? 10 : sleeps ? 11 : 12);
        }
        team->tasks.first_sleeper = nullptr;
        team->tasks.sleepers.store(0, std::memory_order_relaxed);
        team->tasks.lock.unlock();
        int status = 0;
        if (waitpid(child, &status, 0) == child && WIFEXITED(status))
          found = std::to_string(WEXITSTATUS(status));
      });
    });
    return found;
  });
}

TEST(Fork, TheTeamsTaskLockIsFreeInTheChild) {
  const auto result = fork_inside([](Team* team) { return team; });
  EXPECT_EQ(result.output, "12") << "10: it is held, 11: somebody sleeps";
}

TEST(Fork, SoAreThoseOfTheTeamsAround) {
  const auto result = fork_inside([](Team* team) { return parent_team(team); });
  EXPECT_EQ(result.output, "12") << "10: it is held, 11: somebody sleeps";
}

}  // namespace
}  // namespace bosk::omp
