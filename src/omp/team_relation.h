// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the members of teams have to do with each other, as programs say it of a place in the nest (bosk_set_relation()), or
// BOSK_RELATION of a level (2005 §3.1; docs/policies.md, "Relations").
#pragma once

#include <stdint.h>

#include <atomic>

#include "omp/nest_place.h"
#include "sched/relation.h"

namespace bosk::sched {
struct Worker;
}

namespace bosk::omp {

struct RelationBook;
struct Team;
struct TeamLoads;

/// Stays until its initial thread ends. `stamp` is added to (release) behind every change.
struct ToldRelation {
  uint64_t key = 0;
  ToldRelation* next = nullptr;
  std::atomic<uint64_t> stamp{1};
  std::atomic<sched::Relation> relation{sched::Relation::kNone};
};

/// Of the teams that open there from now on. BOSK_EINVAL: of a member; BOSK_ENOTSUP: kSequence; BOSK_ESTATE: outside of regions there
/// is no team of the caller's; BOSK_ENOMEM. With preemption on.
int tell_relation(const sched::Thread* me, Addressee who, sched::Relation relation);

/// What was told of the teams that member `index` of `outer` opens; null: nothing.
const ToldRelation* find_relation(Team* outer, uint32_t index);

/// What holds for a team of which something is known.
sched::Relation relation_of(const TeamLoads& loads);

/// A nested team that is about to be published becomes a gang, in turns of so many ticks. If it cannot, because the pool has too few workers or
/// no ticks, that is said once. Preemption is off before and after, and may be on in between: returns the worker that the opener is on now.
sched::Worker* open_as_gang(sched::Thread* me, Team* team, uint32_t ticks);
/// The same if its relation says so; of a team of which something is known. Preemption is on before, off after.
sched::Worker* open_as_related(sched::Thread* me, Team* team);

/// Of the calling thread's team, how many members' threads are on workers now.
int running_members(sched::Thread* me);

void free_relation_book(ContentionGroup* group);

}  // namespace bosk::omp
