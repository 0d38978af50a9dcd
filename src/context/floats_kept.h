// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program's floating-point flags, where the runtime itself computes with such numbers on a thread of the program's.
#pragma once

#include "context/switch.h"

namespace bosk::context {

/// While it lives the runtime may raise flags: the program's environment comes back. On one thread, without a switch in between.
class FloatsKept {
 public:
  FloatsKept() : kept_(float_state()) {}
  ~FloatsKept() {
    const FloatControl now = float_state();
    if (!same_float_state(now, kept_)) set_float_state(kept_, now);
  }
  FloatsKept(const FloatsKept&) = delete;
  FloatsKept& operator=(const FloatsKept&) = delete;

 private:
  FloatControl kept_;
};

}  // namespace bosk::context
