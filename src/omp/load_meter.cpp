// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Meters some regions and turns CPU time into loads.
#include "omp/load_meter.h"

#include <stdlib.h>

#include <new>

#include "base/settings.h"
#include "context/floats_kept.h"
#include "omp/loads.h"
#include "omp/team.h"
#include "sched/scheduler.h"

namespace bosk::omp {
namespace {

constinit std::atomic<bool> measuring{false};

/// The team around, past those of one.
const Team* team_around(const Team* team) {
  do team = parent_team(team);
  while (team->size == 1 && team->level != 0);
  return team;
}

void note_nesting(const Team* team) {
  const Team* outer = team_around(team);
  if (outer->level != 1) return;
  const TeamLoads* loads = outer->loads.load(std::memory_order_acquire);
  if (loads == nullptr || loads->meter == nullptr) return;
  std::atomic<bool>& nests = loads->meter->nests;
  // Looked at first: all members' openers come here.
  if (!nests.load(std::memory_order_relaxed)) nests.store(true, std::memory_order_relaxed);
}

/// Later samples count as much as all before together would after four.
uint64_t average_with(uint64_t average, uint64_t sample) {
  return average - average / 4 + sample / 4;
}

}  // namespace

LoadMeter* make_load_meter(uint32_t size) {
  using Spent = std::atomic<uint64_t>;
  void* memory = calloc(1, sizeof(LoadMeter) + size * (sizeof(Spent) + sizeof(uint64_t)));
  if (memory == nullptr) return nullptr;
  auto* meter = new (memory) LoadMeter;
  meter->spent = reinterpret_cast<Spent*>(meter + 1);
  for (uint32_t i = 0; i < size; ++i) new (&meter->spent[i]) Spent(0);
  meter->average = reinterpret_cast<uint64_t*>(meter->spent + size);
  return meter;
}

bool measures_loads() { return measuring.load(std::memory_order_relaxed); }

void measure_loads_from_now_on() {
  if (measures_loads() || base::settings().learn_load == base::LearnLoad::kOff) return;
  measuring.store(true, std::memory_order_relaxed);
  expect_loads(LoadsKnown::kLevel1);
}

void meter_region(sched::Thread* me, Team* team) {
  team->account = {};
  team->meters_members = false;
  if (team->size == 1 || !measures_loads()) {
    // A region of one spends the time of whoever opened it.
    if (sched::metering()) team->account = me->account;
    return;
  }
  if (team->level != 1) {
    note_nesting(team);
    if (sched::metering()) team->account = me->account;
    return;
  }
  const TeamLoads* loads = team->loads.load(std::memory_order_relaxed);
  if (loads == nullptr || loads->meter == nullptr || loads->told.load(std::memory_order_relaxed))
    return;
  LoadMeter& meter = *loads->meter;
  if (!meter.nests.load(std::memory_order_relaxed) ||
      !is_metered(meter.regions.fetch_add(1, std::memory_order_relaxed)))
    return;
  const uint64_t epoch = sched::start_metering();
  if (epoch == 0) return;
  for (uint32_t i = 0; i < team->size; ++i) meter.spent[i].store(0, std::memory_order_relaxed);
  team->account = {meter.spent, epoch};
  team->meters_members = true;
}

void go_on_with(sched::Thread* me, const sched::Account& account) {
  sched::Worker* w = sched::enter(me);
  me->account = account;
  sched::meter(w, me);
  sched::leave(me);
}

void meter_member(sched::Thread* me, const Team* team, uint32_t index) {
  sched::Account account = team->account;
  if (team->meters_members) account.spent += index;
  go_on_with(me, account);
}

void meter_end_of_member(sched::Thread* me, const Team* team) {
  // What an opener does at the join of a nested team is its own time.
  if (team->meters_members) go_on_with(me, {});
}

void learn_loads(Team* team) {
  if (!team->meters_members) return;
  team->meters_members = false;
  const context::FloatsKept kept;
  sched::stop_metering();
  TeamLoads* loads = team->loads.load(std::memory_order_relaxed);
  LoadMeter& meter = *loads->meter;
  for (uint32_t i = 0; i < loads->size; ++i) {
    const uint64_t spent = meter.spent[i].load(std::memory_order_relaxed);
    meter.average[i] = meter.has_average ? average_with(meter.average[i], spent) : spent;
  }
  meter.has_average = true;
  // scratch is for whoever places; the order's memory is the opener's.
  uint32_t* present = static_cast<uint32_t*>(malloc(2 * loads->size * sizeof(uint32_t)));
  if (present == nullptr) return;
  uint32_t* now = present + loads->size;
  for (uint32_t i = 0; i < loads->size; ++i)
    present[i] = loads->measured[i].load(std::memory_order_relaxed);
  if (loads_from_averages(meter.average, present, loads->size, now)) {
    for (uint32_t i = 0; i < loads->size; ++i)
      loads->measured[i].store(now[i], std::memory_order_relaxed);
    loads->stamp.fetch_add(1, std::memory_order_release);
  }
  free(present);
}

bool loads_from_averages(const uint64_t* average, const uint32_t* present, uint32_t size,
                         uint32_t* loads) {
  constexpr double kMean = 1000;
  constexpr double kWorth = kMean / 4;
  double sum = 0;
  for (uint32_t i = 0; i < size; ++i) sum += static_cast<double>(average[i]);
  if (sum == 0) return false;
  bool worth = false;
  for (uint32_t i = 0; i < size; ++i) {
    const double load = static_cast<double>(average[i]) * size / sum * kMean;
    loads[i] = load < 1 ? 1 : static_cast<uint32_t>(load);
    const double before = present[i] == kNoLoad ? kMean : present[i];
    worth = worth || load > before + kWorth || load < before - kWorth;
  }
  return worth;
}

}  // namespace bosk::omp
