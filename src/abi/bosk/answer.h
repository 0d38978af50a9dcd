// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What functions of bosk.h and its like answer with: a code, of which bosk_last_error() knows what it was about.
#pragma once

#include "base/cpu.h"
#include "bosk/bosk.h"
#include "threads/last_error.h"

namespace bosk::threads {

// What calls are about. What is null is left out.
inline Concern of_level(const char* name) { return {name != nullptr ? "level" : nullptr, name}; }
inline Concern of_affinity(const char* name) {
  return {name != nullptr ? "affinity" : nullptr, name};
}
inline Concern of_policy(const char* name) { return {name != nullptr ? "policy" : nullptr, name}; }
inline Concern at_address(const void* at) {
  return {"address", nullptr, reinterpret_cast<uintptr_t>(at), true};
}
inline Concern on_node(int number) {
  return {"node", nullptr, static_cast<uintptr_t>(static_cast<intptr_t>(number))};
}
inline Concern of_thread(bosk_thread_t handle) {
  return {"thread", nullptr, reinterpret_cast<uintptr_t>(handle), true};
}
inline Concern of_bubble(bosk_bubble_t handle) {
  return {"bubble", nullptr, reinterpret_cast<uintptr_t>(handle), true};
}

/// The answer of `function`. `why`: more than the code's own text; null: that. Preemption is on.
template <typename Code, typename... About>
inline Code answer_because(Code code, const char* function, const char* why, About... about) {
  if (BOSK_UNLIKELY(code < 0))
    note_failure(function, {about...},
                 why != nullptr ? why : bosk_strerror(static_cast<int>(code)));
  return code;
}
template <typename Code, typename... About>
inline Code answer(Code code, const char* function, About... about) {
  return answer_because(code, function, nullptr, about...);
}

}  // namespace bosk::threads
