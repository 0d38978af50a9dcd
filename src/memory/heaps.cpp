// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Heaps of threads, and the blocks in them.
#include "memory/heaps.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>

#include "base/cpu.h"
#include "base/message.h"
#include "base/sanitizers.h"
#include "base/sleeping_lock.h"
#include "memory/heap_regions.h"
#include "memory/record_store.h"
#include "memory/thread_heaps.h"

namespace bosk::memory {

constinit thread_local ThreadHeaps* my_heaps = nullptr;
constinit HeapRegions heap_regions;

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

enum class State : uint8_t { kNotAsked, kMissing, kThere };

constinit base::SleepingLock lock;
// All but the state are written before it says kThere (release), and constant after that (acquire).
constinit std::atomic<State> state{State::kNotAsked};
constinit HeapLibrary library{};
constinit const MachineNodes* known_nodes = nullptr;
constinit int* arenas = nullptr;
constinit pthread_key_t end_of_thread = 0;
// Under the lock; the list is read without it, so it only grows.
constinit std::atomic<ThreadHeaps*> all_heaps{nullptr};
constinit RecordStore<ThreadHeaps, &ThreadHeaps::next_free> heap_records;
/// Counts of threads without a record of their own.
constinit std::atomic<int64_t>* stray_used = nullptr;

// What mimalloc keeps for a thread the child may come to use: a new thread there may have its number, which is its address.
using Gate = ForkGate<base::StdAtomics>;
constinit Gate gate;
/// Threads without a record of their own are inside one at a time.
constinit base::SleepingLock strays;
constinit thread_local bool is_stray_inside = false;

/// Around calls of mimalloc's.
class InMimalloc {
 public:
  explicit InMimalloc(ThreadHeaps* mine) : mine_(mine) {
    if (BOSK_LIKELY(mine != nullptr)) {
      stays_ = gate.enter(mine->inside);
      return;
    }
    stays_ = is_stray_inside;
    if (stays_) return;
    is_stray_inside = true;
    strays.lock();
  }
  ~InMimalloc() {
    if (BOSK_LIKELY(mine_ != nullptr)) {
      gate.leave(mine_->inside, stays_);
    } else if (!stays_) {
      strays.unlock();
      is_stray_inside = false;
    }
  }
  InMimalloc(const InMimalloc&) = delete;
  InMimalloc& operator=(const InMimalloc&) = delete;

 private:
  ThreadHeaps* mine_;
  bool stays_;
};

/// For ThreadSanitizer, which does not see how mimalloc hands memory on, within a segment of it.
void* segment_of(void* block) {
  constexpr uintptr_t kSegment = uintptr_t{32} << 20;
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(block) & ~(kSegment - 1));
}

void free_start(ThreadHeaps* mine, void* block) {
  char* const start = static_cast<char*>(block) - size_t{header_of(block)->offset} * kHeapAlignment;
  base::tell_tsan_given(segment_of(start));
  const InMimalloc inside(mine);
  library.free(start);
}

/// Everything in it goes back to mimalloc.
void empty_hand(ThreadHeaps* mine) {
  for (uint32_t i = 0; i < kClasses; ++i) {
    Hand& hand = mine->hand[i];
    hand.room = ThreadHeaps::most_in_hand(i);
    while (void* block = hand.top) {
      hand.top = *static_cast<void**>(block);
      free_start(mine, block);
    }
  }
  // Who sums up meanwhile may count it twice, or not at all: figures.
  mine->count(mine->here.load(kRelaxed), mine->used_here.load(kRelaxed));
  mine->used_here.store(0, kRelaxed);
}

void let_go_of_heaps(void* heaps) {
  auto* mine = static_cast<ThreadHeaps*>(heaps);
  my_heaps = kNoHeaps;
  empty_hand(mine);
  // mimalloc takes them back when its own key is destroyed; blocks live on.
  for (NodeIndex node = 0; node < known_nodes->count(); ++node) mine->on()[node].heap = nullptr;
  lock.lock();
  heap_records.give(mine);
  lock.unlock();
}

void* open_aside(void* found) {
  my_heaps = kNoHeaps;  // a malloc of the program's may be ours
  *static_cast<bool*>(found) = open_heap_library(&library);
  return nullptr;
}

/// On a thread of its own: the caller may have a stack of any size.
bool open_library() {
  bool found = false;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t opener;
  const int error = pthread_create(&opener, nullptr, open_aside, &found);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) pthread_join(opener, nullptr);
  return found;
}

/// Under the lock.
State open_heaps(const MachineNodes& nodes) {
  heap_records.set_tail(nodes.count() * sizeof(NodeHeap));
  // First of all, so that our key is older than mimalloc's.
  if (pthread_key_create(&end_of_thread, let_go_of_heaps) != 0) return State::kMissing;
  if (!open_library()) {
    base::say(
        "small blocks come from malloc, on whichever node that has: libmimalloc.so.2 was not found "
        "(Debian: libmimalloc2.0)");
    return State::kMissing;
  }
  auto* numbers = static_cast<char*>(
      base::map_pages(nodes.count() * (sizeof(int) + sizeof(std::atomic<int64_t>))));
  if (numbers == nullptr) return State::kMissing;
  stray_used = reinterpret_cast<std::atomic<int64_t>*>(numbers);
  arenas = reinterpret_cast<int*>(stray_used + nodes.count());
  known_nodes = &nodes;
  base::StdAtomics::prepare_barriers();  // else those of the gate are fences
  return reserve_heaps(nodes, library, &heap_regions, arenas) ? State::kThere : State::kMissing;
}

State ask(const MachineNodes& nodes) {
  const State known = state.load(std::memory_order_acquire);
  if (BOSK_LIKELY(known != State::kNotAsked)) return known;
  ThreadHeaps* const before = my_heaps;
  my_heaps = kNoHeaps;  // what is allocated meanwhile comes as pages
  lock.lock();
  State found = state.load(kRelaxed);
  if (found == State::kNotAsked) {
    found = open_heaps(nodes);
    state.store(found, std::memory_order_release);
  }
  lock.unlock();
  my_heaps = before;
  return found;
}

ThreadHeaps* new_heaps() {
  lock.lock();
  ThreadHeaps* mine = heap_records.take();
  // One that is new is all zeros.
  if (mine != nullptr && !mine->listed) {
    mine->listed = true;
    mine->next = all_heaps.load(kRelaxed);
    // release: who sums up finds the link.
    all_heaps.store(mine, std::memory_order_release);
  }
  lock.unlock();
  if (mine == nullptr) return nullptr;
  mine->here.store(0, kRelaxed);
  mine->until_look = 0;
  empty_hand(mine);     // it has room now
  my_heaps = kNoHeaps;  // pthread_setspecific may allocate
  if (pthread_setspecific(end_of_thread, mine) != 0) {
    lock.lock();
    heap_records.give(mine);
    lock.unlock();
    return nullptr;
  }
  my_heaps = mine;
  return mine;
}

/// Null: this thread gets none.
ThreadHeaps* heaps_of_caller(const MachineNodes& nodes) {
  ThreadHeaps* mine = my_heaps;
  if (BOSK_LIKELY(has_heaps(mine))) return mine;
  if (mine == kNoHeaps || ask(nodes) != State::kThere) return nullptr;
  return new_heaps();
}

void count(ThreadHeaps* mine, NodeIndex node, int64_t bytes) {
  if (mine != nullptr)
    mine->count(node, bytes);
  else
    stray_used[node].fetch_add(bytes, kRelaxed);
}

void* allocate_from(ThreadHeaps* mine, NodeIndex node, size_t bytes, size_t alignment,
                    bool zeroed) {
  NodeHeap& own = mine->on()[node];
  const InMimalloc inside(mine);
  if (BOSK_UNLIKELY(own.heap == nullptr)) {
    if (arenas[node] < 0) return nullptr;
    own.heap = library.heap_new_in_arena(arenas[node]);
    if (own.heap == nullptr) return nullptr;
  }
  const bool has_class = bytes <= kMostInHand && alignment <= kHeapAlignment;
  const uint32_t size_class = has_class ? class_of(bytes) : kNoClass;
  const size_t slack = alignment > kHeapAlignment ? alignment : 0;
  const size_t total =
      (has_class ? size_of_class(size_class) : bytes) + sizeof(BlockHeader) + slack;
  void* const start =
      zeroed ? library.heap_zalloc(own.heap, total) : library.heap_malloc(own.heap, total);
  if (BOSK_UNLIKELY(start == nullptr)) return nullptr;
  base::tell_tsan_got(segment_of(start));
  char* block = static_cast<char*>(start) + sizeof(BlockHeader);
  if (slack != 0)
    block = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(block) + alignment - 1) &
                                    ~(alignment - 1));
  BlockHeader* header = header_of(block);
  header->bytes = static_cast<uint32_t>(bytes);
  header->size_class = static_cast<uint8_t>(size_class);
  header->node = static_cast<uint16_t>(node);
  header->offset = static_cast<uint16_t>((block - static_cast<char*>(start)) / kHeapAlignment);
  header->in_use = mark_of(block);
  heap_regions.note_header(reinterpret_cast<uintptr_t>(header));
  mine->count(node, static_cast<int64_t>(bytes));
  return block;
}

/// It asks the kernel now and then: threads move seldom.
NodeIndex node_here(ThreadHeaps* mine, const MachineNodes& nodes) {
  // The counter has gone below zero where it was the hand that came to its end.
  constexpr uint32_t kBetweenLooks = 64;
  if (nodes.count() == 1) {
    mine->until_look = UINT32_MAX;
    return 0;
  }
  const NodeIndex before = mine->here.load(kRelaxed);
  if (--mine->until_look < kBetweenLooks) return before;
  mine->until_look = kBetweenLooks;
  const int cpu = sched_getcpu();
  const topology::Machine& machine = nodes.machine();
  const uint32_t pu = cpu >= 0 ? machine.pu_of_os(static_cast<uint32_t>(cpu)) : kNone;
  const NodeIndex here = pu != kNone ? machine.node_of_pu(pu) : before;
  if (here != before) empty_hand(mine);
  mine->here.store(here, kRelaxed);
  return here;
}

/// *header: of a block in use, and kYes.
Freed find_header(const void* block, BlockHeader** header) {
  if (state.load(std::memory_order_acquire) != State::kThere) return Freed::kElsewhere;
  // Not by where its header would be: pages of an area may begin right behind the regions.
  if (!heap_regions.has(reinterpret_cast<uintptr_t>(block))) return Freed::kElsewhere;
  *header = header_of(block);
  return may_be_block(block) && is_in_use(*header, block) ? Freed::kYes : Freed::kNoBlock;
}

ThreadHeaps* heaps_if_any() { return has_heaps(my_heaps) ? my_heaps : nullptr; }

}  // namespace

void* heap_allocate(const MachineNodes& nodes, NodeIndex node, size_t bytes, size_t alignment,
                    bool zeroed) {
  if (alignment > kMostAligned) return nullptr;
  ThreadHeaps* mine = heaps_of_caller(nodes);
  return mine != nullptr ? allocate_from(mine, node, bytes, alignment, zeroed) : nullptr;
}

void* heap_allocate_here(const MachineNodes& nodes, size_t bytes, size_t alignment, bool zeroed) {
  if (alignment > kMostAligned) return nullptr;
  ThreadHeaps* mine = heaps_of_caller(nodes);
  if (BOSK_UNLIKELY(mine == nullptr)) return nullptr;
  const NodeIndex here = node_here(mine, nodes);
  void* block = allocate_from(mine, here, bytes, alignment, zeroed);
  if (BOSK_LIKELY(block != nullptr)) return block;
  for (NodeIndex node = 0; node < nodes.count() && block == nullptr; ++node)
    if (node != here) block = allocate_from(mine, node, bytes, alignment, zeroed);
  return block;
}

Freed heap_free(void* block) {
  BlockHeader* header;
  if (const Freed found = find_header(block, &header); found != Freed::kYes) return found;
  header->in_use = 0;
  ThreadHeaps* mine = heaps_if_any();
  count(mine, header->node, -static_cast<int64_t>(header->bytes));
  free_start(mine, block);
  return Freed::kYes;
}

Freed heap_look_at(const void* block, HeapBlock* found) {
  BlockHeader* header;
  const Freed answer = find_header(block, &header);
  if (answer == Freed::kYes) *found = {header->bytes, header->node};
  return answer;
}

bool heap_resize(void* block, size_t bytes) {
  BlockHeader* header = header_of(block);
  const size_t offset = size_t{header->offset} * kHeapAlignment;
  const size_t room = header->size_class != kNoClass
                          ? size_of_class(header->size_class)
                          : library.usable_size(static_cast<char*>(block) - offset) - offset;
  // One that shrinks by much had better move to a place of its size.
  if (bytes > room || bytes < room / 4) return false;
  count(heaps_if_any(), header->node,
        static_cast<int64_t>(bytes) - static_cast<int64_t>(header->bytes));
  header->bytes = static_cast<uint32_t>(bytes);
  return true;
}

HeapUse heap_use(NodeIndex node) {
  if (state.load(std::memory_order_acquire) != State::kThere || arenas[node] < 0) return {0, 0};
  int64_t used = stray_used[node].load(kRelaxed);
  for (ThreadHeaps* each = all_heaps.load(std::memory_order_acquire); each != nullptr;
       each = each->next) {
    used += each->on()[node].used.load(kRelaxed);
    if (each->here.load(kRelaxed) == node) used += each->used_here.load(kRelaxed);
  }
  // Of counts that change meanwhile the sum may be off by what is on its way.
  return {uint64_t{1} << heap_regions.shift, used > 0 ? static_cast<uint64_t>(used) : 0};
}

void heap_trim() {
  ThreadHeaps* mine = heaps_if_any();
  if (mine == nullptr) return;
  empty_hand(mine);
  const InMimalloc inside(mine);
  for (NodeIndex node = 0; node < known_nodes->count(); ++node)
    if (mine->on()[node].heap != nullptr) library.heap_collect(mine->on()[node].heap, true);
}

void lock_heaps_for_fork() {
  lock.lock();
  if (!is_stray_inside) strays.lock();
  gate.close();
  // A handler of a signal may fork in the middle of what its thread is at, and goes on with that in the child.
  const ThreadHeaps* mine = my_heaps;
  for (ThreadHeaps* each = all_heaps.load(kRelaxed); each != nullptr; each = each->next)
    if (each != mine) Gate::wait_for(each->inside);
}
void unlock_heaps_after_fork() {
  gate.open();
  if (!is_stray_inside) strays.unlock();
  lock.unlock();
}

}  // namespace bosk::memory
