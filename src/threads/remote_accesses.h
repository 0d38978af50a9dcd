// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Looks now and then whether threads reach for memory of other nodes, and has it decided about (MemoryTrigger::kRemote). Of OpenMP's
// teams remote_teams.h.
//
//     every .1 s to 1.6 s, by the service thread ─▶ a source says how much is local and remote of each outermost open bubble
//       of which something is attached ─▶ RemoteWatch says for which that is worth a decision ─▶ decide_about_memory()
//
// Sources: counters of the hardware, by worker (remote_counters.cpp), or where attached pages are, by a sample
// (remote_pages.cpp). Nothing is written or asked where threads run. The time that looking takes is at most a fiftieth of
// the time between looks.
//
// Who owns what: all state belongs to the service thread, and to forget_remote_accesses() in a forked child, where there is none.
#pragma once

#include "policies/memory/remote_watch.h"
#include "policies/memory/users.h"
#include "threads/home.h"

namespace bosk::threads {

/// An outermost open bubble of which something is attached, as it was a moment ago.
struct ListedBubble {
  policies::MemoryUsers users;
  base::MappedArray<uint32_t> workers;  ///< where its threads ran last; each once or more often
};

/// Where the amounts come from. Called by the service thread, without any lock.
struct RemoteSource {
  const char* name;
  /// An interval is over. False: there is nothing to be had here. `h`: null for teams.
  bool (*begin)(const Home* h);
  /// False: of this one nothing is known.
  bool (*measure)(const Home* h, ListedBubble& bubble, policies::RemoteAmounts* amounts);
  /// Nobody watches any more, for the time being.
  void (*end)();
  /// The same as measure() for members of teams (remote_teams.h). Null: it is never asked about any.
  bool (*measure_users)(const policies::MemoryQuestion& users, policies::RemoteAmounts* amounts);
};
extern const RemoteSource remote_counters;
extern const RemoteSource remote_pages;

/// What one look has found, and cost.
struct LookedAt {
  policies::RemoteAmounts amounts;
  uint64_t raised = 0;
  uint64_t deciding = 0;  ///< own_time() of decisions
};

/// Looks if it is time. When it will be again, on sched::clock_now()'s clock; sched::kForever: not before somebody asks the
/// service thread for something else.
uint64_t watch_remote_accesses();
void end_remote_accesses();
/// In a forked child.
void forget_remote_accesses();

/// For tests: asked instead of the others. Before anything is attached.
void set_remote_source(const RemoteSource* source);
const RemoteSource* told_remote_source();

/// Processor time of the calling kernel thread, ns.
uint64_t own_time();

}  // namespace bosk::threads
