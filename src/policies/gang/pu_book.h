// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which PU belongs to which gang. See gang.h. The caller guards it; owned() needs no guard.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/mapped_array.h"
#include "policies/policy.h"

namespace bosk::policies::gang {

class PuBook {
 public:
  /// False: out of memory.
  bool start(const topology::Machine& machine);
  void stop();
  /// All PUs are nobody's.
  void clear();

  /// PUs below the domain that belong to nobody.
  uint32_t free_below(uint32_t domain) const { return free_[domain]; }
  bool owned(uint32_t pu) const {
    // relaxed: a hint for who has nothing to do; the answer is found again under the guard.
    return pus_[pu].gang.load(std::memory_order_relaxed) != kNone;
  }

  /// Is it a gang that runs? Its number, else kNone. O(gangs that run).
  uint32_t find(EntityToken token) const;
  /// A gang without PUs yet. kNone: out of memory.
  uint32_t add(EntityToken token);
  /// It gets another thread on a PU that is its own or nobody's.
  void occupy(uint32_t gang, uint32_t pu);
  /// It runs no longer; its PUs are nobody's.
  void drop(uint32_t gang);

  /// A thread of the PU's gang has ended there.
  void thread_ended(uint32_t pu);
  /// The PU has nothing to run. True: it is still its gang's, whose thread may be on its way to it; it
  /// shall look again. After kAsks times it is nobody's.
  bool asked_for_work(uint32_t pu);
  static constexpr uint32_t kAsks = 3;

  /// A tick of one of the gang's PUs. True: since restart() there were `slice` for each that it has.
  bool count_tick(uint32_t gang, uint32_t slice) {
    Gang& g = gangs_[gang];
    return ++g.ticks >= uint64_t{slice} * g.pus;
  }
  void restart_slice(uint32_t gang) { gangs_[gang].ticks = 0; }

 private:
  struct Gang {
    EntityToken token;  ///< null: the number is not in use
    uint32_t pus;       ///< that belong to it
    uint64_t ticks;
  };
  struct Pu {
    std::atomic<uint32_t> gang;  ///< who it belongs to; kNone: nobody
    uint32_t threads;
    uint32_t asked;
  };

  void give_back(uint32_t pu);
  void count(uint32_t pu, uint32_t by);

  const topology::Machine* machine_ = nullptr;
  Pu* pus_ = nullptr;
  uint32_t* free_ = nullptr;
  base::MappedArray<Gang> gangs_;
};

}  // namespace bosk::policies::gang
