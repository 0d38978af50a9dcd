// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Goes through the bubbles in intervals.
#include "threads/remote_accesses.h"

#include <time.h>

#include <algorithm>

#include "base/memory_watch_setting.h"
#include "memory/manager.h"
#include "sched/clock.h"
#include "threads/api.h"
#include "threads/memory_mover.h"
#include "threads/remote_teams.h"

namespace bosk::threads {
namespace {

using policies::RemoteAmounts;

constexpr uint64_t kInterval = 100'000'000;  // ns
/// As long as all is near and nobody new comes.
constexpr uint64_t kQuietInterval = 16 * kInterval;
/// Of a processor's time, that looking may take.
constexpr uint64_t kWorthPart = 50;

constinit std::atomic<const RemoteSource*> told_source{nullptr};

struct State {
  const RemoteSource* source = nullptr;
  bool refused = false;  ///< no source has anything to say
  uint64_t interval = kInterval;
  uint64_t next = 0;
  policies::RemoteWatch watch;
  ListedBubble bubble;
};
constinit State state;

/// Of two: counters tell what is reached for, pages what is attached and where it lies.
bool begin_with_some(const Home* h) {
  if (state.source != nullptr) return state.source->begin(h);
  const RemoteSource* candidates[2] = {};
  switch (base::memory_watch()) {
    case base::MemoryWatch::kOff:
      break;
    case base::MemoryWatch::kAuto:
      candidates[0] = &remote_counters;
      candidates[1] = &remote_pages;
      break;
    case base::MemoryWatch::kCounters:
      candidates[0] = &remote_counters;
      break;
    case base::MemoryWatch::kPages:
      candidates[0] = &remote_pages;
      break;
  }
  if (const RemoteSource* told = told_remote_source(); told != nullptr) candidates[0] = told;
  for (const RemoteSource* source : candidates)
    if (source != nullptr && source->begin(h)) {
      state.source = source;
      const bool is_second = source != candidates[0];
      policies::note_remote_source(is_second ? "where sampled pages are, as there are no counters"
                                             : source->name);
      return true;
    }
  if (candidates[0] != nullptr) policies::note_remote_source("this machine has nothing to tell it");
  return false;
}

bool is_open(sched::NestedBubble& bubble) {
  base::SpinGuard guard(bubble.lock);
  return bubble.state == sched::BubbleState::kBurst;
}

void note_worker(void* workers, sched::TreeEntity& entity) {
  const uint32_t last = entity.figures.last_worker.load(std::memory_order_relaxed);
  if (last != sched::kUnknown32) static_cast<base::MappedArray<uint32_t>*>(workers)->push(last);
}

/// Who is in it, if it is open, nothing open is around it, and anything is attached.
bool list(Home* h, bosk_bubble_t handle) {
  sched::enter_pool(h->pool);
  bool listed = false;
  {
    // What is around a bubble stays around it.
    base::SpinGuard nesting(h->nesting);
    HeldBubble bubble(handle);
    state.bubble.workers.clear();
    if (bubble && is_open(*bubble) && (bubble->bubble == nullptr || !is_open(*bubble->bubble)) &&
        state.bubble.users.list(*bubble, *h->machine) && state.bubble.users.any()) {
      sched::visit(*bubble, note_worker, &state.bubble.workers);
      listed = true;
    }
  }
  sched::leave_pool(h->pool);
  return listed;
}

bool is_watched(const Home* h) {
  return h != nullptr && !state.refused && h->engine.moves_data() && h->machine->n_nodes > 1 &&
         memory::areas() != nullptr &&
         // relaxed: a thread that begins now is looked at next time.
         (h->live.load(std::memory_order_relaxed) & ~Home::kLeft) != 0;
}

bool is_used(uintptr_t handle) {
  // As for all who go through the table: nobody has handed over this handle. acquire: what it was made with.
  const BubbleRecord* record = bubble_table.find(handle);
  return record != nullptr && record->life.load(std::memory_order_acquire) != Life::kFree;
}

/// All bubbles of which something is attached.
void look_at_bubbles(Home* h, LookedAt* looked) {
  bubble_table.for_each([&](uintptr_t name) {
    const auto handle = reinterpret_cast<bosk_bubble_t>(name);
    RemoteAmounts amounts;
    if (!is_used(name) || !list(h, handle)) return;
    if (!state.source->measure(h, state.bubble, &amounts)) amounts = {};
    looked->amounts.local += amounts.local;
    looked->amounts.remote += amounts.remote;
    if (!state.watch.note(name, amounts)) return;
    ++looked->raised;
    const uint64_t before = own_time();
    decide_about_memory(nullptr, handle, policies::MemoryTrigger::kRemote);
    looked->deciding += own_time() - before;
  });
}

}  // namespace

uint64_t own_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t watch_remote_accesses() {
  Home* h = home();
  bool bubbles = is_watched(h);
  bool teams = teams_are_watched();
  if (!bubbles && !teams) return sched::kForever;
  if (sched::clock_now() < state.next) return state.next;
  // Probed once.
  if (bubbles && !begin_with_some(h)) {
    state.refused = true;
    bubbles = false;
  }
  teams = teams && begin_with_teams();
  if (!bubbles && !teams) return sched::kForever;
  const uint64_t begun = own_time();
  LookedAt looked;
  if (bubbles) look_at_bubbles(h, &looked);
  if (teams) look_at_teams(&state.watch, &looked);
  policies::note_remote_interval(looked.raised, looked.amounts);
  // The processor time that it has taken, without that of decisions.
  const uint64_t took = own_time() - begun - looked.deciding;
  state.interval =
      state.watch.end_interval() ? kInterval : std::min(2 * state.interval, kQuietInterval);
  state.next = sched::clock_now() + std::max(state.interval, kWorthPart * took);
  return state.next;
}

void end_remote_accesses() {
  if (state.source != nullptr) state.source->end();
  release_looked_at_teams();
  state.watch.release();
  state.bubble.users.release();
  state.bubble.workers.release();
  state = State{};
}

void forget_remote_accesses() {
  if (state.source != nullptr) state.source->end();
  forget_looked_at_teams();
  // Its thread may have been in the middle of anything: what it had is left where it is.
  state = State{};
}

void set_remote_source(const RemoteSource* source) {
  told_source.store(source, std::memory_order_release);
}
const RemoteSource* told_remote_source() { return told_source.load(std::memory_order_acquire); }

}  // namespace bosk::threads
