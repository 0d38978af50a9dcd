// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Goes through the open teams.
#include "omp/watched_teams.h"

#include <string.h>

#include <new>

#include "base/memory_moves_setting.h"
#include "base/memory_watch_setting.h"
#include "base/message.h"
#include "locality/decider.h"
#include "locality/service.h"
#include "memory/manager.h"
#include "omp/open_teams.h"
#include "omp/settle_memory.h"
#include "sched/homes.h"

namespace bosk::omp {
namespace {

/// Belongs to the service thread, and to forget() in a forked child.
struct Kept {
  OpenTeams open;
  locality::Watched watched;
};
constinit Kept kept;

bool is_watched() { return any_book() && settles_memory(); }

/// What is attached to them, where they are now.
bool ask(memory::AreaTable& areas, const ListedTeam& team, bool refresh) {
  kept.watched.clear();
  return add_users(areas, kept.open, team, refresh, &kept.watched.users);
}

void look(locality::Look& look) {
  memory::AreaTable& areas = look.areas();
  if (!list_open_teams(areas.nodes().machine(), &kept.open)) return;
  for (uint32_t i = 0; i < kept.open.teams.size(); ++i) {
    const ListedTeam& team = kept.open.teams[i];
    if (team.n_users == 0) {
      // It is no new one when it opens again.
      look.keep(team.name);
      continue;
    }
    if (!ask(areas, team, false)) kept.watched.clear();
    if (!look.is_far(team.name, kept.watched)) continue;
    look.decide([&] {
      if (!ask(areas, team, true)) return;
      const locality::OneDecides alone;
      locality::bring_data(areas, kept.watched.users, base::memory_moves());
    });
  }
}

void end() {
  kept.open.release();
  kept.watched.release();
}

/// What it had is left where it is.
void forget() { new (&kept) Kept; }

constexpr locality::Adapter kTeams = {nullptr, nullptr, is_watched, nullptr, look,
                                      end,     forget,  nullptr,    nullptr, nullptr};

constinit std::atomic<bool> refused{false};
constinit std::atomic<uint64_t> books_told{0};  // of books_listed()

void ensure_teams_are_watched(sched::Thread* me) {
  const memory::AreaTable* areas = memory::areas();
  if (areas == nullptr || areas->nodes().count() == 1 || !settles_memory() ||
      base::memory_watch() == base::MemoryWatch::kOff || refused.load(std::memory_order_relaxed))
    return;
  // It is decided by where the workers have their seats.
  if (!me->pool->keeps_nodes.load(std::memory_order_relaxed)) sched::keep_nodes(me->pool);
  if (!locality::is_served(&kTeams)) {
    const int error = locality::serve(me, &kTeams);
    if (error != 0) {
      if (!refused.exchange(true, std::memory_order_relaxed))
        base::say("where memory of teams is nobody looks at: no thread for that (%s)",
                  strerror(error));
      return;
    }
  }
  // While there are books it wakes by itself.
  const uint64_t books = books_listed();
  if (books_told.load(std::memory_order_relaxed) != books &&
      books_told.exchange(books, std::memory_order_relaxed) != books)
    locality::requests().tell();
}

}  // namespace

void show_to_watch(sched::Thread* me, Team* team, uint32_t natives) {
  if (show_open_team(me, team, natives)) ensure_teams_are_watched(me);
}

}  // namespace bosk::omp
