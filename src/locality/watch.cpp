// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Goes through the adapters in intervals.
#include "locality/watch.h"

#include <time.h>

#include <algorithm>

#include "base/memory_watch_setting.h"
#include "locality/service.h"
#include "memory/manager.h"
#include "sched/clock.h"

namespace bosk::locality {
namespace {

constexpr uint64_t kInterval = 100'000'000;  // ns
/// As long as all is near and nobody new comes.
constexpr uint64_t kQuietInterval = 16 * kInterval;
/// Of a processor's time, that looking may take.
constexpr uint64_t kWorthPart = 50;

constinit std::atomic<const RemoteSource*> told_source{nullptr};

/// Of one adapter.
struct Watching {
  const RemoteSource* source = nullptr;
  bool refused = false;  ///< no source has anything to say
};

struct State {
  Watching of[kMostAdapters];
  const RemoteSource* begun[kMostAdapters] = {};  ///< in this look
  uint64_t interval = kInterval;
  uint64_t next = 0;
  policies::RemoteWatch watch;
};
constinit State state;

/// An interval begins for the source: once, whoever asks it.
bool begin(const RemoteSource& source) {
  for (const RemoteSource*& begun : state.begun) {
    if (begun == &source) return true;
    if (begun != nullptr) continue;
    if (!source.begin()) return false;
    begun = &source;
    return true;
  }
  return false;
}

/// Of two: counters tell what is reached for, pages what is attached and where it lies. Probed once.
bool begin_with_some(const Adapter& adapter, uint32_t index) {
  Watching& mine = state.of[index];
  if (mine.source != nullptr) {
    mine.refused = !begin(*mine.source);
    return !mine.refused;
  }
  const RemoteSource* candidates[2] = {};
  const RemoteSource* told = told_source.load(std::memory_order_acquire);
  const base::MemoryWatch setting = base::memory_watch();
  if (setting == base::MemoryWatch::kAuto || setting == base::MemoryWatch::kCounters)
    candidates[0] = adapter.counters;
  if (setting == base::MemoryWatch::kAuto || setting == base::MemoryWatch::kPages)
    candidates[1] = &page_samples;
  if (told != nullptr) candidates[0] = told;
  for (const RemoteSource* source : candidates)
    if (source != nullptr && begin(*source)) {
      mine.source = source;
      const bool is_second = candidates[0] != nullptr && source != candidates[0];
      policies::note_remote_source(is_second ? "where sampled pages are, as there are no counters"
                                             : source->name);
      return true;
    }
  // What others are watched by stays said.
  if (policies::remote_counts().source == nullptr && setting != base::MemoryWatch::kOff)
    policies::note_remote_source(adapter.counters == nullptr &&
                                         setting == base::MemoryWatch::kCounters
                                     ? "counters do not tell teams apart"
                                     : "this machine has nothing to tell it");
  mine.refused = true;
  return false;
}

}  // namespace

bool Look::is_far(uint64_t name, const Watched& watched) {
  policies::RemoteAmounts amounts;
  const bool is_empty = source_.by_users ? watched.users.empty() : watched.workers.empty();
  if (is_empty || !source_.measure(areas_, watched, &amounts)) amounts = {};
  amounts_.local += amounts.local;
  amounts_.remote += amounts.remote;
  if (!watch_.note(name, amounts)) return false;
  ++raised_;
  return true;
}

uint64_t own_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t watch_remote_accesses() {
  memory::AreaTable* areas = memory::areas();
  if (areas == nullptr || areas->nodes().count() == 1) return sched::kForever;
  const auto is_watched = [](const Adapter& adapter, uint32_t i) {
    return adapter.is_watched != nullptr && !state.of[i].refused && adapter.is_watched();
  };
  bool any = false;
  for_each_adapter(
      [&](const Adapter& adapter, uint32_t i) { any = any || is_watched(adapter, i); });
  if (!any) return sched::kForever;
  if (sched::clock_now() < state.next) return state.next;
  const uint64_t begun = own_time();
  uint64_t deciding = 0;
  uint64_t raised = 0;
  policies::RemoteAmounts amounts;
  any = false;
  std::fill_n(state.begun, kMostAdapters, nullptr);
  for_each_adapter([&](const Adapter& adapter, uint32_t i) {
    if (!is_watched(adapter, i) || !begin_with_some(adapter, i)) return;
    any = true;
    Look look(*areas, *state.of[i].source, &state.watch);
    adapter.look(look);
    deciding += look.time_of_decisions();
    raised += look.raised();
    amounts.local += look.amounts().local;
    amounts.remote += look.amounts().remote;
  });
  if (!any) return sched::kForever;
  policies::note_remote_interval(raised, amounts);
  // The processor time that it has taken, without that of decisions.
  const uint64_t took = own_time() - begun - deciding;
  state.interval =
      state.watch.end_interval() ? kInterval : std::min(2 * state.interval, kQuietInterval);
  state.next = sched::clock_now() + std::max(state.interval, kWorthPart * took);
  return state.next;
}

static void end_sources() {
  for (Watching& watching : state.of)
    if (watching.source != nullptr) watching.source->end();
}

void end_watch() {
  end_sources();
  each_adapter(&Adapter::end);
  state.watch.release();
  state = State{};
}

void forget_watch() {
  end_sources();
  each_adapter(&Adapter::forget);
  // Its thread may have been in the middle of anything: what it had is left where it is.
  state = State{};
}

void set_remote_source(const RemoteSource* source) {
  told_source.store(source, std::memory_order_release);
}

}  // namespace bosk::locality
