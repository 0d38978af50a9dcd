// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of OpenMP teams and members: who owns it, what placing gets to see, what follows members that move.
#include <bosk/error.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/next_touch_setting.h"
#include "in_child.h"
#include "locality/decider.h"
#include "memory/costs.h"
#include "memory/manager.h"
#include "memory/next_touch/next_touch.h"
#include "omp/follow_memory.h"
#include "omp/machine_aside.h"
#include "omp/placing.h"
#include "omp/team.h"
#include "omp/team_memory.h"
#include "policies/policy.h"

namespace bosk::omp {
namespace {

using testing::in_child;

template <typename Body>
void region(uint32_t size, Body body) {
  parallel([](void* data) { (*static_cast<Body*>(data))(current_member()); }, &body, size, 0);
}

const testing::Variables kFourNodes = {{"BOSK_SYNTHETIC", "node:4 core:4 pu:1"},
                                       {"BOSK_WORKERS", "16"},
                                       {"OMP_MAX_ACTIVE_LEVELS", "9"}};

constexpr uint8_t kBoth = memory::kReads | memory::kWrites;
constexpr size_t kPages = 4;
constexpr size_t kBytes = kPages * 4096;

/// Pages of which the books say that they lie on a node: the kernel cannot, of a machine that is invented.
char* pages_on(uint32_t node, memory::Origin origin = memory::Origin::kForeign) {
  memory::AreaTable* areas = memory::start(*read_machine_aside());
  void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  std::vector<uint64_t> on(areas->nodes().count());
  on[node] = kBytes;
  memory::NewArea area{reinterpret_cast<uintptr_t>(at), kBytes, origin};
  area.bytes_on = on.data();
  if (areas->add(area) != BOSK_OK) abort();
  return static_cast<char*>(at);
}

uintptr_t number(const void* at) { return reinterpret_cast<uintptr_t>(at); }

int attach(Addressee to, const char* at, uint32_t times = topology::kNone) {
  return attach_memory(current_thread(), to, number(at), kBytes, kBoth, times);
}

/// "0 16384 0 0" of an addressee.
std::string footprint(Addressee of) {
  uint64_t bytes[4];
  std::string text;
  if (memory_footprint(current_thread(), of, bytes, 4) != 4) return "?";
  for (uint64_t n : bytes) text += (text.empty() ? "" : " ") + std::to_string(n / kBytes);
  return text;
}

uint64_t marked_at(const char* at) {
  memory::NextTouchState state;
  return memory::next_touch_query(at, kBytes, &state) == 0 ? state.marked : UINT64_MAX;
}

// ---- owners

TEST(TeamMemory, StaysForTheNextRegionsOfTheSameOpener) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    const char* whole = pages_on(1);
    const char* part = pages_on(2);
    std::string text = std::to_string(attach({Whose::kNextTeam}, whole)) +
                       std::to_string(attach({Whose::kNextMember, 3}, part));
    // Of teams of any size: a member is its number.
    for (uint32_t size : {4u, 8u}) {
      std::vector<std::string> seen(size);
      std::string team;
      region(size, [&](ImplicitTask* member) {
        seen[member->index] = footprint({Whose::kCaller});
        if (member->index == 1) team = footprint({Whose::kCallersTeam});
      });
      text += ", " + team;
      for (uint32_t i = 0; i < size; ++i)
        text += i == 3 ? ", " + seen[i] : seen[i] != "0 0 0 0" ? " and " + seen[i] : "";
    }
    return text;
  });
  EXPECT_EQ(r.output, "00, 0 1 0 0, 0 0 1 0, 0 1 0 0, 0 0 1 0") << r.errors;
}

TEST(TeamMemory, OfMembersThatOpenTeamsIsTheirOwn) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    const char* at[2] = {pages_on(0), pages_on(3)};
    std::string seen[2];
    // Attached in one region by the members of nested teams, found in the next.
    for (int round = 0; round < 2; ++round)
      region(2, [&](ImplicitTask* outer) {
        const uint32_t mine = outer->index;
        region(3, [&, mine](ImplicitTask* inner) {
          if (inner->index != 2) return;
          if (round == 0) attach({Whose::kCaller}, at[mine]);
          // A team of one is its opener.
          if (round == 1)
            region(1, [&](ImplicitTask*) { seen[mine] = footprint({Whose::kCaller}); });
        });
      });
    std::string text = seen[0] + ", " + seen[1] + ", ";
    region(2, [&](ImplicitTask* outer) {
      if (outer->index == 1) text += footprint({Whose::kCaller});
    });
    return text;
  });
  EXPECT_EQ(r.output, "1 0 0 0, 0 0 0 1, 0 0 0 0") << r.errors;
}

TEST(TeamMemory, DetachedIsGoneAndAreasOfHintsWithIt) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    memory::AreaTable* areas = memory::start(*read_machine_aside());
    static char own[3 * kBytes];
    char* kept = pages_on(1);
    const Addressee two[2] = {{Whose::kNextTeam}, {Whose::kNextMember, 0}};
    std::string text;
    for (const Addressee& who : two) {
      text += std::to_string(attach(who, own)) + std::to_string(attach(who, kept));
    }
    memory::AreaInfo area;
    sched::Thread* me = current_thread();
    const auto there = [&](const char* at) {
      return areas->look_up(number(at), &area) ? "y" : "n";
    };
    text += std::string(" ") + there(own);
    text += std::to_string(detach_memory(me, two[0], number(own)));
    text += there(own);
    text += std::to_string(detach_memory(me, two[0], number(own)));
    text += there(own);
    text += std::to_string(detach_all_memory(me, two[1]));
    text += there(own);
    text += there(kept);
    text += std::to_string(detach_memory(me, two[0], number(own)));
    // What was left over may be attached in other pieces.
    text += " " + std::to_string(attach(two[0], own + 100));
    return text + " " + footprint(two[0]) + " " + footprint(two[1]);
  });
  EXPECT_EQ(r.output, "0000 y0y-12y0ny-17 0 0 1 0 0 0 0 0 0") << r.errors;
}

TEST(TeamMemory, BadInputIsACodeAndChangesNothing) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    static char own[2 * kBytes];
    sched::Thread* me = current_thread();
    // Below what the kernel lets anybody map.
    char* none = reinterpret_cast<char*>(uintptr_t{0x1000});
    const Addressee team{Whose::kNextTeam};
    std::string text;
    const auto add = [&](int code) { text += std::to_string(code) + " "; };
    add(attach(team, nullptr));
    add(attach_memory(me, team, number(own), 0, kBoth, 1));
    add(attach_memory(me, team, number(own), SIZE_MAX, kBoth, 1));
    add(attach_memory(me, team, number(own), 1, 0, 1));
    add(attach_memory(me, team, number(own), 1, 4, 1));
    add(attach({Whose::kNextMember, kMostWithMemory}, own));
    add(attach({Whose::kCaller}, own));
    add(attach({Whose::kCallersTeam}, own));
    add(attach(team, none));
    add(mark_memory(me, {Whose::kCaller}));
    add(mark_memory(me, team));
    add(detach_memory(me, team, number(own)));
    add(attach(team, own));
    add(attach(team, own + kBytes - 1));
    add(detach_memory(me, {Whose::kNextMember, 5}, number(own)));
    memory::AreaInfo areas[4];
    add(static_cast<int>(memory::areas()->list(0, areas, 4)));
    return text + footprint({Whose::kNextMember, 7});
  });
  EXPECT_EQ(r.output, "-1 -1 -1 -1 -1 -1 -10 -10 -15 -10 0 -17 0 -14 -12 1 0 0 0 0") << r.errors;
}

TEST(TeamMemory, EndsWithItsInitialThread) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    const char* at = pages_on(1);
    std::string text;
    std::thread([&] {
      attach({Whose::kNextTeam}, at);
      for (uint32_t i = 0; i < 100; ++i) attach({Whose::kNextMember, i}, at);
      memory::AreaInfo area;
      memory::areas()->look_up(number(at), &area);
      text = std::to_string(area.attachments);
    }).join();
    memory::AreaInfo areas[1];
    memory::areas()->list(0, areas, 1);
    return text + " " + std::to_string(areas[0].attachments);
  });
  EXPECT_EQ(r.output, "101 0") << r.errors;
}

// ---- placing

TEST(TeamMemory, TeamsArePlacedAnewWhenItChangesAndOnlyThen) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    const char* at = pages_on(1);
    std::string text;
    region(2, [&](ImplicitTask* outer) {
      if (outer->index != 0) return;
      const auto asked = [&] {
        const uint64_t before = placed_by().asked;
        for (int i = 0; i < 3; ++i) region(2, [](ImplicitTask*) {});
        text += std::to_string(placed_by().asked - before) + " ";
      };
      asked();
      attach({Whose::kNextMember, 1}, at);
      asked();
      attach({Whose::kNextMember, 1}, at);  // as in every time step
      asked();
      detach_memory(current_thread(), {Whose::kNextMember, 1}, number(at));
      asked();
    });
    return text;
  });
  EXPECT_EQ(r.output, "1 1 0 1 ") << r.errors;
}

/// The PUs that may take ghosts and threads of the team that one of sixteen members opens.
std::string reach_of_nested(uint32_t index) {
  std::string text = "?";
  region(16, [&](ImplicitTask* outer) {
    if (outer->index != index) return;
    region(2, [&](ImplicitTask* inner) {
      if (inner->index != 0) return;
      const uint64_t reach = inner->team->reach.load();
      text = reach == sched::kReachAll
                 ? "all"
                 : std::to_string(static_cast<uint32_t>(reach)) + "-" + std::to_string(reach >> 32);
    });
  });
  return text + " ";
}

TEST(TeamMemory, UnderThePolicyNobodyTakesATeamToAnotherNode) {
  for (const std::string policy : {"memory", "cache"}) {
    SCOPED_TRACE(policy);
    testing::Variables variables = kFourNodes;
    variables.push_back({"BOSK_POLICY", policy});
    const testing::ChildResult r = in_child(variables, [] {
      const char* at = pages_on(1);
      std::string text = reach_of_nested(9);
      region(16, [&](ImplicitTask* outer) {
        if (outer->index == 9) attach({Whose::kCaller}, at, 1000);
      });
      // Its opener's memory is its own; the other teams have none.
      return text + reach_of_nested(9) + reach_of_nested(1);
    });
    EXPECT_EQ(r.output, policy == "memory" ? "all 8-11 all " : "all all all ") << r.errors;
  }
}

// ---- members that move

TEST(FollowMemory, AMoveIsNoticedOnceAndPaysOrNot) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    const topology::Machine& machine = *read_machine_aside();
    char* often = pages_on(0);
    char* seldom = pages_on(0);
    char* there = pages_on(2);
    attach({Whose::kNextMember, 1}, often, 1'000'000);
    attach({Whose::kNextMember, 1}, seldom, 1);
    attach({Whose::kNextMember, 1}, there, 1'000'000);
    MemoryOwner owner;
    find_owner(current_thread(), {Whose::kNextMember, 1}, &owner);
    const auto home = [&](uint32_t node) {
      policies::TeamPlacement placement;
      placement.set_together(machine, 0, 2);
      uint32_t domain = 0;
      while (machine.domain_array[domain].n_pus() != 4 ||
             machine.node_of_pu(machine.domain_array[domain].first_pu) != node)
        ++domain;
      placement.set_together(machine, domain, 2);
      return note_homes(machine, owner.memory, placement) ? "y" : "n";
    };
    std::string text = home(0);  // known for the first time
    text += home(0);
    text += home(2);
    text += home(2);
    follow_moved(owner.memory);
    for (const char* at : {often, seldom, there}) text += " " + std::to_string(marked_at(at));
    memory::next_touch_cancel(often, kBytes);
    follow_moved(owner.memory);
    return text + " " + std::to_string(marked_at(often));
  });
  EXPECT_EQ(r.output, "nnyn 4 0 0 0") << r.errors;
}

TEST(FollowMemory, TheCostsDecide) {
  memory::CostTable* costs = memory::make_cost_table(2);
  ASSERT_NE(costs, nullptr);
  costs->base_page_bytes = 4096;
  const uint64_t bytes_on[2] = {kBytes, 0};
  const auto follows = [&](uint32_t times, uint32_t home) {
    return locality::is_worth_marking(*costs, bytes_on, home, times, memory::kReads);
  };
  EXPECT_FALSE(follows(1000, 1)) << "nothing is known";
  const auto known = [](float value) {
    return memory::Figure{value, memory::CostSource::kMeasured};
  };
  for (uint32_t from = 0; from < 2; ++from)
    for (uint32_t to = 0; to < 2; ++to) {
      // 4 KiB: 1,024 ns here, 2,048 ns there.
      for (const memory::Access way : {memory::Access::kRead, memory::Access::kWrite})
        for (const memory::MemoryLoad load :
             {memory::MemoryLoad::kAlone, memory::MemoryLoad::kNode, memory::MemoryLoad::kMachine})
          costs->access(from, to, way, load) = {known(0), known(from == to ? 4.0f : 2.0f)};
      for (const memory::PageKind pages : {memory::PageKind::kBase, memory::PageKind::kHuge})
        costs->migration(from, to, pages) = {known(0), known(4096)};
    }
  costs->thread_move = {known(0), known(0)};
  costs->next_touch = {known(0), known(24), known(4000)};
  // 4,024 ns a page to mark and to bring, 1,024 ns less a time; and a fiftieth of what all takes must be saved.
  EXPECT_FALSE(follows(4, 1));
  EXPECT_TRUE(follows(5, 1));
  EXPECT_TRUE(follows(topology::kNone, 1)) << "unknown counts as 8";
  EXPECT_FALSE(follows(1000, 0)) << "it is there";
  memory::free_cost_table(costs);
}

TEST(FollowMemory, ProgramsMark) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    char* mine = pages_on(0);
    char* other = pages_on(0);
    attach({Whose::kNextMember, 1}, mine);
    attach({Whose::kNextMember, 2}, other);
    int code = 0;
    region(4, [&](ImplicitTask* member) {
      if (member->index == 1) code = mark_memory(current_thread(), {Whose::kCaller});
    });
    std::string text = std::to_string(code) + " " + std::to_string(marked_at(mine)) + " " +
                       std::to_string(marked_at(other));
    mine[0] = 1;
    return text + " " + std::to_string(marked_at(mine) < kPages);
  });
  EXPECT_EQ(r.output, "1 4 0 1") << r.errors;
}

TEST(FollowMemory, RegionsMarkWhatNobodyPutAnywhere) {
  testing::Variables variables = kFourNodes;
  for (const char* value : {"regions", "off"}) {
    variables.push_back({"BOSK_NEXT_TOUCH", value});
    const testing::ChildResult r = in_child(variables, [] {
      current_thread();
      char* plain = pages_on(0);
      char* bound = pages_on(0);
      memory::AreaInfo area;
      memory::areas()->look_up(number(bound), &area);
      const uint64_t on[4] = {kBytes, 0, 0, 0};
      memory::areas()->set_pages(area, on, 0, memory::Placement::kOnNode);
      uint64_t seen = 0;
      region(2, [&](ImplicitTask* member) {
        if (member->index == 0) seen = marked_at(plain) * 10 + marked_at(bound);
      });
      return std::to_string(seen);
    });
    EXPECT_EQ(r.output, value == std::string("off") ? "0" : "40") << r.errors;
  }
}

TEST(FollowMemory, AWrongSettingIsSaidInOneLine) {
  const testing::ChildResult r = in_child({{"BOSK_NEXT_TOUCH", "always"}}, [] {
    return std::string(base::next_touch_regions() ? "y" : "n");
  });
  EXPECT_EQ(r.output, "n");
  EXPECT_EQ(r.errors,
            "bosk: BOSK_NEXT_TOUCH=always is not a time to mark memory; accepted: off, regions; "
            "using off\n");
}

}  // namespace
}  // namespace bosk::omp
