// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far around its seat a worker is at home, by what it suffers there: docs/binding.md.
//
// Pure: samples in, decisions out; no clock, no kernel. homes.cpp feeds it.
#pragma once

#include <stdint.h>

#include "topology/machine.h"

namespace bosk::sched {

/// What a worker sees when it looks after its home.
struct HomeSample {
  static constexpr uint64_t kUnknown = UINT64_MAX;
  uint64_t now_us;  ///< from 1 on
  uint64_t
      waited_us;  ///< run delay of the kernel thread since it began; kUnknown: nobody has looked
  uint32_t pu;    ///< where it runs; topology::kNone: not on any PU of the machine
  bool is_called = false;  ///< somebody at home where it was seen has called it home
};

/// The home is a domain: the PU of the seat, or one of those around it. A worker that has waited for its
/// PU, or that the kernel took away as soon as it had come home, has somebody beside it who does not go:
/// the home becomes the domain around, at last the whole machine, where the kernel alone decides. After a
/// time without that it becomes smaller again, a domain at a time. Each time that this was too early the
/// time doubles, so that trying costs less and less; each such time at the seat in peace halves it.
///
/// Unless it is a colleague, who is at home elsewhere: then that one is called home, and this one stays. Otherwise two on each other's seats
/// would take each other for strangers, and the longer it lasted the fewer would be at home. Not for long: others may be there as well.
///
/// Where memory has come to the workers, the home ends at the node: farther away all of that would be remote, which costs
/// more than sharing a PU for a while. Within it the same holds; but from other nodes the worker always goes back.
class HomeWatch {
 public:
  static constexpr uint64_t kShortestPatienceUs = 100'000;
  static constexpr uint64_t kLongestPatienceUs = 12'800'000;
  /// Ten looks: of those who were called, and of those whom these find on their seats.
  static constexpr uint64_t kCallingUs = 200'000;
  /// Waiting for more than a tenth of the time is contention; less than a millisecond is nobody's fault.
  static constexpr uint64_t kContendedShare = 10;
  static constexpr uint64_t kLeastWaitUs = 1'000;

  HomeWatch() = default;
  /// A new seat, of which nothing bad is known.
  explicit HomeWatch(uint32_t seat) : seat_(seat) {}

  /// True: the worker is to go home(). `keeps_node`: that is no larger than the seat's node. `call(domain)` calls those home who were seen in
  /// the domain and have their seats elsewhere; false: there are none.
  template <typename Call>
  bool look(const topology::Machine& machine, const HomeSample& sample, bool keeps_node,
            Call&& call) {
    keeps_node_ = keeps_node;
    while (level_ > 0 && domain_at(machine, level_ - 1).id == domain_at(machine, level_).id)
      --level_;
    const bool contended = has_waited(sample);
    if (calm_since_us_ == 0 || sample.is_called) {
      calm_since_us_ = sample.now_us;
      level_ = 0;
      return go_home(machine, sample);
    }
    const bool taken_away =
        went_us_ != 0 && sample.now_us - went_us_ < patience_us_ && !is_home(machine, sample.pu);
    if (contended || taken_away) {
      if (may_call(sample.now_us) && call(home(machine))) return go_home(machine, sample);
      widen(machine, sample.now_us);
      // Where it is now the kernel has put it, or will not leave it.
      return keeps_node && !is_on_node(machine, sample.pu) && go_home(machine, sample);
    }
    if (sample.now_us - calm_since_us_ >= patience_us_) {
      calm_since_us_ = sample.now_us;
      calls_since_us_ = 0;
      if (level_ > 0)
        --level_;
      else if (patience_us_ > kShortestPatienceUs)
        patience_us_ /= 2;
    }
    return go_home(machine, sample);
  }

  /// The smallest domain is the seat itself.
  const topology::Domain& home(const topology::Machine& machine) const {
    return domain_at(machine, level_);
  }
  uint32_t seat() const { return seat_; }
  uint32_t level() const { return level_; }  ///< domains around the seat: 0, the seat itself
  uint64_t patience_us() const { return patience_us_; }
  /// It has gone there: what it had to wait for on the way says nothing of who is there.
  void has_gone_home(const HomeSample& sample) {
    waited_us_ = sample.waited_us;
    waited_at_us_ = sample.now_us;
  }
  /// Another kernel thread plays the worker: its waits are not to be compared with those before.
  void forget_waits() { waited_us_ = HomeSample::kUnknown; }

 private:
  /// So many around the seat; fewer where there are no more that it may be at home in.
  const topology::Domain& domain_at(const topology::Machine& machine, uint32_t level) const {
    const topology::Domain* domain = &machine.pu(seat_);
    for (uint32_t i = 0; i < level && may_grow(machine, *domain); ++i) domain = domain->parent;
    return *domain;
  }
  bool may_grow(const topology::Machine& machine, const topology::Domain& domain) const {
    const topology::Domain* around = domain.parent;
    return around != nullptr && (!keeps_node_ || machine.node_of_pu(around->first_pu) ==
                                                     machine.node_of_pu(around->last_pu));
  }
  bool is_on_node(const topology::Machine& machine, uint32_t pu) const {
    return pu != topology::kNone && machine.node_of_pu(pu) == machine.node_of_pu(seat_);
  }
  bool has_waited(const HomeSample& sample) {
    if (sample.waited_us == HomeSample::kUnknown) return false;
    const bool known = waited_us_ != HomeSample::kUnknown;
    const uint64_t waited = known ? sample.waited_us - waited_us_ : 0;
    const uint64_t elapsed = sample.now_us - waited_at_us_;
    waited_us_ = sample.waited_us;
    waited_at_us_ = sample.now_us;
    return waited >= kLeastWaitUs && waited * kContendedShare >= elapsed;
  }
  bool is_home(const topology::Machine& machine, uint32_t pu) const {
    return home(machine).contains_pu(pu);
  }
  bool go_home(const topology::Machine& machine, const HomeSample& sample) {
    if (home(machine).parent == nullptr || is_home(machine, sample.pu)) return false;
    went_us_ = sample.now_us;
    return true;
  }
  bool may_call(uint64_t now_us) {
    if (calls_since_us_ == 0) calls_since_us_ = now_us;
    return now_us - calls_since_us_ < kCallingUs;
  }
  void widen(const topology::Machine& machine, uint64_t now_us) {
    if (may_grow(machine, home(machine))) ++level_;
    if (patience_us_ < kLongestPatienceUs) patience_us_ *= 2;
    calm_since_us_ = now_us;
    calls_since_us_ = 0;
    went_us_ = 0;
  }

  uint32_t seat_ = 0;
  uint32_t level_ = 0;
  bool keeps_node_ = false;
  uint64_t waited_us_ = HomeSample::kUnknown;
  uint64_t waited_at_us_ = 0;   ///< when that was known
  uint64_t calm_since_us_ = 0;  ///< 0: there was no look yet
  uint64_t went_us_ = 0;        ///< when it was last sent home; 0: not since the home last grew
  uint64_t calls_since_us_ =
      0;  ///< when it first called others home; 0: not since it was last calm, or its home grew
  uint64_t patience_us_ = kShortestPatienceUs;
};

}  // namespace bosk::sched
