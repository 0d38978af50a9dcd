// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Does somebody else want the CPUs of a pool? Then its idle workers sleep soon: who polls uses up what the kernel owes him, and gets the CPU
// late when there is work for him, while one that has slept gets it at once. docs/waiting.md.
#pragma once

#include <stdint.h>

#include <atomic>

#include "sched/tuning.h"

namespace bosk::sched {

/// Of a pool. A worker that polls looks at the clock now and then; where it has not done so for long somebody else has used the time. Once
/// may have been the host's doing, if this is a virtual machine. Two in short order are believed for a while, and each time that it proves
/// true again soon after that while, for twice as long.
///
/// Any worker notes and asks: relaxed, a preference; two that note at once may lose one note.
class Rivals {
 public:
  /// All times in cycles, `us` of them a microsecond. Between the last look of a polling worker and this one, `now`, there were `gap`.
  /// True: that was not known.
  bool note_gap(uint64_t now, uint64_t gap, uint64_t us) {
    // Signed: another CPU's clock may be a little behind.
    if (static_cast<int64_t>(gap) < static_cast<int64_t>(tuning::kLongGapUs * us)) return false;
    const uint64_t last = last_.exchange(now, std::memory_order_relaxed);
    if (last == 0 || now - last > tuning::kGapsTogetherUs * us || are_here(now)) return false;
    note_seen(now, us);
    return true;
  }
  /// They are here, for certain.
  void note_seen(uint64_t now, uint64_t us) {
    if (are_here(now)) return;
    const uint64_t until = until_.load(std::memory_order_relaxed);
    uint64_t pause = pause_.load(std::memory_order_relaxed);
    const bool again = pause != 0 && now - until < 2 * pause;
    pause = !again                                      ? tuning::kFirstRivalsUs * us
            : pause < tuning::kLongestRivalsUs * us / 2 ? 2 * pause
                                                        : tuning::kLongestRivalsUs * us;
    pause_.store(pause, std::memory_order_relaxed);
    until_.store(now + pause, std::memory_order_relaxed);
  }
  /// They were here until lately, and nobody knows whether they still are. True once: it is time to ask.
  bool may_have_gone(uint64_t now) {
    const uint64_t until = until_.load(std::memory_order_relaxed);
    if (now < until || until == asked_.load(std::memory_order_relaxed)) return false;
    asked_.store(until, std::memory_order_relaxed);
    return now - until < 2 * pause_.load(std::memory_order_relaxed);
  }
  bool are_here(uint64_t now) const { return now < until_.load(std::memory_order_relaxed); }
  /// How long to poll, of what the wait policy allows. Who has asked for long polling by OMP_WAIT_POLICY=active has it.
  uint64_t poll(uint64_t now, uint64_t allowed, uint64_t us) const {
    const bool shorter =
        allowed > tuning::kPollBesideOthersUs * us && allowed <= tuning::kMostLearntPollUs * us;
    return shorter && are_here(now) ? tuning::kPollBesideOthersUs * us : allowed;
  }

 private:
  std::atomic<uint64_t> last_{0};
  std::atomic<uint64_t> until_{0};
  std::atomic<uint64_t> pause_{0};
  std::atomic<uint64_t> asked_{0};  ///< `until_` of when it was asked last
};

}  // namespace bosk::sched
