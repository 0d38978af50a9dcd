// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The routines that profiling libraries are handed.
#pragma once

#include "abi/goacc/profiling_types.h"
#include "abi/gomp/export.h"

namespace bosk::acc {

using ProfilingRegister = void (*)(int event, Callback callback, int registration);
using ProfilingQuery = void (*)();
using ProfilingLookup = ProfilingQuery (*)(const char* name);

}  // namespace bosk::acc

BOSK_EXPORT void acc_prof_register(int event, bosk::acc::Callback callback, int registration);
BOSK_EXPORT void acc_prof_unregister(int event, bosk::acc::Callback callback, int registration);
BOSK_EXPORT bosk::acc::ProfilingQuery acc_prof_lookup(const char* name);
