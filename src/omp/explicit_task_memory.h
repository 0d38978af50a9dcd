// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory for tasks and dependence records: blocks of a few sizes, owned by the queue that made
// them.
//
// A block goes back to the queue it came from, so that a thread that only creates tasks and one
// that only runs them do not drift apart: blocks that end elsewhere are collected there and sent
// home in one go. Blocks are never given back to malloc: thieves look at tasks that may be gone
// (see sched/task_deque.h), so task memory stays task memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "base/cpu.h"

namespace bosk::omp {

/// First word of every free block.
struct FreeBlock {
  FreeBlock* next;
};

class TaskMemory {
 public:
  /// Tasks and records never share blocks: a thief must find a task where there was one.
  static constexpr uint32_t kTaskSizes = 5;
  static constexpr uint32_t kRecordSizes = 5;
  static constexpr uint32_t kClasses = kTaskSizes + kRecordSizes;
  static constexpr size_t kBytes[kClasses] = {128, 192, 320, 576, 1088, 64, 128, 256, 512, 1024};
  static constexpr size_t kLargestTask = kBytes[kTaskSizes - 1];
  static constexpr size_t kLargestRecord = kBytes[kClasses - 1];

  /// The class for so many bytes; kClasses if there is none.
  static uint32_t task_class(size_t bytes) { return class_from(0, kTaskSizes, bytes); }
  static uint32_t record_class(size_t bytes) { return class_from(kTaskSizes, kClasses, bytes); }

  /// Owner only: a block aligned to 64 bytes. `*fresh`: it was never handed out before (zeroed).
  void* take(uint32_t size_class, bool* fresh) {
    FreeBlock* block = free_[size_class];
    if (BOSK_LIKELY(block != nullptr)) {
      free_[size_class] = block->next;
      *fresh = false;
      return block;
    }
    return take_slow(size_class, fresh);
  }

  /// Gives a block back. `here`: the memory that the calling thread owns, null if it has none.
  static void give(TaskMemory* here, void* memory) {
    Chunk* chunk = chunk_of(memory);
    auto* block = static_cast<FreeBlock*>(memory);
    TaskMemory* home = chunk->home;
    if (BOSK_LIKELY(home == here)) {
      block->next = here->free_[chunk->size_class];
      here->free_[chunk->size_class] = block;
      return;
    }
    give_elsewhere(here, home, block);
  }

  /// Owner only: sends home what was collected of other queues' blocks.
  void send_home();

  /// Owner only: how many tasks of other queues have ended here.
  uint64_t foreign_tasks() const { return foreign_tasks_; }

 private:
  struct Chunk {
    TaskMemory* home;
    uint32_t size_class;
  };
  static constexpr size_t kChunkBytes = 32 * 1024;
  static constexpr uint32_t kCollected = 32;

  static Chunk* chunk_of(void* memory) {
    return reinterpret_cast<Chunk*>(reinterpret_cast<uintptr_t>(memory) & ~(kChunkBytes - 1));
  }
  static uint32_t class_from(uint32_t at, uint32_t end, size_t bytes) {
    while (at < end && kBytes[at] < bytes) ++at;
    return at < end ? at : kClasses;
  }
  void* take_slow(uint32_t size_class, bool* fresh);
  char* take_chunk();
  static void give_elsewhere(TaskMemory* here, TaskMemory* home, FreeBlock* block);
  static void push_inbox(TaskMemory* home, FreeBlock* first, FreeBlock* last);

  FreeBlock* free_[kClasses] = {};
  char* unused_[kClasses] = {};  ///< rest of the newest chunk
  char* unused_end_[kClasses] = {};
  // Blocks of `collected_home_`, to be sent there.
  TaskMemory* collected_home_ = nullptr;
  FreeBlock* collected_ = nullptr;
  FreeBlock* collected_last_ = nullptr;
  uint32_t collected_count_ = 0;
  uint64_t foreign_tasks_ = 0;
  // Chunks that were not used yet, and how many to ask for next.
  uint32_t slab_chunks_ = 1;
  char* slab_ = nullptr;
  char* slab_end_ = nullptr;

  alignas(base::kCacheLine) std::atomic<FreeBlock*> inbox_{nullptr};  ///< sent here by others
};

}  // namespace bosk::omp
