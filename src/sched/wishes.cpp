// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A service thread that hears where members are wished to be.
#include "sched/wishes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "base/mapped_array.h"
#include "base/observer_messages.h"
#include "base/syscalls.h"
#include "observed/hand_over.h"
#include "sched/homes.h"
#include "sched/scheduler.h"
#include "sched/service_thread.h"

namespace bosk::sched {
namespace {

/// An observer that has too much to do answers late.
constexpr int kAnswerSlices = 1000;
constexpr long kAnswerSliceNs = 10'000'000;

struct Wishes {
  ServiceThread thread;
  base::ObserverAddress observer{};
  /// Does anybody observe us who wishes something? Set once, to kNo; relaxed: who has not seen it asks again.
  enum : uint8_t { kUnknown, kNo };
  std::atomic<uint8_t> are_there{kUnknown};
  /// Of the thread, mapped by it; read by who stops it. release, acquire: with its words.
  std::atomic<bosk_wishes*> file{nullptr};
};
constinit Wishes wishes;

using Word = std::atomic_ref<uint32_t>;
uint32_t get(uint32_t& of) { return Word(of).load(std::memory_order_relaxed); }
void put(uint32_t& of, uint32_t value) { Word(of).store(value, std::memory_order_relaxed); }

/// Not private to the process, as all our other futexes are.
void sleep_on(uint32_t& of, uint32_t seen) {
  base::raw_syscall(SYS_futex, base::address_of(&of), FUTEX_WAIT, static_cast<long>(seen), 0);
}

void ring(bosk_wishes* file) {
  Word(file->news).fetch_add(1, std::memory_order_release);
  base::raw_syscall(SYS_futex, base::address_of(&file->news), FUTEX_WAKE, INT32_MAX);
}

/// Null: there is none.
bosk_wishes* map(int file) {
  void* memory = reinterpret_cast<void*>(base::raw_syscall(
      SYS_mmap, 0, sizeof(bosk_wishes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  base::raw_syscall(SYS_close, file);
  if (reinterpret_cast<uintptr_t>(memory) > -uintptr_t{4096}) return nullptr;
  // A child asks for its own.
  base::raw_syscall(SYS_madvise, base::address_of(memory), sizeof(bosk_wishes), MADV_DONTFORK);
  return static_cast<bosk_wishes*>(memory);
}

/// -errno: nobody wishes anything, or we are to stop.
int wait_for_answer(const ServiceThread& service, int socket) {
  int answer = -EAGAIN;
  for (int i = 0; i < kAnswerSlices && answer == -EAGAIN && !service.is_stopping(); ++i)
    answer = base::take_wishes(socket, kAnswerSliceNs);
  return answer;
}

bosk_wishes* ask(const ServiceThread& service) {
  const int socket = base::ask_for_wishes(wishes.observer);
  const int answer = socket < 0 ? socket : wait_for_answer(service, socket);
  if (socket >= 0) base::raw_syscall(SYS_close, socket);
  bosk_wishes* file = answer >= 0 ? map(answer) : nullptr;
  if (file == nullptr && !service.is_stopping())
    wishes.are_there.store(Wishes::kNo, std::memory_order_relaxed);
  return file;
}

/// Where workers are at home, for the observer. By who holds the seats.
void tell(const Pool* pool, bosk_wishes* file) {
  const Seats* seats = pool->seats.load(std::memory_order_acquire);
  const topology::Machine& machine = *pool->home_machine;
  const uint32_t workers =
      std::min(pool->worker_count.load(std::memory_order_acquire), seats->count);
  const uint32_t count = std::min(workers, BOSK_MOST_SEATS);
  for (uint32_t i = 0; i < count; ++i) {
    const Worker* w = pool->worker(i);
    const context::Identity* kernel =
        w != nullptr ? w->kernel.load(std::memory_order_acquire) : nullptr;
    const uint32_t pu = seats->pu_of_worker()[i];
    bosk_seat& seat = file->seat[i];
    put(seat.thread, kernel != nullptr ? static_cast<uint32_t>(kernel->tid) : 0);
    put(seat.member, member_of_seat(*seats, pu));
    put(seat.cpu, machine.os_of_pu(pu));
  }
  put(file->seats, count);
  put(file->team, std::min(seats->team, BOSK_MOST_SEATS));
}

void do_as_wished(Pool* pool, bosk_wishes* file) {
  const topology::Machine& machine = *pool->home_machine;
  const uint32_t team = get(file->wished);
  if (team < 2 || team > BOSK_MOST_SEATS || pool->seats_are_told) return;
  base::MappedArray<uint32_t> words;
  if (!words.resize(size_t{2} * team)) return;
  uint32_t* const part_of = words.data();
  uint32_t* const cpus = words.data() + team;
  for (uint32_t i = 0; i < team; ++i) cpus[i] = get(file->wish[i]);
  if (parts_of_members(pool, machine, team, part_of) &&
      parts_by_wish(machine, team, cpus, part_of)) {
    const Exchange done = exchange_held_seats(pool, team, part_of);
    // Their memory follows them, or is there: they stay with it. relaxed: only we and the opener set it, to the same.
    if (done == Exchange::kDone ||
        (done == Exchange::kStay && !pool->keeps_nodes.load(std::memory_order_relaxed)))
      keep_nodes(pool);
  }
  words.release();
}

void serve(bosk_wishes* file) {
  Pool* pool = hold_seats();
  if (pool == nullptr) {
    put(file->team, 0);
    return;
  }
  if (pool->seats.load(std::memory_order_acquire) != nullptr) {
    do_as_wished(pool, file);
    tell(pool, file);
  }
  let_go_of_seats(pool);
}

void hear(ServiceThread& service) {
#ifdef SYS_close_range
  // Descriptors of its own, none: what it opens is not seen by the program.
  constexpr unsigned kUnshare = 1U << 1;
  base::raw_syscall(SYS_close_range, 0, INT32_MAX, kUnshare);
#endif
  bosk_wishes* const file = ask(service);
  if (file == nullptr) return;
  wishes.file.store(file, std::memory_order_release);
  // seq_cst, with the state that stop() stores before it rings: one of us sees the other's.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (!service.is_stopping()) {
    const uint32_t seen = Word(file->news).load(std::memory_order_acquire);
    serve(file);
    if (!service.is_stopping()) sleep_on(file->news, seen);
  }
}

void ring_if_mapped() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (bosk_wishes* file = wishes.file.load(std::memory_order_acquire)) ring(file);
}

}  // namespace

void serve_wishes(const Thread* me) {
  if (BOSK_LIKELY(wishes.are_there.load(std::memory_order_relaxed) == Wishes::kNo) ||
      wishes.thread.runs())
    return;
  const auto prepare = [] { return base::find_observer(&wishes.observer) ? 0 : ENOENT; };
  if (wishes.thread.ensure(me, prepare, hear) != 0)
    wishes.are_there.store(Wishes::kNo, std::memory_order_relaxed);
}

void stop_serving_wishes() {
  wishes.thread.stop(ring_if_mapped);
  if (bosk_wishes* file = wishes.file.exchange(nullptr, std::memory_order_acq_rel))
    base::raw_syscall(SYS_munmap, base::address_of(file), sizeof(bosk_wishes));
}

void wishes_forget_after_fork() {
  wishes.thread.forget_after_fork();
  // It is not mapped here.
  wishes.file.store(nullptr, std::memory_order_relaxed);
}

bool parts_by_wish(const topology::Machine& machine, uint32_t team, const uint32_t* cpus,
                   uint32_t* part_of) {
  base::MappedArray<uint64_t> order;
  if (!order.resize(team)) return false;
  constexpr int kBits = 20;
  bool is_known = true;
  for (uint32_t i = 0; i < team; ++i) {
    const uint32_t pu = machine.pu_of_os(cpus[i]);
    is_known = is_known && pu != topology::kNone;
    order.data()[i] = uint64_t{pu} << 2 * kBits | uint64_t{part_of[i]} << kBits | i;
  }
  if (is_known) {
    std::sort(order.data(), order.data() + team);
    constexpr uint64_t kMember = (uint64_t{1} << kBits) - 1;
    for (uint32_t part = 0; part < team; ++part) part_of[order.data()[part] & kMember] = part;
  }
  order.release();
  return is_known;
}

}  // namespace bosk::sched
