// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A slot's function is written once, by a compare-exchange, and the slot's number is in use before anything is counted for it.
#include "omp/region_counts.h"

#include <algorithm>
#include <new>

#include "base/pages.h"
#include "base/spinlock.h"
#include "omp/region_watch.h"

namespace bosk::omp {
namespace {

constexpr uint32_t kRegions = sched::kSampledRegions;  // a power of two
/// Fuller than that, looking for a free slot would take long.
constexpr uint32_t kMostNumbered = kRegions * 3 / 4;

/// So many calls are timed one by one, then one in so many and up to as many more: programs have periods of their own, powers of two
/// not the last among them.
constexpr uint64_t kAllTimed = 256;
constexpr uint64_t kTimedOneIn = 64;

struct Numbered {
  std::atomic<uintptr_t> function{0};
  std::atomic<uint32_t> level{0};
};
constinit Numbered numbered[kRegions];
constinit std::atomic<uint32_t> numbered_count{0};

/// All that were ever made. release, acquire: they are constructed when they are seen.
constinit std::atomic<RegionBook*> books{nullptr};
constinit base::SpinLock books_lock;
constinit RegionBook* free_books = nullptr;  ///< guarded by the lock

RegionBook* some_book() {
  {
    base::SpinGuard guard(books_lock);
    if (RegionBook* book = free_books) {
      free_books = book->next_free;
      return book;
    }
  }
  // From the kernel: malloc may not be called with preemption off.
  void* memory = base::map_pages(sizeof(RegionBook));
  if (memory == nullptr) return nullptr;
  auto* book = new (memory) RegionBook;
  book->next = books.load(std::memory_order_relaxed);
  while (!books.compare_exchange_weak(book->next, book, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
  return book;
}

/// The only writer's.
template <typename T>
void add(std::atomic<T>& sum, T value) {
  sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}
template <typename T>
void lower(std::atomic<T>& least, T value) {
  if (value < least.load(std::memory_order_relaxed)) least.store(value, std::memory_order_relaxed);
}
template <typename T>
void raise(std::atomic<T>& most, T value) {
  if (value > most.load(std::memory_order_relaxed)) most.store(value, std::memory_order_relaxed);
}

uint64_t in_ns(uint64_t cycles) {
  return static_cast<uint64_t>(static_cast<double>(cycles) * 1000 /
                               static_cast<double>(base::cycles_per_microsecond()));
}

void add_counts(RegionLine* line, const RegionCounts& counts) {
  const uint64_t calls = counts.calls.load(std::memory_order_relaxed);
  if (calls == 0) return;
  const uint32_t smallest = counts.smallest.load(std::memory_order_relaxed);
  if (line->calls == 0 || smallest < line->smallest) line->smallest = smallest;
  line->largest = std::max(line->largest, counts.largest.load(std::memory_order_relaxed));
  line->modes |= counts.modes.load(std::memory_order_relaxed);
  line->calls += calls;
  const uint64_t timed = counts.timed.load(std::memory_order_relaxed);
  if (timed == 0) return;
  const double all = static_cast<double>(calls) / static_cast<double>(timed);
  line->open_ns += static_cast<uint64_t>(
      all * static_cast<double>(in_ns(counts.cycles.load(std::memory_order_relaxed))));
  line->longest_ns =
      std::max(line->longest_ns, in_ns(counts.longest.load(std::memory_order_relaxed)));
}

}  // namespace

uint32_t number_of_region(RegionFunction region) {
  const auto function = reinterpret_cast<uintptr_t>(region);
  uint32_t at = static_cast<uint32_t>((function * 0x9e3779b97f4a7c15u) >> 40) % kRegions;
  for (uint32_t probes = 0; probes < kRegions; ++probes, at = (at + 1) % kRegions) {
    if (at == 0) continue;
    uintptr_t seen = numbered[at].function.load(std::memory_order_relaxed);
    if (seen == function) return at;
    if (seen != 0) continue;
    if (numbered_count.load(std::memory_order_relaxed) >= kMostNumbered) return 0;
    if (numbered[at].function.compare_exchange_strong(seen, function, std::memory_order_relaxed)) {
      numbered_count.fetch_add(1, std::memory_order_relaxed);
      return at;
    }
    if (seen == function) return at;
  }
  return 0;
}

RegionBook* make_region_book(sched::Worker* w) { return w->region_book = some_book(); }

void look_up_region(Team* team) {
  team->region.store(number_of_region(team->function), std::memory_order_relaxed);
  team->numbered = team->function;
}

void note_other_size(RegionCounts* counts, const Team* team) {
  if (counts->last_size.load(std::memory_order_relaxed) == 0)
    numbered[region_of(team)].level.store(team->level, std::memory_order_relaxed);
  counts->last_size.store(team->size, std::memory_order_relaxed);
  lower(counts->smallest, team->size);
  raise(counts->largest, team->size);
}

void begin_timed_call(RegionCounts* counts, Team* team, uint64_t calls) {
  const uint64_t now = base::cycles();
  if (calls >= kAllTimed) counts->next_timed = calls + kTimedOneIn + (now >> 4) % kTimedOneIn;
  team->region_opened_at = now;
}

void end_timed_call(sched::Worker* w, Team* team) {
  const uint64_t took = base::cycles() - team->region_opened_at;
  team->region_opened_at = 0;
  if (w->region_book == nullptr) return;
  RegionCounts* counts = &w->region_book->at[region_of(team)];
  add(counts->timed, uint64_t{1});
  add(counts->cycles, took);
  raise(counts->longest, took);
}

void keep_region_counts(sched::Worker* w) {
  RegionBook* book = w->region_book;
  w->region_book = nullptr;
  if (book == nullptr) return;
  // Who holds the lock is not switched out.
  context::preempt_disable();
  {
    base::SpinGuard guard(books_lock);
    book->next_free = free_books;
    free_books = book;
  }
  context::preempt_enable();
}

void forget_region_counts_after_fork() {
  new (&books_lock) base::SpinLock;
  sched::forget_team_events_after_fork();
  // relaxed: there is nobody else.
  for (RegionBook* book = books.load(std::memory_order_relaxed); book != nullptr; book = book->next)
    for (RegionCounts& counts : book->at) new (&counts) RegionCounts;
}

bool collect_regions(base::MappedArray<RegionLine>* lines) {
  for (uint32_t number = 0; number < kRegions; ++number) {
    RegionLine line;
    line.function =
        reinterpret_cast<void*>(numbered[number].function.load(std::memory_order_relaxed));
    line.level = numbered[number].level.load(std::memory_order_relaxed);
    uint64_t sampled = 0;
    for (uint32_t i = 0; i < sched::kTimeShares; ++i)
      sampled += line.shares_ns[i] = sched::sampled_ns(number, static_cast<sched::TimeShare>(i));
    for (const RegionBook* book = books.load(std::memory_order_acquire); book != nullptr;
         book = book->next)
      add_counts(&line, book->at[number]);
    for (uint32_t i = 0; i < sched::kTeamEvents; ++i)
      line.events[i] = sched::team_events(number, static_cast<sched::TeamEvent>(i));
    if (line.calls + sampled != 0 && !lines->push(line)) return false;
  }
  return true;
}

}  // namespace bosk::omp
