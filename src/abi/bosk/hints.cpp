// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Hints from OpenMP programs (bosk/hints.h), with their Fortran forms.
#include <errno.h>

#include <bosk/error.h>
#include <bosk/hints.h>

#include "abi/bosk/answer.h"
#include "abi/gomp/export.h"
#include "omp/follow_memory.h"
#include "omp/loads.h"
#include "omp/settle_memory.h"
#include "omp/team.h"
#include "omp/team_memory.h"
#include "omp/team_relation.h"
#include "threads/attached.h"

// What is defined here is there.
#undef bosk_set_load
#undef bosk_attach
#undef bosk_detach
#undef bosk_detach_all
#undef bosk_footprint
#undef bosk_next_touch
#undef bosk_redecide
#undef bosk_set_relation
#undef bosk_running

using namespace bosk::omp;

namespace {

int set_load(int64_t load) {
  if (load < 0 || load >= int64_t{kNoLoad}) return EINVAL;
  const uint32_t told = load == 0 ? kNoLoad : static_cast<uint32_t>(load);
  return tell_load(current_thread(), told) == LoadTold::kKept ? 0 : ENOMEM;
}

/// False: nobody is meant by that.
bool addressee(int who, Addressee* to) {
  switch (who) {
    case BOSK_ME:
      *to = {Whose::kCaller};
      return true;
    case BOSK_MY_TEAM:
      *to = {Whose::kCallersTeam};
      return true;
    case BOSK_NEXT_TEAM:
      *to = {Whose::kNextTeam};
      return true;
    default:
      *to = {Whose::kNextMember, static_cast<uint32_t>(who)};
      return who >= 0;
  }
}

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace

BOSK_EXPORT int bosk_set_load(long load) { return set_load(load); }

static int attach(int who, void* begin, size_t bytes, int use, uint32_t times) {
  Addressee to;
  if (!addressee(who, &to) || use < BOSK_READS || use > BOSK_READS_AND_WRITES) return BOSK_EINVAL;
  return attach_memory(current_thread(), to, number(begin), bytes, static_cast<uint8_t>(use),
                       times != 0 ? times : bosk::memory::kNone);
}
BOSK_EXPORT int bosk_attach(int who, void* begin, size_t bytes, int use, uint32_t times) {
  return bosk::threads::answer(attach(who, begin, bytes, use, times), __func__,
                               bosk::threads::at_address(begin));
}

static int detach(int who, void* begin) {
  Addressee from;
  return addressee(who, &from) ? detach_memory(current_thread(), from, number(begin))
                               : static_cast<int>(BOSK_EINVAL);
}
BOSK_EXPORT int bosk_detach(int who, void* begin) {
  return bosk::threads::answer(detach(who, begin), __func__, bosk::threads::at_address(begin));
}

static int detach_all(int who) {
  Addressee from;
  return addressee(who, &from) ? detach_all_memory(current_thread(), from)
                               : static_cast<int>(BOSK_EINVAL);
}
BOSK_EXPORT int bosk_detach_all(int who) {
  return bosk::threads::answer(detach_all(who), __func__);
}

static int next_touch(int who) {
  Addressee whose;
  return addressee(who, &whose) ? mark_memory(current_thread(), whose)
                                : static_cast<int>(BOSK_EINVAL);
}
BOSK_EXPORT int bosk_next_touch(int who) {
  return bosk::threads::answer(next_touch(who), __func__);
}

static int redecide(int when) {
  if (when != BOSK_AT_ONCE && when != BOSK_WHEN_ALL) return BOSK_EINVAL;
  return redecide_memory(current_thread(), when == BOSK_WHEN_ALL);
}
BOSK_EXPORT int bosk_redecide(int when) { return bosk::threads::answer(redecide(when), __func__); }

static int set_relation(int who, int relation) {
  Addressee to;
  if (!addressee(who, &to) || relation < BOSK_TEAM_NONE ||
      relation > BOSK_TEAM_MEMORY_BESIDE_COMPUTE)
    return BOSK_EINVAL;
  return tell_relation(current_thread(), to, static_cast<bosk::sched::Relation>(relation));
}
BOSK_EXPORT int bosk_set_relation(int who, int relation) {
  return bosk::threads::answer(set_relation(who, relation), __func__);
}

BOSK_EXPORT int bosk_running(void) {
  return bosk::threads::answer(running_members(current_thread()), __func__);
}

static int footprint(int who, uint64_t* bytes, int nodes) {
  Addressee of;
  if (!addressee(who, &of) || nodes < 1) return BOSK_EINVAL;
  bosk::threads::bring_books_up_to_date();
  return memory_footprint(current_thread(), of, bytes, static_cast<uint32_t>(nodes));
}
BOSK_EXPORT int bosk_footprint(int who, uint64_t* bytes, int nodes) {
  return bosk::threads::answer(footprint(who, bytes, nodes), __func__);
}

// Subroutines, which have nobody to give an error to: a load that makes no sense is not told.
BOSK_EXPORT void bosk_set_load_(const int32_t* load) { set_load(*load); }
BOSK_EXPORT void bosk_set_load_8_(const int64_t* load) { set_load(*load); }
