// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bubble of a team: its ghosts as an index range, its join and its barrier.
#pragma once

#include <stdint.h>

#include <atomic>
#include <bit>

#include "base/atomics_policy.h"
#include "base/cpu.h"
#include "context/identity.h"
#include "context/switch.h"
#include "sched/adoption.h"
#include "sched/barrier_protocol.h"
#include "sched/claim_protocol.h"
#include "sched/distance.h"
#include "sched/entity.h"
#include "sched/helper_protocol.h"
#include "sched/join_protocol.h"

namespace bosk::sched {

struct Thread;
struct Worker;
struct Bubble;

/// Ghosts that a thread ran one after the other: how many, and the numbers of those that have not been
/// noted as ended (ended_members.h). Returned in registers.
struct Served {
  uint32_t count = 0;
  uint32_t base = 0;  ///< a multiple of 64
  uint64_t mask = 0;  ///< bit i: number base + i
};

/// Runs the claimed ghost to its end on the calling thread, then claims and runs others one by one,
/// until none is left unclaimed. Returns which it ran. `floats` is the calling thread's floating-point
/// environment now. Called with preemption on.
using ServeGhosts = Served (*)(Bubble* bubble, Thread* me, Claim first,
                               context::FloatControl floats);

/// Runs one claimed ghost on the calling carrier's own stack and identity.
using ServeAssigned = void (*)(Bubble* bubble, Thread* me, uint32_t index);

/// Do a team's members have to run at the same time (joint_turn.h)?
enum class Together : uint8_t {
  kNo,
  kExpected,  ///< those of earlier regions with this function polled for each other
  kPolls,     ///< one was found to poll
  kGang,      ///< so it was said (gangs.h)
};

/// Objects are type-stable: never returned to the allocator while the pool lives, so that a thief may
/// read a bubble that was recycled under it; the generation in the claim word makes its claim fail.
struct alignas(base::kCacheLine) Bubble : Entity {
  // One line that thieves touch.
  ClaimWord<base::StdAtomics> ghosts;
  /// Members that have not finished, the opener counted as one. Each worker subtracts its batch; who
  /// takes it to zero completes the bubble.
  JoinCount<base::StdAtomics> pending;
  uint32_t size = 1;
  ServeGhosts serve = nullptr;
  ServeAssigned serve_assigned = nullptr;  ///< for ghosts that need their own stacks
  /// Bubble of the thread that opened this one. Like depth relaxed: a thief looks before it claims,
  /// perhaps while the object is opened for another team (descends_from).
  std::atomic<Bubble*> parent{nullptr};
  Thread* opener = nullptr;  ///< who waits for the join
  /// Where it was opened; relaxed: looked at before a claim, like the parent.
  std::atomic<Worker*> home{nullptr};
  std::atomic<uint32_t> depth{0};  ///< nesting depth; the initial bubble has 0
  uint32_t next_home = 0;  ///< domain where the first ghost is at home; while Pool::machine is set
  /// PUs whose workers may take its ghosts and members; relaxed: see may_take().
  std::atomic<uint64_t> reach{kReachAll};
  /// PUs of the nodes where it is at home: workers of others leave its ghosts to theirs for a while (far_wait.h).
  std::atomic<uint64_t> near{kReachAll};

  bool own_stacks = false;  ///< ghosts run on the stacks of their identities
  bool persistent = false;  ///< level 1: ghosts keep their identity from region to region
  bool flat = false;        ///< every member is native: no ghost, no queue
  /// Not 0: many ghosts for many workers, and who claims takes an n-th of them into its share, this
  /// being the logarithm of n.
  uint8_t share_shift = 0;
  uint32_t first_ghost = 1;  ///< index of the first member that is not native
  /// Not null: the ghost that is claimed as number i is member order[i].
  const uint32_t* order = nullptr;
  uint64_t sequence = 0;         ///< number of the region; of teams that have native members
  uint64_t barriers_before = 0;  ///< flat teams: the number of the last barrier before this region
  uint64_t times_opened = 0;     ///< as a team that is not flat
  /// Identities of finished members, kept until the bubble ends (strict identities only).
  std::atomic<context::Identity*> held{nullptr};
  Bubble* next_free = nullptr;
  Adoption adoption;  ///< by another node than those of `near`
  /// The region's number in the report; 0: none. relaxed: of who looks before he claims.
  std::atomic<uint32_t> region{0};

  // What waiting and idle workers poll: not written by regions without barriers and tasks.
  alignas(base::kCacheLine) BarrierWord<base::StdAtomics> meeting;
  /// Hint that work which any waiting member can do (tasks) is queued; see note_team_work().
  std::atomic<uint32_t> queued_work{0};
  std::atomic<uint32_t> cancelled{0};  ///< waits that may be cancelled return
  std::atomic<Together> together{Together::kNo};
  std::atomic<uint32_t> gang_ticks{0};  ///< how long a gang's turns last; set before `together`
  // In cycles, of the joint turn that it began last:
  std::atomic<uint64_t> turn_until{0};
  std::atomic<uint64_t> turn_lingers_until{
      0};  ///< a gang's whose region has ended: for the next one
  /// Workers whose members have ended and that run queued work; open once work was queued.
  HelperCount<base::StdAtomics> helpers;

  // Of who may not be in the team any more, and looks whether it has to run together. relaxed: hints, written by set_opening().
  uint32_t size_seen() const {
    return std::atomic_ref(const_cast<uint32_t&>(size)).load(std::memory_order_relaxed);
  }
  Thread* opener_seen() const {
    return std::atomic_ref(const_cast<Thread*&>(opener)).load(std::memory_order_relaxed);
  }
  void set_opening(Thread* by, uint32_t members) {
    std::atomic_ref(opener).store(by, std::memory_order_relaxed);
    std::atomic_ref(size).store(members, std::memory_order_relaxed);
  }

  Worker* opened_on() const { return home.load(std::memory_order_relaxed); }

  /// The member that a claim on number `claimed` is for.
  uint32_t ghost_at(uint32_t claimed) const {
    return BOSK_LIKELY(order == nullptr) ? claimed : order[claimed];
  }

  /// Tells the regions of one object apart; stable while a member or helper is in it.
  uint64_t life() const { return flat ? sequence : times_opened | kNotFlat; }
  static constexpr uint64_t kNotFlat = uint64_t{1} << 63;

  /// By the opener of a team that is not flat. relaxed: see life_seen().
  void count_opening() {
    std::atomic_ref(times_opened).store(times_opened + 1, std::memory_order_relaxed);
  }
  /// life() of teams that are not flat, by who is not in the team any more: a hint.
  uint64_t life_seen() {
    return std::atomic_ref(times_opened).load(std::memory_order_relaxed) | kNotFlat;
  }
};

/// Bubble::share_shift. Half of what is a worker's due at a time, so that shares get smaller as the end
/// comes near, and then ghosts are claimed one by one.
inline uint8_t share_shift(uint32_t ghosts, uint32_t workers) {
  const int shift = std::bit_width(2 * workers - 1);
  return ghosts >> shift > 1 ? static_cast<uint8_t>(shift) : uint8_t{0};
}

/// True when `bubble` is `ancestor` or was opened, directly or not, by one of its members. If one on
/// the way is recycled meanwhile, the answer may be wrong, but the walk ends: what is open at any
/// moment, and what it says of its parents, has no circle.
inline bool descends_from(const Bubble* bubble, const Bubble* ancestor) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  while (bubble != nullptr && bubble->depth.load(kRelaxed) > ancestor->depth.load(kRelaxed))
    bubble = bubble->parent.load(kRelaxed);
  return bubble == ancestor;
}

}  // namespace bosk::sched
