// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts groups of threads on the queue of another node, and takes the time until the last of them runs there.
#include "threads/move_probe.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "base/cpu.h"
#include "memory/cost_probe.h"
#include "sched/clock.h"
#include "threads/api.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

constexpr uint32_t kGroups[] = {1, 4, 16, 64, 256};
constexpr uint64_t kMostNs = 3'000'000'000;  // for all of it, whatever else runs here

/// All is sequentially consistent: the figures are of microseconds.
struct Group {
  std::atomic<uint32_t> target{0};  ///< domain
  std::atomic<uint32_t> to_come{0};
  std::atomic<uint32_t> astray{0};  ///< were taken elsewhere
  std::atomic<uint64_t> last_came{0};
};
/// Of the process: who comes late finds it.
constinit Group group;

void* arrive(void*) {
  const Home* h = home();
  if (!h->machine->domain_array[group.target.load()].contains_pu(pu_here(h)))
    group.astray.fetch_add(1);
  if (group.to_come.fetch_sub(1) == 1) group.last_came.store(sched::clock_now());
  return nullptr;
}

/// Another node, else another PU.
const topology::Domain* find_target(const Home* h) {
  const topology::Machine& machine = *h->machine;
  const uint32_t here = pu_here(h);
  for (const topology::NumaNode& node : machine.nodes()) {
    const topology::Domain& domain = machine.domain_array[node.domain];
    if (node.has_pus && !domain.contains_pu(here)) return &domain;
  }
  return machine.n_pus < 2 ? nullptr : &machine.pu(here == 0 ? 1 : 0);
}

/// ns until all of them have run there; 0: nobody may have come, and the group is not to be used again; 1: some went elsewhere.
uint64_t time_of(uint32_t count, uint64_t until) {
  group.last_came.store(0);
  group.astray.store(0);
  group.to_come.store(count);
  const uint64_t begun = sched::clock_now();
  for (uint32_t i = 0; i < count; ++i)
    if (create_helper("moved", group.target.load(), arrive, nullptr) != BOSK_OK) return 0;
  // The caller keeps its PU.
  while (group.last_came.load() == 0) {
    if (sched::clock_now() > until) return 0;
    base::cpu_pause();
  }
  return group.astray.load() != 0 ? 1 : group.last_came.load() - begun;
}

}  // namespace

bool measure_thread_move(bool quick, memory::ThreadMoveCost* cost) {
  int error = BOSK_OK;
  const Home* h = home_for(omp::current_thread(), &error);
  const topology::Domain* target = h != nullptr ? find_target(h) : nullptr;
  if (target == nullptr) return false;
  group.target.store(target->id);
  const uint64_t until = sched::clock_now() + kMostNs;
  double count[std::size(kGroups)];
  double took[std::size(kGroups)];
  uint32_t measured = 0;
  for (const uint32_t size : kGroups) {
    uint64_t best = 0;
    for (uint32_t round = 0; round < (quick ? 20u : 200u); ++round) {
      const uint64_t ns = time_of(size, until);
      if (ns == 0) break;
      // What disturbs makes it longer, never shorter.
      if (ns != 1 && (best == 0 || ns < best)) best = ns;
    }
    if (best == 0) break;
    count[measured] = size;
    took[measured] = static_cast<double>(best);
    ++measured;
  }
  if (measured < 2) return false;
  const memory::Line line = memory::fit_line(count, took, measured, 1);
  cost->fixed_ns = {static_cast<float>(line.fixed), memory::CostSource::kMeasured};
  cost->each_ns = {static_cast<float>(line.each), memory::CostSource::kMeasured};
  return true;
}

}  // namespace bosk::threads
