// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Remote accesses by what the hardware counts: a pair of events for each worker's kernel thread, opened and read by the
// service thread. A bubble has what the workers had on which its threads ran last.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "base/cache_counter.h"
#include "base/remote_events.h"
#include "sched/worker.h"
#include "threads/home.h"
#include "threads/worker_counters.h"

namespace bosk::threads {
namespace {

/// Fewer loads from memory in an interval than this have nothing to gain: 2 ms of them.
constexpr double kLeastLoads = 20'000;
/// Of the descriptors that the process may have.
constexpr uint64_t kWorthPart = 8;

struct WorkerCounter {
  int tid = 0;  ///< 0: not opened
  bool known = false;
  uint32_t asked = 0;  ///< State::asked of the bubble that it was added to last
  base::CacheCounter counter;
  base::CacheCount last;
  base::CacheCount now;  ///< in this interval
};

struct State {
  bool probed = false;
  bool found = false;
  base::RemoteEvents events{};
  uint32_t asked = 0;
  base::MappedArray<WorkerCounter> workers;
  /// A forked child finds the array as it was: not while it grows. release and acquire, as on both sides of a fork.
  std::atomic<bool> grows{false};
};
constinit State state;

bool make_room(uint32_t workers) {
  state.grows.store(true, std::memory_order_release);
  while (state.workers.size() < workers && state.workers.push(WorkerCounter{})) {
  }
  state.grows.store(false, std::memory_order_release);
  return state.workers.size() >= workers;
}

/// How many workers one that is counted stands for.
uint32_t stride(uint32_t workers) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return workers;
  const uint64_t most = std::max<uint64_t>(files.rlim_cur / kWorthPart / 2, 1);
  return static_cast<uint32_t>((workers + most - 1) / most);
}

void look_at(WorkerCounter& mine, int tid) {
  mine.known = false;
  base::CacheCount count;
  if (mine.tid != tid) {
    mine.counter.close();
    mine.tid = 0;
    if (tid == 0 ||
        !mine.counter.open(state.events.type, state.events.loads, state.events.remote, tid))
      return;
    mine.tid = tid;
    mine.last = {};
    // From here on; the first interval begins now.
    mine.counter.read_some(&mine.last);
    return;
  }
  if (tid == 0 || !mine.counter.read_some(&count)) {
    mine.counter.close();
    mine.tid = 0;
    return;
  }
  mine.known = true;
  mine.now = {count.accesses - mine.last.accesses, count.misses - mine.last.misses};
  mine.last = count;
}

bool begin() {
  const Home* h = home();
  if (h == nullptr) return false;
  if (!state.probed) state.found = base::find_remote_events(&state.events);
  state.probed = true;
  if (!state.found) return false;
  sched::enter_pool(h->pool);
  const uint32_t count = h->pool->worker_count.load(std::memory_order_acquire);
  const bool enough = make_room(count);
  const uint32_t step = stride(count);
  for (uint32_t i = 0; enough && i < count; i += step) {
    const sched::Worker* w = h->pool->worker(i);
    const context::Identity* kernel =
        w != nullptr ? w->kernel.load(std::memory_order_acquire) : nullptr;
    look_at(state.workers[i], kernel != nullptr ? kernel->tid : 0);
  }
  sched::leave_pool(h->pool);
  return enough;
}

bool measure(memory::AreaTable&, const locality::Watched& bubble,
             policies::RemoteAmounts* amounts) {
  ++state.asked;
  for (uint32_t i = 0; i < bubble.workers.size(); ++i) {
    const uint32_t worker = bubble.workers[i];
    if (worker >= state.workers.size()) continue;
    WorkerCounter& its = state.workers[worker];
    if (!its.known || its.asked == state.asked) continue;
    its.asked = state.asked;
    // Kernels differ in whether loads from other nodes are among all; a fifth by the one reading is a quarter by the other.
    amounts->local += static_cast<double>(its.now.accesses);
    amounts->remote += static_cast<double>(its.now.misses);
  }
  return amounts->local + amounts->remote >= kLeastLoads;
}

void end() {
  if (state.grows.load(std::memory_order_acquire)) return;
  for (uint32_t i = 0; i < state.workers.size(); ++i) state.workers[i].counter.close();
  state.workers.clear();
  state.probed = false;
}

}  // namespace

constinit const locality::RemoteSource worker_counters = {"counters of the hardware", false, begin,
                                                          measure, end};

}  // namespace bosk::threads
