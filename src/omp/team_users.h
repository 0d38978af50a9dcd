// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The members of teams as users of what is attached to them: the question that policies/memory/data_plan.h answers. The teams
// themselves are not needed for it: owners are numbers.
#pragma once

#include "policies/memory/data_plan.h"

namespace bosk::omp {

class TeamUsers {
 public:
  TeamUsers() = default;
  TeamUsers(const TeamUsers&) = delete;
  TeamUsers& operator=(const TeamUsers&) = delete;

  void clear();
  /// `threads` threads at home on `node` (memory::kNoNode: nobody knows) use all that the owner has attached, alike. `refresh`: the
  /// kernel is asked first where the pages are. With preemption on. False: out of memory.
  bool add(memory::AreaTable& areas, memory::OwnerId owner, uint32_t node, uint32_t threads,
           bool refresh);
  bool empty() const { return uses_.empty(); }
  /// users and uses, of which the rest of the question is to be filled in.
  void put_into(policies::MemoryQuestion* question) const;
  void release();

 private:
  base::MappedArray<policies::MemoryUser> users_;
  base::MappedArray<policies::MemoryUse> uses_;
  base::MappedArray<memory::AreaUse> found_;
};

/// Moves or marks what they use, as BOSK_MEMORY_MOVES says or by costs, and notes it for the report. False: nothing moves. With
/// preemption on.
bool decide_for_users(memory::AreaTable& areas, const TeamUsers& users);

}  // namespace bosk::omp
