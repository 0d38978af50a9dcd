// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Teams whose members were found to poll for each other, and the code in which they did. They have joint turns.
#pragma once

#include <stdint.h>

#include "sched/spins/polling_code.h"
#include "sched/spins/polling_regions.h"
#include "sched/worker.h"

namespace bosk::sched {

/// It is in a team whose members were found to poll.
bool is_of_polling_team(const Thread* thread);

/// `me` was found to poll at `program_counter`.
void note_polling(Thread* me, uintptr_t program_counter);
/// May `me`, which is there, be taken to poll without a second look? Not always, so that what is not so is found out.
bool is_trusted(Worker* w, const Thread* me, uintptr_t program_counter);
/// It was looked at closely there, and computed.
void note_computing(Worker* w, Thread* me, uintptr_t program_counter);

[[gnu::cold]] void expect_polling(Worker* w, Bubble* team, uintptr_t function);
/// The team, whose members run `function`, was published on `w`.
inline void note_opening(Worker* w, Bubble* team, uintptr_t function) {
  if (BOSK_UNLIKELY(!polling_regions.empty())) expect_polling(w, team, function);
}

[[gnu::cold]] void forget_polling(Bubble* team, uintptr_t function);
[[gnu::cold]] void close_gang(Bubble* team);
/// Its members have ended.
inline void note_closing(Bubble* team, uintptr_t function) {
  const Together why = team->together.load(std::memory_order_relaxed);
  if (BOSK_LIKELY(why == Together::kNo)) return;
  if (why == Together::kGang)
    close_gang(team);
  else
    forget_polling(team, function);
}

}  // namespace bosk::sched
