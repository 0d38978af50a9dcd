// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pool of workers without kernel threads, for tests that decide what runs on them and run nothing.
#pragma once

#include <stdint.h>

#include <memory>
#include <vector>

#include "sched/joint_turn.h"

class BareWorkers {
 public:
  void make(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      workers_.push_back(std::make_unique<bosk::sched::Worker>());
      workers_[i]->index = i;
      workers_[i]->pool = pool_.get();
      pool_->workers[i].store(workers_[i].get());
    }
    pool_->worker_count.store(count);
    pool_->worker_limit = count;
  }

  bosk::sched::Pool* pool() { return pool_.get(); }
  bosk::sched::Worker* at(uint32_t i) { return workers_[i].get(); }
  auto begin() { return workers_.begin(); }
  auto end() { return workers_.end(); }

  /// On which it is the team's turn.
  uint32_t in_turn_of(const bosk::sched::Bubble* team) {
    uint32_t count = 0;
    for (auto& w : workers_) count += bosk::sched::team_in_turn(w.get()) == team ? 1 : 0;
    return count;
  }

 private:
  std::unique_ptr<bosk::sched::Pool> pool_ = std::make_unique<bosk::sched::Pool>();
  std::vector<std::unique_ptr<bosk::sched::Worker>> workers_;
};
