// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How long a worker that has nothing to do leaves the ghosts of other nodes to those who are nearer.
//
// Members of a team end one after the other, and the first of them has nothing to do until the next team of its own
// node opens. If it took a ghost of another node meanwhile, it would be missed at home, somebody from elsewhere would
// take its place, and so on: threads would go round the machine, and the memory that they have touched would stay
// behind. So it waits first, for as long as it has just worked. In a program whose parts are about equal the next team
// opens before that. Who goes on to help far away waits for so long every fourth time only, else for a quarter of it:
// where a node has more to do for good that costs less than a third of a helper's time. But the whole wait must
// come again and again. Two workers that have changed places may otherwise miss their own teams' regions for ever, by the same
// time in each round.
//
// What is together stays together: a part of a small team that has begun at home, or that another node has adopted (adoption.h), it leaves
// alone for as long again as it has just worked.
//
// Pure: times in, decisions out. One worker's, and written by whoever plays it.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

class FarWait {
 public:
  static constexpr uint64_t kNotYet = UINT64_MAX;
  /// Less than this part of what it worked before is no work: it has only looked.
  static constexpr uint64_t kNothing = 16;
  static constexpr uint32_t kWholeEvery = 4;

  /// It has nothing to do from now on. `fresh`: what it waits for if it has never worked, `most`: in any case at most.
  void begin(uint64_t now, uint64_t fresh, uint64_t most) {
    const uint64_t worked = now - left_;
    if (left_ == 0) {
      due_ = now + fresh;
      for_parts_.store(due_ + fresh, std::memory_order_relaxed);
    } else if (worked < worked_ / kNothing) {
      worked_ /= 2;
    } else {
      worked_ = worked;
      const uint64_t wait = far_in_a_row_ % kWholeEvery == 0 ? worked : worked / kWholeEvery;
      due_ = now + (wait < most ? wait : most);
      for_parts_.store(due_ + (worked < most ? worked : most), std::memory_order_relaxed);
    }
    // relaxed, as all of it: others only look whether it is worth calling.
    at_.store(due_, std::memory_order_relaxed);
  }
  /// There is something to do. `far`: a ghost of another node, which it may take now.
  void end(uint64_t now, bool far) {
    left_ = now;
    far_in_a_row_ = far ? far_in_a_row_ + 1 : 0;
    if (!far) taken();
  }
  /// It has taken something, and waits again before it goes far the next time.
  void taken() { at_.store(kNotYet, std::memory_order_relaxed); }

  /// When it may take ghosts of other nodes; kNotYet while it works.
  uint64_t at() const { return at_.load(std::memory_order_relaxed); }
  /// When it may take a part of what is together on another node, or is to be.
  uint64_t at_for_parts() const {
    return at() == kNotYet ? kNotYet : for_parts_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> at_{kNotYet};
  std::atomic<uint64_t> for_parts_{kNotYet};  ///< of the last wait
  uint64_t due_ = 0;                          ///< at_, while it idles
  uint64_t left_ = 0;                         ///< when it had something to do last; 0: never
  uint64_t worked_ = 0;                       ///< for how long it had something to do
  uint32_t far_in_a_row_ = 0;                 ///< how often that was on another node
};

}  // namespace bosk::sched
