// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decides what becomes of users and their memory, and carries out what that means for the memory:
//
//     users (users.h) ─┐
//     costs (costs.h) ─┼─▶ policies/memory/data_plan.h ─▶ moved, or marked for next-touch ─▶ noted for the report
//     nodes, books ────┘
//
// Nothing here knows who the users are. Preemption is on throughout: books are locked, and the kernel is asked where pages are.
#pragma once

#include "base/memory_moves_setting.h"
#include "locality/users.h"

namespace bosk::locality {

class Decider {
 public:
  /// `users` stay as they are while it is there.
  Decider(memory::AreaTable& areas, const Users& users) : areas_(areas), users_(users) {}
  ~Decider() { nodes_.release(); }
  Decider(const Decider&) = delete;
  Decider& operator=(const Decider&) = delete;

  /// False: nobody uses anything, or there is no memory to think with, or costs are those of another machine.
  bool prepare();
  /// So many threads run on the node beside those who use the memory. 0 until it is said.
  void set_other_threads(memory::NodeIndex node, uint32_t threads) {
    nodes_[node].other_threads = threads;
  }

  /// `allowed`: bits of actions. False: no memory. The plan must be fresh or released.
  bool plan(uint32_t allowed, policies::DataPlan* plan) const;
  /// What the plan means for memory.
  void bring(const policies::DataPlan& plan, policies::DataMoved* moved) const {
    policies::move_data(areas_, plan, moved);
  }
  /// All threads stay where they are; their memory comes as `moves` says, or by costs. Noted. *moved (zeroed): what was done;
  /// anything() is false if nothing was.
  void bring_data(base::MemoryMoves moves, policies::DataMoved* moved) const;

 private:
  memory::AreaTable& areas_;
  const Users& users_;
  const memory::CostTable* costs_ = nullptr;
  base::MappedArray<policies::NodeState> nodes_;
};

/// The same for who has nothing else to say. True: something was done.
bool bring_data(memory::AreaTable& areas, const Users& users, base::MemoryMoves moves);

/// For the report, once for each decision that was carried out.
void note_decision(const policies::DataPlan& plan, const policies::DataMoved& moved,
                   base::MemoryMoves moves);

/// Would all of an area be marked for next-touch by these costs alone, for one thread at home on `node` that goes over it so many
/// `times` (topology::kNone: nobody knows)? A pure function. No where a cost is unknown, or nothing of it is elsewhere.
bool is_worth_marking(const memory::CostTable& costs, const uint64_t* bytes_on,
                      memory::NodeIndex node, uint32_t times, uint8_t use);

/// While it is there nobody else decides who takes turns: of two one would bring threads to memory that the other is taking away.
/// Taken with preemption on, and held while pages move.
class OneDecides {
 public:
  OneDecides();
  ~OneDecides();
  OneDecides(const OneDecides&) = delete;
  OneDecides& operator=(const OneDecides&) = delete;
};
/// In the child: whoever decided is not there.
void forget_deciding_after_fork();

}  // namespace bosk::locality
