// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a thread does, as far as the report tells it apart: one word a thread, which the thread itself writes where that
// changes. The sampler (time_samples.h) reads the words of those that run on workers. (kPolling is found out by ticks of the thread.)
//
// Only while sampling(); who learns of it late is not seen so long. Every word is for itself and nobody orders anything by
// it, so all is relaxed. A tick in the middle of a change does no harm: the word belongs to the thread, not to its worker.
#pragma once

#include <stdint.h>

#include <atomic>

#include "sched/thread.h"

namespace bosk::sched {

enum class Does : uint8_t {
  kSerial,     ///< outside of regions
  kOpening,    ///< opens a region, or closes it
  kComputing,  ///< the program's code in a region
  kPolling,  ///< … a loop in which it waits for others, as looks at its registers tell (spins/poll_looks.h)
  kEnded,     ///< its member has ended: waits for the others, or for what comes next
  kBarrier,   ///< waits in a barrier
  kWaiting,   ///< in a lock, a critical construct, a taskwait …
  kYielding,  ///< gives its turn away by the program's own wish
};

/// Regions are told apart by number (omp/region_counts.h); 0 is none of them.
struct Doing {
  Does what = Does::kSerial;
  uint32_t region = 0;

  friend bool operator==(const Doing&, const Doing&) = default;
};

constexpr uint32_t packed(Doing doing) {
  return static_cast<uint32_t>(doing.what) | doing.region << 8;
}
constexpr Doing unpacked(uint32_t word) { return {static_cast<Does>(word & 0xff), word >> 8}; }

namespace detail {
extern std::atomic<bool> sampled;
}

inline bool sampling() { return detail::sampled.load(std::memory_order_relaxed); }

inline Doing what_does(const Thread* thread) {
  return unpacked(thread->doing.load(std::memory_order_relaxed));
}
inline void now_does(Thread* me, Doing doing) {
  me->doing.store(packed(doing), std::memory_order_relaxed);
}

/// The thread does something else for a while. What it waits for in the midst of another wait is a part of that.
class DoesMeanwhile {
 public:
  DoesMeanwhile(Thread* me, Does what) {
    if (BOSK_LIKELY(!sampling())) return;
    before_ = what_does(me);
    if (before_.what == Does::kPolling) before_.what = Does::kComputing;
    if (what == Does::kWaiting && before_.what != Does::kComputing) return;
    me_ = me;
    now_does(me, {what, before_.region});
  }
  ~DoesMeanwhile() {
    if (BOSK_UNLIKELY(me_ != nullptr)) now_does(me_, before_);
  }
  DoesMeanwhile(const DoesMeanwhile&) = delete;
  DoesMeanwhile& operator=(const DoesMeanwhile&) = delete;

 private:
  Thread* me_ = nullptr;
  Doing before_;
};

}  // namespace bosk::sched
