// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Hints from OpenMP programs (bosk/hints.h), with their Fortran forms.
#include <errno.h>

#include "abi/gomp/export.h"
#include "omp/loads.h"
#include "omp/team.h"

using namespace bosk::omp;

namespace {

int set_load(int64_t load) {
  if (load < 0 || load >= int64_t{kNoLoad}) return EINVAL;
  const uint32_t told = load == 0 ? kNoLoad : static_cast<uint32_t>(load);
  return tell_load(current_thread(), told) == LoadTold::kKept ? 0 : ENOMEM;
}

}  // namespace

BOSK_EXPORT int bosk_set_load(long load) { return set_load(load); }

// Subroutines, which have nobody to give an error to: a load that makes no sense is not told.
BOSK_EXPORT void bosk_set_load_(const int32_t* load) { set_load(*load); }
BOSK_EXPORT void bosk_set_load_8_(const int64_t* load) { set_load(*load); }
