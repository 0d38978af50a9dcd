// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chunks, and the ways home of blocks that end elsewhere.
#include "omp/explicit_task_memory.h"

#include <stdlib.h>
#include <string.h>

#include <new>

#include "base/message.h"

namespace bosk::omp {

// malloc loses some pages in front of whatever is aligned so far: who needs much takes several at once.
char* TaskMemory::take_chunk() {
  constexpr uint32_t kMostChunks = 16;
  if (slab_ == slab_end_) {
    void* memory = nullptr;
    if (posix_memalign(&memory, kChunkBytes, slab_chunks_ * kChunkBytes) != 0)
      base::die(1, "out of memory: cannot allocate %zu bytes for tasks",
                slab_chunks_ * kChunkBytes);
    slab_ = static_cast<char*>(memory);
    slab_end_ = slab_ + slab_chunks_ * kChunkBytes;
    if (slab_chunks_ < kMostChunks) slab_chunks_ *= 2;
  }
  char* chunk = slab_;
  slab_ += kChunkBytes;
  return chunk;
}

void* TaskMemory::take_slow(uint32_t size_class, bool* fresh) {
  // acquire: whoever sent the blocks is done with them.
  if (inbox_.load(std::memory_order_relaxed) != nullptr) {
    FreeBlock* block = inbox_.exchange(nullptr, std::memory_order_acquire);
    while (block != nullptr) {
      FreeBlock* next = block->next;
      FreeBlock*& list = free_[chunk_of(block)->size_class];
      block->next = list;
      list = block;
      block = next;
    }
    if (free_[size_class] != nullptr) return take(size_class, fresh);
  }
  *fresh = true;
  const size_t bytes = kBytes[size_class];
  if (static_cast<size_t>(unused_end_[size_class] - unused_[size_class]) < bytes) {
    char* memory = take_chunk();
    auto* chunk = new (memory) Chunk;
    chunk->home = this;
    chunk->size_class = size_class;
    unused_[size_class] = memory + base::kCacheLine;
    unused_end_[size_class] = memory + kChunkBytes;
  }
  char* block = unused_[size_class];
  unused_[size_class] += bytes;
  memset(block, 0, bytes);
  return block;
}

void TaskMemory::push_inbox(TaskMemory* home, FreeBlock* first, FreeBlock* last) {
  FreeBlock* head = home->inbox_.load(std::memory_order_relaxed);
  do {
    last->next = head;
    // release: we are done with the blocks. No ABA: the owner only ever takes the whole list.
  } while (!home->inbox_.compare_exchange_weak(head, first, std::memory_order_release,
                                               std::memory_order_relaxed));
}

void TaskMemory::send_home() {
  if (collected_count_ == 0) return;
  push_inbox(collected_home_, collected_, collected_last_);
  collected_count_ = 0;
  collected_ = nullptr;
}

void TaskMemory::give_elsewhere(TaskMemory* here, TaskMemory* home, FreeBlock* block) {
  if (here == nullptr) {
    push_inbox(home, block, block);
    return;
  }
  if (here->collected_home_ != home) {
    here->send_home();
    here->collected_home_ = home;
  }
  if (chunk_of(block)->size_class < kTaskSizes) ++here->foreign_tasks_;
  if (here->collected_count_ == 0) here->collected_last_ = block;
  block->next = here->collected_;
  here->collected_ = block;
  if (++here->collected_count_ == kCollected) here->send_home();
}

}  // namespace bosk::omp
