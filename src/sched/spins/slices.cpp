// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/slices.h"

#include "sched/spins/polling_teams.h"
#include "sched/tick_timer.h"
#include "sched/tuning.h"

namespace bosk::sched {

uint64_t first_slice(const Worker* w, const Thread* next, bool after_poll) {
  const bool polls = next->bubble != nullptr ? is_of_polling_team(next) : after_poll;
  if (!polls) return 0;
  // Nobody gets on: then not so many ticks.
  return w->probe.get_on() ? tuning::kHandOverTickNs : period_of_ticks(true);
}

bool goes_on(Thread* me, context::Identity* kernel) {
  if (me->slice_ns == 0) return false;
  const uint64_t longer = 2 * uint64_t{me->slice_ns};
  if (longer >= period_of_ticks(false) || !is_of_polling_team(me)) {
    me->slice_ns = 0;
    return false;
  }
  me->slice_ns = static_cast<uint32_t>(longer);
  set_slice(kernel, longer);
  return true;
}

bool look_for_gang_again(Thread* me, context::Identity* kernel) {
  const uint64_t longer = me->slice_ns == 0 ? tuning::kHandOverTickNs : 2 * uint64_t{me->slice_ns};
  me->slice_ns = longer < period_of_ticks(false) ? static_cast<uint32_t>(longer) : 0;
  set_slice(kernel, me->slice_ns, true);
  return me->slice_ns != 0;
}

bool gets_on_in_turn(Thread* me, context::Identity* kernel, const Sight& sight) {
  if (polling_loops.has(block_of_code(sight.pc))) {
    if (sight.state == me->spin_state) return false;
    me->spin_state = sight.state;
  }
  const uint64_t longer =
      2 * uint64_t{me->slice_ns == 0 ? uint32_t{tuning::kHandOverTickNs} : me->slice_ns};
  me->slice_ns = static_cast<uint32_t>(longer);
  set_slice(kernel, longer);
  return true;
}

}  // namespace bosk::sched
