// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who uses which memory, and from where: what adapters hand over, of bubbles (threads/bubble_users.h) and of teams
// (omp/settle_memory.cpp, omp/watched_teams.cpp). It is a copy: whoever is meant may have gone when it is read.
#pragma once

#include "policies/memory/data_plan.h"

namespace bosk::locality {

class Users {
 public:
  Users() = default;
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

  void clear();
  /// Threads on `node` (memory::kNoNode: nobody knows), which use alike what is added from now on.
  void begin_user(memory::NodeIndex node, uint32_t threads);
  /// They go over that part of an area. False: out of memory.
  bool add_use(const memory::AreaUse& use, float share);
  /// They go over all that the owner has attached. `refresh`: the kernel is asked first where the pages are. With preemption on.
  /// False: out of memory.
  bool add_all_of(memory::AreaTable& areas, memory::OwnerId owner, bool refresh);
  bool empty() const { return uses_.empty(); }
  /// users and uses, of which the rest of the question is to be filled in.
  void put_into(policies::MemoryQuestion* question) const;
  void release();

 private:
  policies::MemoryUser next_{};
  base::MappedArray<policies::MemoryUser> users_;
  base::MappedArray<policies::MemoryUse> uses_;
  base::MappedArray<memory::AreaUse> found_;
};

}  // namespace bosk::locality
