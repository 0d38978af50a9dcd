// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The park loop of donors: code that runs under an identity which somebody else may use meanwhile.
//
// So: no TLS, no errno, and no sanitizer, whose state per thread is TLS (src/CMakeLists.txt). Flatten,
// because an inline function that is not inlined is one copy for the whole library, perhaps the one
// of a file that the sanitizers have seen.
#include "context/park.h"

#include "context/switch.h"

namespace bosk::context {

namespace {

constexpr int kSigSetxid = 33;  // glibc's broadcast for set*id; must reach every thread

[[gnu::always_inline]] inline void block_all_signals_but_setxid() {
  base::set_signal_mask(~base::signal_bit(kSigSetxid));
}

}  // namespace

[[gnu::flatten]] void park_loop(void* argument) {
  auto* identity = static_cast<Identity*>(argument);
  block_all_signals_but_setxid();
  for (;;) {
    if (identity->parked_action != nullptr) {
      auto* action = identity->parked_action;
      identity->parked_action = nullptr;
      action(identity->parked_argument);
    }
    if (identity->command.take() == Identity::kEnd) break;
    base::set_signal_mask(identity->run_mask);
    bosk_context_switch(&identity->park_sp, identity->run_sp, identity->run_thread_pointer);
    // Whoever ran here had a signal mask of its own.
    block_all_signals_but_setxid();
  }
  void* unused;
  bosk_context_switch(&unused, identity->start_sp, 0);
  __builtin_unreachable();
}

[[gnu::flatten]] void lend_until_end(Identity* identity, void* park_sp,
                                     std::atomic<uint32_t>* ready) {
  // From here on the identity may be in use, before this kernel thread has reached its park loop.
  ready->store(1, std::memory_order_release);
  base::futex_wake(ready, 1);
  bosk_context_switch(&identity->start_sp, park_sp, 0);
}

}  // namespace bosk::context
