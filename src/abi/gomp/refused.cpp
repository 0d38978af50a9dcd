// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Entry points of what bosk does not do yet: a program that calls one ends with a line that names it.
// A name that were left out would bind to a second runtime, or end the program without a reason.
#include "abi/gomp/export.h"
#include "base/message.h"

namespace {

// EX_SOFTWARE of sysexits.h.
constexpr int kStatus = 70;

[[noreturn, gnu::cold, gnu::noinline]] void refuse(const char* name) {
  bosk::base::die(kStatus, "%s is not supported yet", name);
}

}  // namespace

// Whatever the arguments are, nobody looks at them.
#define R(name) \
  BOSK_EXPORT [[noreturn]] void name() { refuse(#name); }
#include "abi/gomp/refused.inc"
#undef R
