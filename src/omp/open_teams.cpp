// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keeps the list of books, and copies from it.
#include "omp/open_teams.h"

#include <new>

#include "base/spinlock.h"
#include "base/syscalls.h"
#include "memory/machine_nodes.h"
#include "memory/nodes.h"
#include "omp/memory_book.h"
#include "omp/team.h"
#include "sched/homes.h"
#include "sched/scheduler.h"

namespace bosk::omp {
namespace {

/// Guards `first_book` and every book's `next`, each of which changes by one store: a forked child, in which nobody holds the lock,
/// finds the list whole.
constinit base::SpinLock listing;
constinit std::atomic<MemoryBook*> first_book{nullptr};
constinit std::atomic<uint64_t> listed{0};

/// Copies what is at one place. What it reads of a pool and its workers stays while it is there: open_teams.h.
class Copy {
 public:
  Copy(const topology::Machine& machine, OpenTeams* to) : machine_(machine), to_(*to) {}

  bool team(TeamMemory* memory) {
    const MemoryOwner whole{memory, MemoryOwner::kWholeTeam};
    ListedTeam team{whole.id(), to_.users.size(), 0};
    sched::Pool* pool = memory->open.pool.load(std::memory_order_acquire);
    // seq_cst: see the head of open_teams.h.
    if (pool != nullptr) pool->visitors.fetch_add(1, std::memory_order_seq_cst);
    size_ = memory->open.size.load(std::memory_order_seq_cst);
    // Who opens teams is at home where the policy has put these, not where its worker is.
    const bool by_workers = pool != nullptr && !memory->opens_teams.load(std::memory_order_relaxed);
    workers_ = by_workers ? memory->open.workers.load(std::memory_order_relaxed) : 0;
    const bool enough = size_ == 0 || users(pool, memory);
    // What is decided goes by where they have their seats. relaxed: a preference.
    if (size_ != 0 && workers_ != 0 && pool->keeps_nodes.load(std::memory_order_relaxed))
      sched::look_at_ticks(pool, workers_);
    if (pool != nullptr) sched::leave_pool(pool);
    team.n_users = to_.users.size() - team.first_user;
    return enough && to_.teams.push(team);
  }

 private:
  bool users(const sched::Pool* pool, TeamMemory* memory) {
    // acquire: that something was ever attached comes with the entries.
    if (memory->team.load(std::memory_order_acquire) != nullptr &&
        !user(pool, {memory, MemoryOwner::kWholeTeam}, memory->node, 0, size_))
      return false;
    MemberMemory* members = memory->members.load(std::memory_order_acquire);
    for (uint32_t i = 0; members != nullptr && i < members->count && i < size_; ++i)
      if (members->footprints()[i].load(std::memory_order_relaxed) != nullptr &&
          !user(pool, {memory, i}, members->nodes()[i], i, 1))
        return false;
    return true;
  }

  bool user(const sched::Pool* pool, const MemoryOwner& owner, const HomeNode& home, uint32_t first,
            uint32_t threads) {
    // relaxed: a node, which carries nothing.
    const uint32_t node = home.load(std::memory_order_relaxed) & ~kMoved;
    ListedUser user{owner.id(), node == kUnknownHome ? memory::kNoNode : node, threads,
                    to_.workers.size(), 0};
    if (first + threads <= workers_) {
      for (uint32_t i = first; i < first + threads; ++i)
        if (!to_.workers.push(worker(pool, i))) return false;
      user.n_workers = threads;
    }
    return to_.users.push(user);
  }

  ListedWorker worker(const sched::Pool* pool, uint32_t index) const {
    const sched::Worker* w = pool->worker(index);
    // acquire: what it was made with.
    const context::Identity* kernel =
        w != nullptr ? w->kernel.load(std::memory_order_acquire) : nullptr;
    return {kernel != nullptr ? kernel->tid : 0,
            machine_.node_of_pu(sched::pu_of(pool, machine_, index))};
  }

  const topology::Machine& machine_;
  OpenTeams& to_;
  uint32_t size_ = 0;
  uint32_t workers_ = 0;
};

/// The one node that all of them are on; kNoNode: they are on several.
memory::NodeIndex node_of_cpus(const topology::Machine& machine, const base::CpuMask& mask) {
  memory::NodeIndex node = memory::kNoNode;
  for (uint32_t word = 0; word < base::CpuMask::kWords; ++word)
    for (uint64_t left = mask.words[word]; left != 0; left &= left - 1) {
      const uint32_t pu =
          machine.pu_of_os(word * 64 + static_cast<uint32_t>(__builtin_ctzll(left)));
      if (pu == topology::kNone) continue;
      if (node != memory::kNoNode && node != machine.node_of_pu(pu)) return memory::kNoNode;
      node = machine.node_of_pu(pu);
    }
  return node;
}

memory::NodeIndex node_of(const memory::MachineNodes& nodes, const ListedWorker& worker) {
  base::CpuMask mask;
  // Of an invented machine the kernel knows no CPUs.
  if (!nodes.real() || worker.tid == 0 ||
      base::raw_syscall(SYS_sched_getaffinity, worker.tid, sizeof mask.words,
                        base::address_of(mask.words)) <= 0)
    return worker.node;
  const memory::NodeIndex bound = node_of_cpus(nodes.machine(), mask);
  return bound != memory::kNoNode ? bound : worker.node;
}

}  // namespace

void list_book(sched::Thread* me, MemoryBook* book) {
  sched::enter(me);
  {
    base::SpinGuard guard(listing);
    book->next.store(first_book.load(std::memory_order_relaxed), std::memory_order_relaxed);
    // release: for any_book() without the lock.
    first_book.store(book, std::memory_order_release);
    listed.fetch_add(1, std::memory_order_release);
  }
  sched::leave(me);
}

void unlist_book(MemoryBook* book) {
  base::SpinGuard guard(listing);
  std::atomic<MemoryBook*>* at = &first_book;
  while (MemoryBook* here = at->load(std::memory_order_relaxed)) {
    if (here == book) {
      at->store(book->next.load(std::memory_order_relaxed), std::memory_order_relaxed);
      return;
    }
    at = &here->next;
  }
}

uint64_t books_listed() { return listed.load(std::memory_order_acquire); }
bool any_book() { return first_book.load(std::memory_order_acquire) != nullptr; }

bool show_open_team(sched::Thread* me, Team* team, uint32_t natives) {
  // acquire: both as in stamp_of().
  const TeamLoads* loads = team->loads.load(std::memory_order_acquire);
  TeamMemory* memory = loads != nullptr ? loads->memory.load(std::memory_order_acquire) : nullptr;
  if (memory == nullptr) return false;
  // Of nested teams that run on kernel threads of their own, and of members that are ghosts, nobody knows where they are.
  const bool on_workers = team->level == 1 && natives > 1 && me->pool->outer == nullptr;
  memory->open.pool.store(on_workers ? me->pool : nullptr, std::memory_order_release);
  memory->open.workers.store(on_workers ? natives : 0, std::memory_order_relaxed);
  memory->open.size.store(team->size, std::memory_order_seq_cst);
  // relaxed: the opener looks when all members have ended.
  team->at_end.fetch_or(Team::kIsShown, std::memory_order_relaxed);
  return true;
}

void hide_open_team(Team* team) {
  TeamMemory* memory =
      team->loads.load(std::memory_order_acquire)->memory.load(std::memory_order_acquire);
  // relaxed: nobody is inside.
  memory->reached.store(0, std::memory_order_relaxed);
  // seq_cst, and before the region is over for a pause: see the head of open_teams.h.
  memory->open.size.store(0, std::memory_order_seq_cst);
}

bool list_open_team(sched::Thread* me, const topology::Machine& machine, TeamMemory* memory,
                    OpenTeams* found) {
  sched::enter(me);
  const bool listed = Copy(machine, found).team(memory);
  sched::leave(me);
  return listed;
}

bool list_open_teams(const topology::Machine& machine, OpenTeams* found) {
  found->teams.clear();
  found->users.clear();
  found->workers.clear();
  Copy copy(machine, found);
  base::SpinGuard guard(listing);
  for (MemoryBook* book = first_book.load(std::memory_order_relaxed); book != nullptr;
       book = book->next.load(std::memory_order_relaxed)) {
    bool has_room = true;
    book->visit([&](TeamMemory* at) { has_room = has_room && copy.team(at); });
    if (!has_room) return false;
  }
  return true;
}

memory::NodeIndex find_node(const memory::MachineNodes& nodes, const OpenTeams& found,
                            const ListedUser& user) {
  if (user.n_workers == 0) return user.node;
  const memory::NodeIndex first = node_of(nodes, found.workers[user.first_worker]);
  for (uint32_t i = 1; i < user.n_workers; ++i)
    if (node_of(nodes, found.workers[user.first_worker + i]) != first) return memory::kNoNode;
  return first;
}

bool add_users(memory::AreaTable& areas, const OpenTeams& found, const ListedTeam& team,
               bool refresh, locality::Users* users) {
  for (uint32_t i = team.first_user; i < team.first_user + team.n_users; ++i) {
    const ListedUser& user = found.users[i];
    users->begin_user(find_node(areas.nodes(), found, user), user.threads);
    if (!users->add_all_of(areas, user.owner, refresh)) return false;
  }
  return true;
}

void open_teams_forget_after_fork(MemoryBook* left) {
  new (&listing) base::SpinLock;
  first_book.store(left, std::memory_order_relaxed);
  if (left == nullptr) return;
  left->next.store(nullptr, std::memory_order_relaxed);
  left->visit([](TeamMemory* at) {
    at->open.size.store(0, std::memory_order_relaxed);
    at->reached.store(0, std::memory_order_relaxed);
    at->undecided.store(0, std::memory_order_relaxed);
    at->open.pool.store(nullptr, std::memory_order_relaxed);
  });
}

}  // namespace bosk::omp
