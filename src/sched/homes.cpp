// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Seats, and what a kernel thread does to be at home.
#include "sched/homes.h"

#include <sys/resource.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <new>

#include "base/pages.h"
#include "base/parse.h"
#include "base/read_text.h"
#include "sched/configuration.h"
#include "sched/pool_list.h"
#include "sched/scheduler.h"
#include "sched/wishes.h"

namespace bosk::sched {
namespace {

constexpr uint64_t kLookEveryUs = 20'000;
/// Of who is away from a node that is kept.
constexpr uint64_t kLookAgainUs = 200;
/// Tables that a pool makes at most: teams of more sizes than this have no habit.
constexpr uint32_t kMostTables = 8;
/// And by exchanges; one that was had before is found again.
constexpr uint32_t kMostExchanged = 64;
/// Looks in a row that must see teams of another size before the seats follow; twice as many each time.
constexpr uint32_t kFirstHabit = 4;

/// Whose workers have seats. Two pools that are at work at once would have the same ones.
constinit std::atomic<Pool*> seated_pool{nullptr};

/// The clock, and on which CPU that was, if the processor tells both at once; topology::kNone: it does not.
uint64_t cycles_and_cpu(uint32_t* cpu) {
#if defined(__x86_64__)
  // 0: not asked yet. relaxed: whoever asks finds the same.
  static constinit std::atomic<uint8_t> answer{0};
  enum : uint8_t { kTells = 1, kDoesNot = 2 };
  uint8_t known = answer.load(std::memory_order_relaxed);
  if (known == 0) {
    constexpr uint32_t kRdtscp = uint32_t{1} << 27;
    uint32_t a = 0, b = 0, c = 0, d = 0;
    known = __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (d & kRdtscp) != 0 ? kTells : kDoesNot;
    answer.store(known, std::memory_order_relaxed);
  }
  if (known == kTells) {
    // Linux keeps the CPU's number there, and the node's above 12 bits.
    unsigned place;
    const uint64_t now = __builtin_ia32_rdtscp(&place);
    *cpu = place & 0xfff;
    return now;
  }
#endif
  *cpu = topology::kNone;
  return base::cycles();
}

/// Run delay of the calling kernel thread: what it was ready to run and did not.
uint64_t waited_us() {
  char text[80];
  if (!base::read_text("/proc/thread-self/schedstat", text)) return HomeSample::kUnknown;
  base::TextReader reader(text);
  uint64_t ran;
  uint64_t waited;
  if (!reader.take_unsigned(&ran) || !reader.take_unsigned(&waited)) return HomeSample::kUnknown;
  return waited / 1000;
}

/// Has somebody else run on its CPU although the calling kernel thread wanted to?
bool was_interrupted(Worker::Home* home) {
  rusage usage{};
  if (base::raw_syscall(SYS_getrusage, RUSAGE_THREAD, base::address_of(&usage)) != 0) return true;
  const auto times = static_cast<uint64_t>(usage.ru_nivcsw);
  const bool more = times != home->interrupted;
  home->interrupted = times;
  return more;
}

uint32_t current_pu(const topology::Machine& machine) {
  const uint32_t cpu = base::current_cpu();
  return cpu == topology::kNone ? topology::kNone : machine.pu_of_os(cpu);
}

HomeSample take_sample(const topology::Machine& machine, Worker::Home* home, uint64_t now_us) {
  const int tid = base::thread_id();
  if (tid != home->tid) home->watch.forget_waits();
  home->tid = tid;
  const uint32_t pu = current_pu(machine);
  // The file is opened only where there is something to be found out: a program that counts on the
  // numbers of its own files shall not meet ours.
  const bool ask = was_interrupted(home) || pu != home->watch.seat();
  return {now_us, ask ? waited_us() : HomeSample::kUnknown, pu};
}

bool contains_all(const base::CpuMask& mask, const topology::Machine& machine) {
  uint32_t count = 0;
  for (const uint64_t word : mask.words) count += static_cast<uint32_t>(__builtin_popcountll(word));
  if (count != machine.n_pus) return false;
  for (uint32_t pu = 0; pu < machine.n_pus; ++pu) {
    const uint32_t cpu = machine.os_of_pu(pu);
    if (cpu / 64 >= base::CpuMask::kWords || (mask.words[cpu / 64] >> cpu % 64 & 1) == 0)
      return false;
  }
  return true;
}

/// Those of `own` that are in the domain: after a pause the program may have taken some away.
base::CpuMask cpus_of(const topology::Machine& machine, const topology::Domain& domain,
                      const base::CpuMask& own) {
  base::CpuMask mask;
  mask.bytes = own.bytes;
  for (uint32_t pu = domain.first_pu; pu <= domain.last_pu; ++pu) {
    const uint32_t cpu = machine.os_of_pu(pu);
    mask.words[cpu / 64] |= own.words[cpu / 64] & uint64_t{1} << cpu % 64;
  }
  return mask;
}

/// In the pool's list; null: there is no memory.
Seats* make_seats(Pool* pool, uint32_t team, const uint32_t* part_of) {
  const uint32_t pus = pool->home_machine->n_pus;
  void* memory = base::map_pages(bytes_of_seats(pus));
  if (memory == nullptr) return nullptr;
  auto* made = new (memory) Seats{pus, team, part_of != nullptr, pool->made_seats};
  assign_seats(pus, team, part_of, reinterpret_cast<uint32_t*>(made + 1));
  pool->made_seats = made;
  return made;
}

/// Null: the pool has had tables for enough sizes, or there is no memory.
const Seats* seats_for(Pool* pool, uint32_t team) {
  const uint32_t pus = pool->home_machine->n_pus;
  if (team > pus) team = pus;
  uint32_t tables = 0;
  for (const Seats* known = pool->made_seats; known != nullptr; known = known->other) {
    if (known->exchanged) continue;
    if (known->team == team) return known;
    ++tables;
  }
  return tables == kMostTables ? nullptr : make_seats(pool, team, nullptr);
}

/// Null: the pool has had enough of them, or there is no memory.
const Seats* seats_in_order(Pool* pool, uint32_t team, const uint32_t* part_of) {
  const auto is_in_order = [=](const Seats& seats) {
    for (uint32_t i = 0; i < team; ++i)
      if (part_of_seat(seats.count, team, seats.pu_of_worker()[i]) != part_of[i]) return false;
    return true;
  };
  uint32_t exchanged = 0;
  for (const Seats* known = pool->made_seats; known != nullptr; known = known->other) {
    if (known->team == team && is_in_order(*known)) return known;
    exchanged += known->exchanged ? 1 : 0;
  }
  return exchanged == kMostExchanged ? nullptr : make_seats(pool, team, part_of);
}

/// Any of the pool's kernel threads.
Bound any_bound(const Pool* pool) {
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < workers; ++i) {
    const Worker* w = pool->worker(i);
    const Bound bound = w != nullptr ? is_bound(w) : Bound::kNo;
    if (bound != Bound::kNo) return bound;
  }
  return Bound::kNo;
}

/// All look after their homes when they wait next.
void ask_to_look(Pool* pool, const Seats& seats) {
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < workers && i < seats.count; ++i)
    pool->worker(i)->look_at.store(0, std::memory_order_relaxed);
  pool->ask_at.store(0, std::memory_order_relaxed);
}

void take_seats(Pool* pool, const Seats* seats) {
  // release: the table and the machine are complete when they are seen.
  pool->seats.store(seats, std::memory_order_release);
  ask_to_look(pool, *seats);
}

/// Threads of bosk are placed on PUs by the numbers of their workers (src/threads): there worker i has PU i.
bool runs_entities(const Pool* pool) {
  return pool->entities.load(std::memory_order_acquire) != nullptr;
}

void seat_for_the_first_time(Pool* pool, uint32_t team) {
  // No CPUs: its members are bound, or there are too many to tell.
  if (pool->outer != nullptr || pool->cpus.bytes == 0) return;
  const topology::Machine* machine = configuration().home_machine();
  // The program may have given the thread CPUs of its own since the process began: its choice stands.
  if (machine == nullptr || !contains_all(pool->cpus, *machine)) return;
  Pool* nobody = nullptr;
  if (!seated_pool.compare_exchange_strong(nobody, pool, std::memory_order_acq_rel)) return;
  pool->home_machine = machine;
  const Seats* seats = seats_for(pool, runs_entities(pool) ? machine->n_pus : team);
  if (seats == nullptr) {
    seated_pool.store(nullptr, std::memory_order_release);
    return;
  }
  pool->habit_needed = kFirstHabit;
  take_seats(pool, seats);
}

/// Those of the pool who were seen in the domain and have their seats elsewhere look after their homes, and go there. O(workers). False:
/// there are none.
bool call_home(const Pool* pool, const Seats& seats, const topology::Domain& domain) {
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  bool any = false;
  for (uint32_t i = 0; i < workers && i < seats.count; ++i) {
    Worker* other = pool->worker(i);
    // relaxed, all: it may be elsewhere by now, and then it has a look too many.
    const uint32_t pu = other->seen_on.load(std::memory_order_relaxed);
    if (pu == topology::kNone || !domain.contains_pu(pu) ||
        domain.contains_pu(seats.pu_of_worker()[i]))
      continue;
    other->is_called_home.store(true, std::memory_order_relaxed);
    other->look_at.store(0, std::memory_order_relaxed);
    other->look_due.store(true, std::memory_order_relaxed);
    any = true;
  }
  return any;
}

bool go_to(Worker* w, const HomeWatch& watch) {
  const topology::Machine& machine = *w->pool->home_machine;
  const base::CpuMask own = base::cpus_of_calling_thread();
  // Another mask: somebody has bound this thread, and that stands.
  if (!base::same_cpus(own, w->pool->cpus)) return false;
  if (!move_into(w, cpus_of(machine, watch.home(machine), own), own)) return false;
  add_seen(&w->counts.homecomings);
  return true;
}

/// To another CPU of its node.
bool go_aside(Worker* w, uint32_t cpu) {
  const topology::Machine& machine = *w->pool->home_machine;
  const uint32_t seat = w->home.watch.seat();
  const base::CpuMask own = base::cpus_of_calling_thread();
  const topology::Level* nodes = machine.level(topology::Kind::kNode);
  if (nodes == nullptr || !base::same_cpus(own, w->pool->cpus)) return false;
  base::CpuMask aside = cpus_of(machine, machine.domain_array[nodes->of_pu[seat]], own);
  aside.words[cpu / 64] &= ~(uint64_t{1} << cpu % 64);
  return move_into(w, aside, own);
}

/// Do the seats still fit the teams? Called about once in a look.
void follow_habit(Pool* pool, uint32_t team) {
  const Seats* now = pool->seats.load(std::memory_order_relaxed);
  if (team > now->count || runs_entities(pool)) team = now->count;
  if (team == now->team) {
    pool->habit = 0;
    return;
  }
  if (team != pool->habit_team) pool->habit = 0;
  pool->habit_team = team;
  if (++pool->habit < pool->habit_needed) return;
  const Seats* wanted = seats_for(pool, team);
  pool->habit = 0;
  if (wanted == nullptr) return;
  pool->habit_needed *= 2;
  take_seats(pool, wanted);
}

}  // namespace

void keep_seats(Pool* pool, uint32_t team) {
  if (configuration().home_machine == nullptr || team < 2) return;
  // Several threads may make workers for the threads of bosk that live in the pool; one seats them.
  if (pool->seating.exchange(1, std::memory_order_acquire) != 0) return;
  if (pool->seats.load(std::memory_order_relaxed) == nullptr)
    seat_for_the_first_time(pool, team);
  else
    follow_habit(pool, team);
  const bool seated = pool->seats.load(std::memory_order_relaxed) != nullptr;
  pool->seating.store(0, std::memory_order_release);
  Thread* me = context::self();
  if (!seated || me != pool->initial) return;
  const uint64_t now = base::cycles();
  pool->ask_at.store(now + kLookEveryUs * base::cycles_per_microsecond(),
                     std::memory_order_relaxed);
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t i = 1; i < workers; ++i)
    pool->worker(i)->look_due.store(true, std::memory_order_relaxed);
  serve_wishes(me);
  Worker* w = enter(me);
  if (w->pool == pool && now >= w->look_at.load(std::memory_order_relaxed)) look_after_home(w);
  leave(me);
}

bool parts_of_members(const Pool* pool, const topology::Machine& machine, uint32_t team,
                      uint32_t* part_of) {
  const Seats* seats = pool->seats.load(std::memory_order_acquire);
  if (seats == nullptr || seats->team != team || seats->count != machine.n_pus) return false;
  for (uint32_t i = 0; i < team; ++i)
    part_of[i] = part_of_seat(seats->count, team, seats->pu_of_worker()[i]);
  return true;
}

Exchange exchange_held_seats(Pool* pool, uint32_t team, const uint32_t* part_of) {
  const Seats* seats = pool->seats.load(std::memory_order_relaxed);
  if (seats == nullptr || seats->team != team || runs_entities(pool)) return Exchange::kStay;
  const Bound bound = any_bound(pool);
  if (bound == Bound::kUnknown) return Exchange::kLater;
  const Seats* wanted = bound == Bound::kNo ? seats_in_order(pool, team, part_of) : nullptr;
  if (wanted == nullptr || wanted == seats) return Exchange::kStay;
  take_seats(pool, wanted);
  return Exchange::kDone;
}

Exchange exchange_seats(Pool* pool, uint32_t team, const uint32_t* part_of) {
  if (pool->seating.exchange(1, std::memory_order_acquire) != 0) return Exchange::kLater;
  pool->seats_are_told = true;
  const Exchange answer = exchange_held_seats(pool, team, part_of);
  pool->seating.store(0, std::memory_order_release);
  return answer;
}

Pool* hold_seats() {
  base::SpinGuard guard(pools.lock);
  // A pool that ends is taken out of the list first, and then waits for who has set `seating` (give_seats_up()).
  Pool* pool = pools.first;
  while (pool != nullptr && pool != seated_pool.load(std::memory_order_acquire)) pool = pool->next;
  if (pool == nullptr || pool->seating.exchange(1, std::memory_order_acquire) != 0) return nullptr;
  return pool;
}

void let_go_of_seats(Pool* pool) { pool->seating.store(0, std::memory_order_release); }

void keep_nodes(Pool* pool) {
  pool->keeps_nodes.store(true, std::memory_order_relaxed);
  const Seats* seats = pool->seats.load(std::memory_order_acquire);
  if (seats == nullptr) return;
  ask_to_look(pool, *seats);
  look_at_ticks(pool, seats->count);
}

void look_at_ticks(Pool* pool, uint32_t workers) {
  const uint32_t made = pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < workers && i < made; ++i) note_ready(pool->worker(i));
}

uint32_t kept_node_of_caller() {
  const Thread* me = context::self();
  const Worker* w = me != nullptr ? me->worker : nullptr;
  if (w == nullptr || !w->pool->keeps_nodes.load(std::memory_order_relaxed)) return topology::kNone;
  const Seats* seats = w->pool->seats.load(std::memory_order_acquire);
  if (seats == nullptr || w->index >= seats->count ||
      !base::same_cpus(base::cpus_of_calling_thread(), w->pool->cpus))
    return topology::kNone;
  const topology::Machine& machine = *w->pool->home_machine;
  return machine.nodes()[machine.node_of_pu(seats->pu_of_worker()[w->index])].os_index;
}

void give_seats_up(Pool* pool) {
  Pool* seated = pool;
  // The workers that are left idle until they end: they do not compete with those of the next one.
  seated_pool.compare_exchange_strong(seated, nullptr, std::memory_order_acq_rel);
  // By hold_seats(), before the pool left the list.
  if (seated == pool)
    while (pool->seating.load(std::memory_order_acquire) != 0) base::raw_syscall(SYS_sched_yield);
}

void free_seats(Pool* pool) {
  while (const Seats* seats = pool->made_seats) {
    pool->made_seats = seats->other;
    base::unmap_pages(const_cast<Seats*>(seats), bytes_of_seats(seats->count));
  }
}

void forget_seats_after_fork() { seated_pool.store(nullptr, std::memory_order_relaxed); }

bool begin_at_seat(Worker* w) {
  const Seats* seats = w->pool->seats.load(std::memory_order_acquire);
  if (seats == nullptr || w->index >= seats->count) return false;
  look_after_home(w);
  return true;
}

void look_after_home(Worker* w) {
  const Pool* pool = w->pool;
  const uint64_t us = base::cycles_per_microsecond();
  const uint64_t now = base::cycles();
  w->look_due.store(false, std::memory_order_relaxed);
  const Seats* seats = pool->seats.load(std::memory_order_acquire);
  const bool seated = seats != nullptr && w->index < seats->count;
  w->look_at.store(seated ? now + kLookEveryUs * us : kNeverLooks, std::memory_order_relaxed);
  if (!seated) return;
  const topology::Machine& machine = *pool->home_machine;
  Worker::Home& home = w->home;
  if (home.seats != seats) {
    home.seats = seats;
    if (home.watch.seat() != seats->pu_of_worker()[w->index])
      home.watch = HomeWatch(seats->pu_of_worker()[w->index]);
  }
  // relaxed: where they are at home is a preference.
  const bool keeps_node = pool->keeps_nodes.load(std::memory_order_relaxed);
  HomeSample sample = take_sample(machine, &home, now / us + 1);
  sample.is_called = w->is_called_home.load(std::memory_order_relaxed);
  if (sample.is_called) w->is_called_home.store(false, std::memory_order_relaxed);
  const auto call = [=](const topology::Domain& domain) { return call_home(pool, *seats, domain); };
  if (home.watch.look(machine, sample, keeps_node, call) && go_to(w, home.watch)) {
    sample.pu = current_pu(machine);
    home.watch.has_gone_home({base::cycles() / us + 1, waited_us(), sample.pu});
  }
  w->seen_on.store(sample.pu, std::memory_order_relaxed);
}

void look_where_nodes_are_kept(Worker* w) {
  uint32_t cpu;
  const uint64_t now = cycles_and_cpu(&cpu);
  const uint64_t at = w->look_at.load(std::memory_order_relaxed);
  if (now >= at) {
    look_after_home(w);
    return;
  }
  if (cpu == topology::kNone || w->home.seats == nullptr) return;
  const topology::Machine& machine = *w->pool->home_machine;
  const uint32_t pu = machine.pu_of_os(cpu);
  if (pu == topology::kNone || machine.node_of_pu(pu) == machine.node_of_pu(w->home.watch.seat()))
    return;
  // The last look set `at`.
  const uint64_t us = base::cycles_per_microsecond();
  if (now + (kLookEveryUs - kLookAgainUs) * us >= at) look_after_home(w);
}

bool go_home_from(Worker* w, uint32_t cpu) {
  const Worker::Home& home = w->home;
  if (home.seats == nullptr) return false;
  const topology::Machine& machine = *w->pool->home_machine;
  if (!home.watch.home(machine).contains_pu(machine.pu_of_os(cpu))) return go_to(w, home.watch);
  return w->pool->keeps_nodes.load(std::memory_order_relaxed) && go_aside(w, cpu);
}

}  // namespace bosk::sched
