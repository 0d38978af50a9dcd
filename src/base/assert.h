// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks of the library's own invariants; compiled in where BOSK_ASSERTIONS is defined.
#pragma once

#include "base/message.h"

#ifdef BOSK_ASSERTIONS
#define BOSK_ASSERT(condition)                                                               \
  ((condition)                                                                               \
       ? static_cast<void>(0)                                                                \
       : ::bosk::base::die(70, "internal error: %s does not hold (%s:%d); please report it", \
                           #condition, __FILE__, __LINE__))
#else
#define BOSK_ASSERT(condition) static_cast<void>(0)
#endif
