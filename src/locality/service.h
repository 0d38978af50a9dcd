// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The thread that looks at users and their memory when somebody asks who may not do it himself, and when nobody does.
//
//     a bubble was placed, a tick of it ──▶ named ──┐
//     attached, freed, moved; a PU is idle ─▶ all ──┴─▶ requests (policies/memory/requests.h) ─┐
//     where attached pages are (watch.h) ─────────────────────────────────────────────────────┼─▶ the adapter decides (decider.h)
//     books that nobody has told of changes (book_upkeep.h) ──────────────────────────────────┘
//
// Adapters are what knows who uses memory: bubbles (threads/bubble_memory.cpp) and OpenMP's teams (omp/watched_teams.cpp). They
// hand it over as users.h, and say what becomes of threads. The service knows none of them but by what is here.
#pragma once

#include "locality/watch.h"
#include "policies/memory/requests.h"

namespace bosk::sched {
struct Thread;
}

namespace bosk::locality {

/// One kind of users. Constant; what is null it does not have. Called by the service thread, with no lock held.
struct Adapter {
  /// Somebody asks for the one of that name, which may be another adapter's; or for all.
  void (*decide)(uint64_t name, policies::MemoryTrigger trigger);
  void (*decide_all)(policies::MemoryTrigger trigger);

  /// There is something to look at, at the moment.
  bool (*is_watched)();
  /// Null: the hardware does not tell its users apart.
  const RemoteSource* counters;
  /// Goes through those of which something is attached.
  void (*look)(Look& look);
  /// What look() keeps is given back; or, in a forked child, forgotten.
  void (*end)();
  void (*forget)();

  /// Its policies go by footprints: books are kept for it.
  bool (*minds_books)();
  void (*books_changed)();
  /// Whatever is attached is asked about by requests.
  bool (*asks)();
};

/// Where they are asked for.
policies::MemoryRequests& requests();

/// The service runs, and serves the adapter from now on. 0, or an errno value. `me`: the caller, with preemption on. The books are
/// there (memory::areas()). After a pause it has to be called again.
int serve(sched::Thread* me, const Adapter* adapter);
bool is_served(const Adapter* adapter);
/// The caller is the thread that serves: it plays no worker, and makes and awaits no threads.
bool on_service();

/// The adapters that are served. The service thread, and a forked child.
constexpr uint32_t kMostAdapters = 4;
const Adapter* adapter_at(uint32_t index);  ///< null: there is none; those behind it neither

/// each(adapter, index)
template <typename Each>
void for_each_adapter(Each&& each) {
  const Adapter* adapter;
  for (uint32_t i = 0; (adapter = adapter_at(i)) != nullptr; ++i) each(*adapter, i);
}
/// Does one say so that has the question?
inline bool any_adapter(bool (*Adapter::*question)()) {
  bool any = false;
  for_each_adapter([&](const Adapter& adapter, uint32_t) {
    any = any || (adapter.*question != nullptr && (adapter.*question)());
  });
  return any;
}
/// Each that has it does it.
inline void each_adapter(void (*Adapter::*action)()) {
  for_each_adapter([&](const Adapter& adapter, uint32_t) {
    if (adapter.*action != nullptr) (adapter.*action)();
  });
}

}  // namespace bosk::locality
