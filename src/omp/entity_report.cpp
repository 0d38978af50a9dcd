// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measures members, and adds them up by the thread of the level-1 team that they are below.
#include "omp/entity_report.h"

#include <time.h>

#include <atomic>
#include <new>

#include "base/publish_once.h"
#include "base/settings.h"
#include "base/spinlock.h"
#include "base/syscalls.h"
#include "omp/team.h"
#include "sched/worker.h"
#include "sched/worker_caches.h"

namespace bosk::omp {
namespace {

/// Relaxed throughout: figures that order nothing.
struct EntityCounts {
  std::atomic<uint64_t> members{0};
  std::atomic<uint64_t> ghosts{0};
  std::atomic<uint64_t> measured{0};
  std::atomic<uint64_t> cpu_ns{0};
  std::atomic<uint64_t> counted{0};
  std::atomic<uint64_t> accesses{0};
  std::atomic<uint64_t> misses{0};
  std::atomic<uint32_t> load{kUntoldLoad};
  std::atomic<uint32_t> last_worker{UINT32_MAX};
};

struct Entities {
  EntityCounts at[kReportedEntities];
};
constinit base::PublishOnce<Entities> known_entities;

/// Null: out of memory.
EntityCounts* counts_of(uint32_t thread) {
  const Entities* entities = known_entities.get();
  if (entities == nullptr) {
    void* memory = base::map_pages(sizeof(Entities));
    if (memory == nullptr) return nullptr;
    if (!known_entities.publish(new (memory) Entities)) base::unmap_pages(memory, sizeof(Entities));
    entities = known_entities.get();
  }
  const uint32_t at = thread < kReportedEntities ? thread : kReportedEntities - 1;
  return const_cast<EntityCounts*>(&entities->at[at]);
}

/// Of the thread of the level-1 team that the member is, or is below; null: there is none.
EntityCounts* counts_above(const ImplicitTask* member) {
  const Team* team = member->team;
  uint32_t index = member->index;
  for (; team->level > 1; team = parent_team(team)) index = team->opener_index;
  return team->level == 1 ? counts_of(index) : nullptr;
}

// ---- what kernel threads say

uint64_t cpu_now() {
  timespec now{};
  base::raw_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, base::address_of(&now));
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// ---- members that run

}  // namespace

struct MemberFigures {
  uint64_t cpu_ns = 0;
  base::CacheCount caches;
};

/// A member that has begun and not ended, in the list of its thread, innermost first.
struct OpenMember {
  OpenMember* outer;
  const ImplicitTask* member;
  MemberFigures begun;
  MemberFigures inside;  ///< of members that began and ended on its stack
  uint32_t times_left;
  int kernel_thread;
  bool counted;  ///< begun.caches is known, and so are those inside
};

namespace {

/// Records of members, used again; more come straight from the kernel.
struct RecordPool {
  base::SpinLock lock;
  OpenMember* free = nullptr;

  OpenMember* take() {
    base::SpinGuard guard(lock);
    if (free == nullptr) {
      constexpr size_t kBytes = 64 * sizeof(OpenMember);
      auto* more = static_cast<OpenMember*>(base::map_pages(kBytes));
      if (more == nullptr) return nullptr;
      for (size_t i = 0; i < kBytes / sizeof *more; ++i) {
        more[i].outer = free;
        free = &more[i];
      }
    }
    OpenMember* record = free;
    free = record->outer;
    return record;
  }
  void give(OpenMember* record) {
    base::SpinGuard guard(lock);
    record->outer = free;
    free = record;
  }
};
constinit RecordPool records;

/// Takes the innermost record off the thread's list.
void drop_innermost(sched::Thread* me) {
  OpenMember* record = me->open_members;
  me->open_members = record->outer;
  records.give(record);
}

bool is_open(const sched::Thread* me, const ImplicitTask* member) {
  const OpenMember* at = me->open_members;
  while (at != nullptr && at->member != member) at = at->outer;
  return at != nullptr;
}

/// Adds what the innermost member of the thread did to its entity, and to what was inside the next one.
void account(sched::Thread* me, EntityCounts* counts) {
  const OpenMember& mine = *me->open_members;
  OpenMember* outer = mine.outer;
  // Switched out meanwhile, or gone on elsewhere: so have the members around it on this thread.
  if (me->times_left != mine.times_left || base::thread_id() != mine.kernel_thread) return;
  const uint64_t cpu_ns = cpu_now();
  base::CacheCount caches;
  const bool counted = mine.counted && sched::read_worker_caches(me->worker, &caches);
  const uint64_t all_ns = cpu_ns - mine.begun.cpu_ns;
  const base::CacheCount all{caches.accesses - mine.begun.caches.accesses,
                             caches.misses - mine.begun.caches.misses};
  if (counts != nullptr) {
    counts->measured.fetch_add(1, std::memory_order_relaxed);
    counts->cpu_ns.fetch_add(all_ns - mine.inside.cpu_ns, std::memory_order_relaxed);
    if (counted) {
      counts->counted.fetch_add(1, std::memory_order_relaxed);
      counts->accesses.fetch_add(all.accesses - mine.inside.caches.accesses,
                                 std::memory_order_relaxed);
      counts->misses.fetch_add(all.misses - mine.inside.caches.misses, std::memory_order_relaxed);
    }
  }
  if (outer == nullptr) return;
  outer->inside.cpu_ns += all_ns;
  outer->inside.caches.accesses += all.accesses;
  outer->inside.caches.misses += all.misses;
  outer->counted = outer->counted && counted;
}

}  // namespace

void note_entity_begin(sched::Thread* me) {
  const ImplicitTask* member = me->member;
  // Left without an end (by an exception of the program, say), and its place on the stack used again.
  while (is_open(me, member)) drop_innermost(me);
  if (EntityCounts* counts = counts_above(member)) {
    counts->members.fetch_add(1, std::memory_order_relaxed);
    const sched::Worker* w = me->worker != nullptr ? me->worker : me->last_worker;
    if (w != nullptr) counts->last_worker.store(w->index, std::memory_order_relaxed);
  }
  context::preempt_disable();
  if (OpenMember* record = records.take()) {
    *record = {me->open_members, member, {}, {}, me->times_left, base::thread_id(), false};
    record->counted = sched::read_worker_caches(me->worker, &record->begun.caches);
    record->begun.cpu_ns = cpu_now();
    me->open_members = record;
  }
  context::preempt_enable();
}

void note_entity_end(sched::Thread* me, const ImplicitTask* member) {
  context::preempt_disable();
  if (is_open(me, member)) {
    while (me->open_members->member != member) drop_innermost(me);
    account(me, counts_above(member));
    drop_innermost(me);
  }
  context::preempt_enable();
}

void note_entity_ghost(const sched::Thread* me) {
  if (EntityCounts* counts = counts_above(me->member))
    counts->ghosts.fetch_add(1, std::memory_order_relaxed);
}

void note_entity_load(uint32_t index, uint32_t load) {
  if (EntityCounts* counts = counts_of(index)) counts->load.store(load, std::memory_order_relaxed);
}

bool collect_entities(base::MappedArray<EntityLine>* lines) {
  const Entities* entities = known_entities.get();
  if (entities == nullptr) return true;
  for (uint32_t i = 0; i < kReportedEntities; ++i) {
    const EntityCounts& from = entities->at[i];
    EntityLine line;
    line.thread = i;
    line.members = from.members.load(std::memory_order_relaxed);
    if (line.members == 0) continue;
    line.ghosts = from.ghosts.load(std::memory_order_relaxed);
    line.measured = from.measured.load(std::memory_order_relaxed);
    line.cpu_ns = from.cpu_ns.load(std::memory_order_relaxed);
    line.counted = from.counted.load(std::memory_order_relaxed);
    line.accesses = from.accesses.load(std::memory_order_relaxed);
    line.misses = from.misses.load(std::memory_order_relaxed);
    line.load = from.load.load(std::memory_order_relaxed);
    if (line.load == kUntoldLoad) line.load = base::settings().loads.load_of(1, i);
    line.last_worker = from.last_worker.load(std::memory_order_relaxed);
    if (!lines->push(line)) return false;
  }
  return true;
}

}  // namespace bosk::omp
