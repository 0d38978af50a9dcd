// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/team_relation.h"

#include <bosk/error.h>

#include "base/message.h"
#include "base/settings.h"
#include "context/thread_errno.h"
#include "omp/loads.h"
#include "omp/place_book.h"
#include "omp/team.h"
#include "sched/gangs.h"
#include "sched/scheduler.h"
#include "sched/team_events.h"

namespace bosk::omp {

using sched::Relation;

static_assert(base::kRelationNameCount == sched::kRelations);

struct RelationBook : PlaceBook<ToldRelation> {
  /// As MemoryBook.
  static constexpr uint32_t kMost = 1 << 16;
  std::atomic<uint32_t> places{0};
};

int tell_relation(const sched::Thread* me, Addressee who, Relation relation) {
  if (who.whose != Whose::kNextTeam && who.whose != Whose::kCallersTeam) return BOSK_EINVAL;
  if (relation == Relation::kSequence) return BOSK_ENOTSUP;
  NestPlace place;
  if (const int error = find_place(me, who, &place)) return error;
  bool made;
  RelationBook* book = book_in(place.group()->relations, &made);
  if (book == nullptr) return BOSK_ENOMEM;
  const auto is = [](const ToldRelation&) { return true; };
  const auto make = [&]() -> ToldRelation* {
    if (book->places.load(std::memory_order_relaxed) >= RelationBook::kMost) return nullptr;
    void* room = malloc(sizeof(ToldRelation));
    if (room == nullptr) return nullptr;
    auto* told = new (room) ToldRelation;
    told->key = place.key();
    return told;
  };
  bool added;
  ToldRelation* told = book->find_or_add(place.key(), is, make, free, &added);
  if (told == nullptr) return BOSK_ENOMEM;
  if (added) book->places.fetch_add(1, std::memory_order_relaxed);
  if (told->relation.exchange(relation, std::memory_order_relaxed) != relation)
    told->stamp.fetch_add(1, std::memory_order_release);
  expect_loads(LoadsKnown::kEverywhere);
  return BOSK_OK;
}

const ToldRelation* find_relation(Team* outer, uint32_t index) {
  const RelationBook* book = root_team(outer)->contention.relations.load(std::memory_order_acquire);
  if (BOSK_LIKELY(book == nullptr)) return nullptr;
  return book->find(NestPlace{outer, index}.key());
}

Relation relation_of(const TeamLoads& loads) {
  const ToldRelation* told = loads.relation.load(std::memory_order_acquire);
  return told != nullptr ? told->relation.load(std::memory_order_relaxed)
                         : static_cast<Relation>(base::settings().relations.of_level(loads.level));
}

namespace {

void say_no_gang(uint32_t members, uint32_t workers) {
  static constinit std::atomic<bool> said{false};
  if (said.exchange(true, std::memory_order_relaxed)) return;
  const context::ErrnoKept kept;
  if (members > workers)
    base::say("a team of %u cannot be a gang on %u workers: its members run when they can", members,
              workers);
  else
    base::say(
        "teams cannot be gangs with BOSK_PREEMPT_PERIOD=off: their members run when they can");
}

}  // namespace

sched::Worker* open_as_gang(sched::Thread* me, Team* team, uint32_t ticks) {
  if (sched::can_be_gang(me, team->size)) {
    sched::make_gang(team, ticks);
    sched::add_seen(&me->worker->counts.gangs);
    sched::note_team_event(team, sched::TeamEvent::kGangOpened);
  } else {
    say_no_gang(team->size, me->pool->worker_limit);
  }
  team->home.store(me->worker, std::memory_order_relaxed);
  return me->worker;
}

sched::Worker* open_as_related(sched::Thread* me, Team* team) {
  sched::Worker* w = sched::enter(me);
  const TeamLoads* loads = team->loads.load(std::memory_order_relaxed);
  if (BOSK_UNLIKELY(relation_of(*loads) == Relation::kGang)) return open_as_gang(me, team, 1);
  team->home.store(w, std::memory_order_relaxed);
  return w;
}

int running_members(sched::Thread* me) {
  const Team* team = me->member->team;
  while (team->size == 1 && team->level != 0) team = parent_team(team);
  return team->level == 0 ? 1 : static_cast<int>(sched::count_running(me, team));
}

void free_relation_book(ContentionGroup* group) {
  RelationBook* book = group->relations.exchange(nullptr, std::memory_order_relaxed);
  if (book == nullptr) return;
  book->visit(free);
  free(book);
}

}  // namespace bosk::omp
