// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that OpenMP teams and their members work on (docs/hints.md): who they are to the memory manager, and
// where their footprints are.
//
// An owner is a place in the nest, as for loads: "what member 3 of this initial thread's team opens", and of such
// teams a member by its number, or the team as a whole. So what is attached stays from region to region, whichever team
// object, identity or worker a member gets, and ends with the initial thread.
//
// Who owns what: places are found without a lock and stay until their initial thread ends. What they point to is
// written under the memory manager's lock (its table asks admit() there), so a fork finds it whole; those who place
// teams read it without one. They take `stamp` first (acquire), which is added to (release) behind every change: an
// answer that was made from a stamp holds as long as the stamp does.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "memory/area_table.h"
#include "omp/nest_place.h"
#include "omp/resettlement.h"
#include "policies/team_placement.h"

namespace bosk::sched {
struct Pool;
struct Seats;
struct Thread;
}  // namespace bosk::sched

namespace bosk::omp {

struct ContentionGroup;
struct MemoryBook;
struct Team;

/// Where somebody is at home: a node of the machine, or kUnknownHome where it spans several. kMoved: it was elsewhere
/// before, and nobody has looked after its memory yet.
using HomeNode = std::atomic<uint32_t>;
constexpr uint32_t kMoved = 1u << 31;
constexpr uint32_t kUnknownHome = kMoved - 1;

/// An array that grew, and those that it took the place of: somebody may still read them. (What somebody writes
/// to an old one meanwhile is lost: a node, at worst a move that is noticed at the next one.)
struct MemberMemory {
  using OnNodes = policies::TeamFootprints::OnNodes;
  uint32_t count;
  MemberMemory* outgrown;
  std::atomic<OnNodes>* footprints() { return reinterpret_cast<std::atomic<OnNodes>*>(this + 1); }
  HomeNode* nodes() { return reinterpret_cast<HomeNode*>(footprints() + count); }
};

/// The team that is open at a place, if there is one: for who looks at it from outside (open_teams.h). Written by those who
/// open and close it, and by members that are the first to attach something.
struct OpenState {
  std::atomic<uint32_t> size{0};  ///< 0: none is open
  /// Of a level-1 team: member i has the pool's worker i, for as many as `workers`.
  std::atomic<sched::Pool*> pool{nullptr};
  std::atomic<uint32_t> workers{0};
};

/// What is known of the memory at one place.
struct TeamMemory {
  uint64_t key = 0;
  uint64_t serial = 0;  ///< no other place has it
  TeamMemory* next = nullptr;
  std::atomic<uint64_t> stamp{1};
  std::atomic<policies::TeamFootprints::OnNodes> team{nullptr};
  std::atomic<MemberMemory*> members{nullptr};
  HomeNode node{kUnknownHome};           ///< of the team as a whole
  std::atomic<bool> opens_teams{false};  ///< its members do, which are placed by it
  // What ready_memory() has looked at last: the stamp, and where the workers had their seats then.
  std::atomic<uint64_t> settled{0};
  std::atomic<const sched::Seats*> settled_seats{nullptr};
  OpenState open;
  Resettlement resettlement;  ///< of the opener
  // Of redecide_memory(): how many of the open team's members have called it, and how many wait for a decision.
  std::atomic<uint32_t> reached{0};
  std::atomic<uint32_t> undecided{0};

  policies::TeamFootprints footprints() const;
};

/// A member of a place's teams, or these as a whole.
struct MemoryOwner {
  static constexpr uint32_t kWholeTeam = NestPlace::kWholeTeam;
  TeamMemory* memory = nullptr;
  uint32_t member = kWholeTeam;

  memory::OwnerId id() const;
};

// Functions return 0 or a code of bosk/error.h, and have changed nothing then. With preemption on.

/// They work on the range, which becomes an area if it is in none. BOSK_EINVAL, BOSK_ESTATE: outside of regions there is
/// no such member or team; BOSK_EUNMAPPED, BOSK_EOVERLAP, BOSK_ENOMEM.
int attach_memory(sched::Thread* me, Addressee to, uintptr_t begin, size_t bytes, uint8_t use,
                  uint32_t times);
/// BOSK_ENOAREA: nothing is registered there; BOSK_ENOENT: it is not attached to them. An area that
/// attach_memory() made ends with its last attachment.
int detach_memory(sched::Thread* me, Addressee from, uintptr_t address);
int detach_all_memory(sched::Thread* me, Addressee from);
/// Bytes per node; returns how many nodes there are.
int memory_footprint(sched::Thread* me, Addressee of, uint64_t* bytes, uint32_t room);

/// Whom the addressee is; its memory is null: nothing was ever attached to it.
int find_owner(const sched::Thread* me, Addressee who, MemoryOwner* owner);

/// The caller's team, of more than one, and its place, which is made if need be; the team is shown to those who look from outside.
/// BOSK_ESTATE: outside of regions; BOSK_ENOMEM.
int find_open_team(sched::Thread* me, Team** team, TeamMemory** memory);

/// The memory of the teams that member `index` of `outer` opens; null: nothing was attached.
TeamMemory* find_memory(Team* outer, uint32_t index);

/// Whoever the initial thread's teams were, they work on nothing any more.
void free_memory_book(ContentionGroup* group);

}  // namespace bosk::omp
