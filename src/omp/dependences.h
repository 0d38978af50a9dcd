// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dependences among the children of one task, by address.
//
// The table of a task is touched by the thread that executes the task only: it is the one that
// creates children. What other threads touch is the node of a task: a list of successors that is
// closed when the task ends, without a lock. docs/design/tasks.md has the argument.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

namespace bosk::omp {

struct ExplicitTask;
struct MemberQueue;
struct DependenceNode;
struct Task;

/// "`to` waits for me": lies in the node of `to`, hangs in the list of whom it waits for.
struct DependenceEdge {
  DependenceNode* to;
  DependenceEdge* next;
};

/// A task with a `depend` clause, or a thread that waits as such a task would.
struct DependenceNode {
  std::atomic<DependenceEdge*> successors{nullptr};  ///< closed_list(): has ended
  std::atomic<uint32_t> unmet{0};  ///< predecessors that have not ended, plus one while being made
  std::atomic<uint32_t> holders{1};  ///< the task, and each place in a table that refers to it
  ExplicitTask* task = nullptr;      ///< null: a waiting thread
  uint32_t waiter = 0;               ///< its queue
  bool from_malloc = false;

  DependenceEdge* edges() { return reinterpret_cast<DependenceEdge*>(this + 1); }
  bool has_ended() const;
};

enum class DependenceKind : uint8_t { kNone = 0, kIn, kInoutset, kOut };

/// Children of one task that came last at an address. `current` may be joined by more of the same
/// kind (in, inoutset), which then all wait for `previous`.
struct DependenceEntry {
  struct Holder {
    DependenceNode* node;
    Holder* next;
  };
  uintptr_t address;
  DependenceEntry* next;          ///< in its bucket, or free
  DependenceEntry* next_touched;  ///< of the task that is being entered
  Holder* current;
  Holder* previous;
  uint32_t current_count;
  uint32_t previous_count;
  DependenceKind kind;    ///< of `current`
  DependenceKind wanted;  ///< of the task that is being entered; kNone: not touched by it
};

/// One clause list, whichever layout the compiler used.
class DependenceList {
 public:
  explicit DependenceList(void** depend);
  size_t size() const { return total_; }
  uintptr_t address(size_t i) const;
  DependenceKind kind(size_t i) const;

 private:
  void** items_;
  size_t total_;
  size_t outs_;
  size_t exclusives_;
  size_t ins_;
};

/// A table costs nothing until it is used.
struct DependenceTable {
 public:
  /// Makes the node of a new child and orders it after its predecessors. The child is ready when
  /// node_is_ready() says so, once; else whoever ends its last predecessor queues it.
  DependenceNode* enter(MemberQueue* queue, ExplicitTask* task, void** depend);

  /// As for a child, but nobody will wait for it: the node of a thread that waits. Null: nothing to
  /// wait for.
  DependenceNode* probe(MemberQueue* queue, void** depend);

  /// All children have ended, or the parent has: forgets everything. Keeps the memory.
  void clear(MemberQueue* queue);
  bool empty() const { return entry_count_ == 0 && everything_ == nullptr; }

  DependenceTable* next_free = nullptr;

 private:
  using Entry = DependenceEntry;
  using Holder = DependenceEntry::Holder;
  struct Slab;
  /// The entries that a clause list names, each once.
  struct Touched {
    Entry* first = nullptr;
    bool everything = false;
  };

  Touched touch(const DependenceList& list, bool add, MemberQueue* queue);
  Entry* find(uintptr_t address) const;
  Entry* add(MemberQueue* queue, uintptr_t address);
  Entry** bucket(uintptr_t address) const;
  void grow(MemberQueue* queue);
  /// Calls visit(node) for every task that one with these clauses comes after, some of them ended.
  template <class Visit>
  void for_predecessors(const Touched& touched, Visit visit) const;
  DependenceNode* make_node(MemberQueue* queue, const Touched& touched);
  void join(MemberQueue* queue, Entry* entry, DependenceNode* node);
  void forget_entries(MemberQueue* queue);
  void hold(Holder** list, uint32_t* count, DependenceNode* node);
  void drop(MemberQueue* queue, Holder** list, uint32_t* count);
  void drop_ended(MemberQueue* queue, Holder** list, uint32_t* count);
  void* take_cell();
  void give_cell(void* cell);

  Entry** buckets_ = nullptr;
  size_t bucket_count_ = 0;
  size_t entry_count_ = 0;
  DependenceNode* everything_ = nullptr;  ///< the last child that depends on all memory
  void* free_cells_ = nullptr;            ///< for entries and holders
};

/// Called once by the creator after enter(): the child has no unmet predecessor.
bool node_is_ready(DependenceNode* node);

/// The task has ended: calls ready(task) for each successor whose last predecessor it was, and
/// wakes threads that waited for it. `memory` of the calling thread may be null.
void end_node(MemberQueue* queue, DependenceNode* node, void (*ready)(void*, ExplicitTask*),
              void* argument);

/// Frees a node that probe() returned, when unmet is zero.
void free_probe(MemberQueue* queue, DependenceNode* node);

/// A table for an explicit task, and the end of one.
DependenceTable* make_table(MemberQueue* queue);
void free_table(MemberQueue* queue, DependenceTable* table);

}  // namespace bosk::omp
