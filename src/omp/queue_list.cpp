// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/queue_list.h"

#include <new>

#include "base/cpu.h"
#include "base/cpu_mask.h"
#include "omp/placing.h"
#include "omp/process_queues.h"
#include "omp/task_queue_member.h"

namespace bosk::omp {
namespace {

/// Reading the machine takes some 5 to 50 ms, on large ones. Most programs that use tasks are over before, or have read it by then.
constexpr uint64_t kStealsBeforeReadingUs = 50'000;
/// A place is asked for so often while its owner steals: .1 us each.
constexpr uint64_t kPlaceHoldsUs = 1000;

}  // namespace

QueueList* make_list(QueueList* old) {
  const uint32_t capacity = old == nullptr ? 8 : 2 * old->capacity;
  auto* list =
      new (allocate_for_queues(sizeof(QueueList) + capacity * sizeof(QueueList::Entry))) QueueList;
  list->outgrown = old;
  list->capacity = capacity;
  const uint32_t count = old == nullptr ? 0 : old->count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < capacity; ++i) {
    auto* entry = new (&list->at(i)) QueueList::Entry{nullptr, base::kNoCpu};
    if (i >= count) continue;
    entry->queue.store(old->queue(i), std::memory_order_relaxed);
    entry->cpu.store(old->at(i).cpu.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  list->count.store(count, std::memory_order_relaxed);
  return list;
}

void note_place(QueueList* list, const MemberQueue* queue) {
  const ByDistance distances = known_distances();
  if (distances.known && distances.machine == nullptr) return;
  std::atomic<uint32_t>& noted = list->at(queue->place).cpu;
  const uint32_t cpu = base::current_cpu();
  if (noted.load(std::memory_order_relaxed) != cpu) noted.store(cpu, std::memory_order_relaxed);
}

ThiefPlace place_of_thief(QueueList* list, MemberQueue* queue, uint64_t now) {
  const ByDistance distances = known_distances();
  const topology::Machine* machine = distances.machine;
  if (BOSK_UNLIKELY(!distances.known)) {
    if (queue->steals_since == 0) queue->steals_since = now;
    if (now - queue->steals_since < kStealsBeforeReadingUs * base::cycles_per_microsecond())
      return {};
    machine = find_distances();
  }
  if (machine == nullptr) return {};
  if (now >= queue->place_until) {
    queue->place_until = now + kPlaceHoldsUs * base::cycles_per_microsecond();
    note_place(list, queue);
  }
  const uint32_t pu = machine->pu_of_os(list->at(queue->place).cpu.load(std::memory_order_relaxed));
  return {machine, pu != topology::kNone ? &machine->pu(pu) : nullptr};
}

}  // namespace bosk::omp
