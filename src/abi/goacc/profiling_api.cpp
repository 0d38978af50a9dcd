// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// acc_prof_* and acc_register_library.
#include "abi/goacc/profiling_api.h"

#include "abi/goacc/profiling.h"

using namespace bosk::acc;

// The libraries that the user named come first, wherever the program registers its own callbacks.
BOSK_EXPORT void acc_prof_register(int event, Callback callback, int registration) {
  load_profiling_libraries();
  register_callback(event, callback, registration);
}
BOSK_EXPORT void acc_prof_unregister(int event, Callback callback, int registration) {
  load_profiling_libraries();
  unregister_callback(event, callback, registration);
}

// There are no queries yet, neither in OpenACC nor here.
BOSK_EXPORT ProfilingQuery acc_prof_lookup(const char* /*name*/) { return nullptr; }

// What a profiling library defines; this one is there for programs that call it without any.
BOSK_EXPORT void acc_register_library(ProfilingRegister, ProfilingRegister, ProfilingLookup) {}
