// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dependences: tables of parents, nodes of children.
#include "omp/dependences.h"

#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "omp/explicit_task.h"
#include "omp/task_queue_member.h"

namespace bosk::omp {
namespace {

DependenceEdge* closed_list() { return reinterpret_cast<DependenceEdge*>(uintptr_t{1}); }

[[noreturn]] void no_memory() { base::gomp_fatal("Out of memory for task dependences"); }

DependenceNode* allocate_node(MemberQueue* queue, size_t edges) {
  const size_t bytes = sizeof(DependenceNode) + edges * sizeof(DependenceEdge);
  const uint32_t size_class = TaskMemory::record_class(bytes);
  bool fresh;
  const bool outside = size_class == TaskMemory::kClasses;
  void* memory = outside ? malloc(bytes) : queue->memory.take(size_class, &fresh);
  if (memory == nullptr) no_memory();
  auto* node = new (memory) DependenceNode;
  node->from_malloc = outside;
  return node;
}

void free_node(MemberQueue* queue, DependenceNode* node) {
  if (BOSK_UNLIKELY(node->from_malloc))
    free(node);
  else
    TaskMemory::give(queue != nullptr ? &queue->memory : nullptr, node);
}

void let_go(MemberQueue* queue, DependenceNode* node) {
  // acq_rel: whoever frees it comes after everybody's last look.
  if (node->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) free_node(queue, node);
}

/// `to` waits for `node`, unless that has ended. `edge` belongs to `to`.
bool add_successor(DependenceNode* node, DependenceNode* to, DependenceEdge* edge) {
  // acquire: if it has ended, what it did comes before what we let run.
  DependenceEdge* head = node->successors.load(std::memory_order_acquire);
  edge->to = to;
  do {
    if (head == closed_list()) return false;
    edge->next = head;
    // release: who closes the list sees the edge.
  } while (!node->successors.compare_exchange_weak(head, edge, std::memory_order_release,
                                                   std::memory_order_acquire));
  return true;
}

constexpr size_t kCellBytes = sizeof(DependenceEntry);
constexpr size_t kCellsAtOnce = 32;
constexpr size_t kFirstBuckets = 32;

}  // namespace

bool DependenceNode::has_ended() const {
  return successors.load(std::memory_order_acquire) == closed_list();
}

// ---- clause lists

DependenceList::DependenceList(void** depend) {
  const auto word = [depend](size_t i) { return reinterpret_cast<size_t>(depend[i]); };
  if (depend[0] != nullptr) {
    // Old layout: count, outs, then the addresses, outs first.
    total_ = word(0);
    outs_ = word(1);
    exclusives_ = 0;
    ins_ = total_ - outs_;
    items_ = depend + 2;
  } else {
    total_ = word(1);
    outs_ = word(2);
    exclusives_ = word(3);
    ins_ = word(4);
    items_ = depend + 5;
  }
}

uintptr_t DependenceList::address(size_t i) const {
  // The last ones point to omp_depend_t objects: address, kind.
  if (i >= outs_ + exclusives_ + ins_) return static_cast<const uintptr_t*>(items_[i])[0];
  return reinterpret_cast<uintptr_t>(items_[i]);
}

DependenceKind DependenceList::kind(size_t i) const {
  if (i < outs_ + exclusives_)
    return DependenceKind::kOut;  // mutexinoutset in some order: as inout
  if (i < outs_ + exclusives_ + ins_) return DependenceKind::kIn;
  switch (static_cast<const uintptr_t*>(items_[i])[1]) {
    case 1:
      return DependenceKind::kIn;
    case 5:
      return DependenceKind::kInoutset;
    default:
      return DependenceKind::kOut;  // out 2, inout 3, mutexinoutset 4
  }
}

// ---- tables

void* DependenceTable::take_cell() {
  if (free_cells_ == nullptr) {
    // Kept until the process ends: tables are handed on.
    auto* slab = static_cast<char*>(malloc(kCellsAtOnce * kCellBytes));
    if (slab == nullptr) no_memory();
    for (size_t i = 0; i < kCellsAtOnce; ++i) give_cell(slab + i * kCellBytes);
  }
  void* cell = free_cells_;
  free_cells_ = *static_cast<void**>(cell);
  return cell;
}

void DependenceTable::give_cell(void* cell) {
  *static_cast<void**>(cell) = free_cells_;
  free_cells_ = cell;
}

void DependenceTable::hold(Holder** list, uint32_t* count, DependenceNode* node) {
  auto* holder = static_cast<Holder*>(take_cell());
  // relaxed: this thread holds the node already.
  node->holders.fetch_add(1, std::memory_order_relaxed);
  holder->node = node;
  holder->next = *list;
  *list = holder;
  ++*count;
}

void DependenceTable::drop(MemberQueue* queue, Holder** list, uint32_t* count) {
  for (Holder* holder = *list; holder != nullptr;) {
    Holder* next = holder->next;
    let_go(queue, holder->node);
    give_cell(holder);
    holder = next;
  }
  *list = nullptr;
  *count = 0;
}

void DependenceTable::drop_ended(MemberQueue* queue, Holder** list, uint32_t* count) {
  while (Holder* holder = *list) {
    if (holder->node->has_ended()) {
      *list = holder->next;
      --*count;
      let_go(queue, holder->node);
      give_cell(holder);
    } else {
      list = &holder->next;
    }
  }
}

DependenceEntry** DependenceTable::bucket(uintptr_t address) const {
  const uint64_t mixed = (address >> 3) * 0x9e3779b97f4a7c15u;
  return &buckets_[(mixed >> 32) & (bucket_count_ - 1)];
}

DependenceEntry* DependenceTable::find(uintptr_t address) const {
  if (bucket_count_ == 0) return nullptr;
  for (Entry* entry = *bucket(address); entry != nullptr; entry = entry->next)
    if (entry->address == address) return entry;
  return nullptr;
}

/// Before the table grows, what nobody waits for any more goes: a parent that uses ever new
/// addresses needs memory for its living children only.
void DependenceTable::grow(MemberQueue* queue) {
  Entry* all = nullptr;
  for (size_t i = 0; i < bucket_count_; ++i) {
    while (Entry* entry = buckets_[i]) {
      buckets_[i] = entry->next;
      drop_ended(queue, &entry->current, &entry->current_count);
      // While brothers may join `current`, the tasks before it count.
      drop_ended(queue, &entry->previous, &entry->previous_count);
      if (entry->wanted == DependenceKind::kNone && entry->current_count == 0 &&
          entry->previous_count == 0) {
        give_cell(entry);
        --entry_count_;
      } else {
        entry->next = all;
        all = entry;
      }
    }
  }
  if (bucket_count_ == 0 || entry_count_ * 2 > bucket_count_) {
    const size_t larger = bucket_count_ == 0 ? kFirstBuckets : bucket_count_ * 4;
    free(buckets_);
    buckets_ = static_cast<Entry**>(calloc(larger, sizeof(Entry*)));
    if (buckets_ == nullptr) no_memory();
    bucket_count_ = larger;
  }
  while (all != nullptr) {
    Entry* entry = all;
    all = entry->next;
    Entry** at = bucket(entry->address);
    entry->next = *at;
    *at = entry;
  }
}

DependenceEntry* DependenceTable::add(MemberQueue* queue, uintptr_t address) {
  if (entry_count_ >= bucket_count_) grow(queue);
  auto* entry = new (take_cell()) Entry{};
  entry->address = address;
  entry->kind = DependenceKind::kOut;
  // All that the entry would know of came before the task that depends on everything.
  if (everything_ != nullptr) hold(&entry->current, &entry->current_count, everything_);
  Entry** at = bucket(address);
  entry->next = *at;
  *at = entry;
  ++entry_count_;
  return entry;
}

DependenceTable::Touched DependenceTable::touch(const DependenceList& list, bool add_new,
                                                MemberQueue* queue) {
  Touched touched;
  for (size_t i = 0; i < list.size(); ++i) {
    const uintptr_t address = list.address(i);
    if (address == 0) {  // omp_all_memory
      touched.everything = true;
      continue;
    }
    Entry* entry = find(address);
    if (entry == nullptr) {
      if (!add_new) continue;
      entry = add(queue, address);
    }
    const DependenceKind kind = list.kind(i);
    if (entry->wanted == DependenceKind::kNone) {
      entry->wanted = kind;
      entry->next_touched = touched.first;
      touched.first = entry;
    } else if (entry->wanted != kind) {
      entry->wanted = DependenceKind::kOut;
    }
  }
  return touched;
}

template <class Visit>
void DependenceTable::for_predecessors(const Touched& touched, Visit visit) const {
  const auto all = [&visit](const Holder* holder) {
    for (; holder != nullptr; holder = holder->next) visit(holder->node);
  };
  if (touched.everything) {
    if (everything_ != nullptr) visit(everything_);
    for (size_t i = 0; i < bucket_count_; ++i)
      for (const Entry* entry = buckets_[i]; entry != nullptr; entry = entry->next) {
        all(entry->current);
        // Those of `current` that have ended may be gone from it, so `previous` has to be asked
        // too.
        all(entry->previous);
      }
    return;
  }
  for (const Entry* entry = touched.first; entry != nullptr; entry = entry->next_touched) {
    const bool joins = entry->wanted == entry->kind && entry->kind != DependenceKind::kOut;
    all(joins ? entry->previous : entry->current);
  }
}

DependenceNode* DependenceTable::make_node(MemberQueue* queue, const Touched& touched) {
  size_t edges = 0;
  for_predecessors(touched, [&edges](DependenceNode* node) { edges += !node->has_ended(); });
  DependenceNode* node = allocate_node(queue, edges);
  // One more than there are edges, so that it cannot become ready while it is being linked.
  node->unmet.store(static_cast<uint32_t>(edges) + 1, std::memory_order_relaxed);
  return node;
}

void DependenceTable::join(MemberQueue* queue, Entry* entry, DependenceNode* node) {
  const DependenceKind kind = entry->wanted;
  entry->wanted = DependenceKind::kNone;
  if (kind == entry->kind && kind != DependenceKind::kOut) {
    // Many readers and no writer: forget those that have ended, each time their number has doubled.
    if (entry->current_count >= 16 && (entry->current_count & (entry->current_count - 1)) == 0)
      drop_ended(queue, &entry->current, &entry->current_count);
  } else {
    drop(queue, &entry->previous, &entry->previous_count);
    if (kind != DependenceKind::kOut) {
      entry->previous = entry->current;
      entry->previous_count = entry->current_count;
      entry->current = nullptr;
      entry->current_count = 0;
    } else {
      drop(queue, &entry->current, &entry->current_count);
    }
    entry->kind = kind;
  }
  hold(&entry->current, &entry->current_count, node);
}

void DependenceTable::forget_entries(MemberQueue* queue) {
  for (size_t i = 0; i < bucket_count_ && entry_count_ != 0; ++i) {
    while (Entry* entry = buckets_[i]) {
      buckets_[i] = entry->next;
      drop(queue, &entry->current, &entry->current_count);
      drop(queue, &entry->previous, &entry->previous_count);
      give_cell(entry);
      --entry_count_;
    }
  }
}

void DependenceTable::clear(MemberQueue* queue) {
  forget_entries(queue);
  if (everything_ != nullptr) let_go(queue, everything_);
  everything_ = nullptr;
}

DependenceNode* DependenceTable::enter(MemberQueue* queue, ExplicitTask* task, void** depend) {
  const DependenceList list(depend);
  const Touched touched = touch(list, true, queue);
  DependenceNode* node = make_node(queue, touched);
  node->task = task;
  task->extras()->node = node;
  DependenceEdge* edge = node->edges();
  uint32_t missing = node->unmet.load(std::memory_order_relaxed) - 1;
  for_predecessors(touched, [&](DependenceNode* predecessor) {
    // Those that had ended when the edges were counted have none. `missing` may not run out early:
    // whoever ends meanwhile only makes fewer edges needed.
    if (missing != 0 && add_successor(predecessor, node, edge)) {
      ++edge;
      --missing;
    }
  });
  // relaxed: node_is_ready() is the creator's own step, and it is acq_rel.
  if (missing != 0) node->unmet.fetch_sub(missing, std::memory_order_relaxed);
  if (touched.everything) {
    for (Entry* entry = touched.first; entry != nullptr; entry = entry->next_touched)
      entry->wanted = DependenceKind::kNone;
    clear(queue);
    node->holders.fetch_add(1, std::memory_order_relaxed);
    everything_ = node;
  } else {
    for (Entry* entry = touched.first; entry != nullptr;) {
      Entry* next = entry->next_touched;
      join(queue, entry, node);
      entry = next;
    }
  }
  return node;
}

DependenceNode* DependenceTable::probe(MemberQueue* queue, void** depend) {
  if (empty()) return nullptr;
  const DependenceList list(depend);
  // An address that the table does not know comes after the task that depends on everything.
  const Touched touched = touch(list, everything_ != nullptr, queue);
  DependenceNode* node = make_node(queue, touched);
  bool linked = false;
  node->waiter = queue->number;
  DependenceEdge* edge = node->edges();
  uint32_t missing = node->unmet.load(std::memory_order_relaxed) - 1;
  for_predecessors(touched, [&](DependenceNode* predecessor) {
    if (missing != 0 && add_successor(predecessor, node, edge)) {
      ++edge;
      --missing;
      linked = true;
    }
  });
  for (Entry* entry = touched.first; entry != nullptr; entry = entry->next_touched)
    entry->wanted = DependenceKind::kNone;
  const uint32_t by = missing + 1;
  if (node->unmet.fetch_sub(by, std::memory_order_acq_rel) == by || !linked) {
    free_node(queue, node);
    return nullptr;
  }
  return node;
}

// ---- nodes

bool node_is_ready(DependenceNode* node) {
  // acq_rel: the child comes after those predecessors that have ended already.
  return node->unmet.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

void end_node(MemberQueue* queue, DependenceNode* node, void (*ready)(void*, ExplicitTask*),
              void* argument) {
  // acq_rel: hands on what the task did; sees the edges.
  DependenceEdge* edge = node->successors.exchange(closed_list(), std::memory_order_acq_rel);
  // They were put in front one after the other; the first to come shall be the first to go.
  DependenceEdge* in_order = nullptr;
  while (edge != nullptr) {
    DependenceEdge* next = edge->next;
    edge->next = in_order;
    in_order = edge;
    edge = next;
  }
  while (in_order != nullptr) {
    // After the last step below the successor may run, end, and take the edge with it.
    DependenceNode* to = in_order->to;
    in_order = in_order->next;
    ExplicitTask* task = to->task;
    const uint32_t waiter = to->waiter;
    if (to->unmet.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    if (task != nullptr)
      ready(argument, task);
    else
      poke_number(waiter);
  }
  let_go(queue, node);
}

void free_probe(MemberQueue* queue, DependenceNode* node) { free_node(queue, node); }

DependenceTable* make_table(MemberQueue* queue) {
  DependenceTable* table = queue->free_tables;
  if (table != nullptr) {
    queue->free_tables = table->next_free;
    return table;
  }
  void* memory = malloc(sizeof(DependenceTable));
  if (memory == nullptr) no_memory();
  return new (memory) DependenceTable;
}

void free_table(MemberQueue* queue, DependenceTable* table) {
  table->clear(queue);
  table->next_free = queue->free_tables;
  queue->free_tables = table;
}

}  // namespace bosk::omp
