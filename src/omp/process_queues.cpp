// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/process_queues.h"

#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "omp/task_queue_guard.h"
#include "omp/task_queue_member.h"

namespace bosk::omp {
namespace {

constexpr uint32_t kPerPage = 1024;
constexpr uint32_t kPages = 4096;
struct QueuePage {
  std::atomic<MemberQueue*> at[kPerPage];
};

struct AllQueues {
  base::SpinLock lock;
  MemberQueue* free_list = nullptr;
  uint32_t count = 0;
  std::atomic<QueuePage*> pages[kPages] = {};
};
constinit AllQueues all_queues;

MemberQueue* take_free_queue() {
  QuietGuard guard(all_queues.lock);
  MemberQueue* queue = all_queues.free_list;
  if (queue != nullptr) all_queues.free_list = queue->next_free;
  return queue;
}

/// Gives the queue its number. False: `*spare` must be a page first.
bool number_queue(MemberQueue* queue, QueuePage** spare) {
  QuietGuard guard(all_queues.lock);
  const uint32_t number = all_queues.count + 1;
  if (number / kPerPage >= kPages)
    base::die(70, "more than 4 million members create tasks at once");
  auto& page = all_queues.pages[number / kPerPage];
  if (page.load(std::memory_order_relaxed) == nullptr) {
    if (*spare == nullptr) return false;
    page.store(*spare, std::memory_order_release);
    *spare = nullptr;
  }
  all_queues.count = number;
  queue->number = number;
  // release: who finds the queue by its number sees it whole.
  page.load(std::memory_order_relaxed)
      ->at[number % kPerPage]
      .store(queue, std::memory_order_release);
  return true;
}

MemberQueue* make_queue() {
  auto* queue = new (allocate_for_queues(sizeof(MemberQueue))) MemberQueue;
  QueuePage* spare = nullptr;
  while (!number_queue(queue, &spare)) {
    spare = static_cast<QueuePage*>(calloc(1, sizeof(QueuePage)));
    if (spare == nullptr)
      base::die(1, "out of memory: cannot allocate %zu bytes for queues of tasks",
                sizeof(QueuePage));
  }
  free(spare);
  return queue;
}

}  // namespace

void* allocate_for_queues(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, base::kCacheLine, bytes) != 0)
    base::die(1, "out of memory: cannot allocate %zu bytes for a queue of tasks", bytes);
  return memory;
}

MemberQueue* take_queue_of_process() {
  MemberQueue* queue = take_free_queue();
  return queue != nullptr ? queue : make_queue();
}

void give_queue_back(MemberQueue* queue) {
  QuietGuard guard(all_queues.lock);
  queue->team = nullptr;
  queue->next_free = all_queues.free_list;
  all_queues.free_list = queue;
}

MemberQueue* find_queue(uint32_t number) {
  return all_queues.pages[number / kPerPage]
      .load(std::memory_order_acquire)
      ->at[number % kPerPage]
      .load(std::memory_order_acquire);
}

void process_queues_forget_after_fork() { new (&all_queues.lock) base::SpinLock; }

}  // namespace bosk::omp
