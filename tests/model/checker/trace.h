// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The steps of an execution, as text.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "memory.h"
#include "operation.h"

namespace model {

struct Step {
  int thread = 0;
  Operation op;
  Transition transition;
  Outcome outcome;
};

inline std::string show_value(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 1'000'000 ? "%llu" : "0x%llx",
                static_cast<unsigned long long>(value));
  return text;
}

inline const char* show_order(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return "relaxed";
    case std::memory_order_consume:
      return "consume";
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    default:
      return "seq_cst";
  }
}

inline std::string show_site(const char* file, unsigned line) {
  const char* slash = std::strrchr(file, '/');
  return std::string("(") + (slash ? slash + 1 : file) + ":" + std::to_string(line) + ")";
}
inline std::string show_site(const std::source_location& at) {
  return show_site(at.file_name(), at.line());
}

inline std::string show_step(const Step& step, const Memory& memory) {
  const Operation& op = step.op;
  const Outcome& got = step.outcome;
  const std::string name = op.location >= 0 ? memory.location(op.location).name : "";
  const std::string order = show_order(op.order);
  std::string stale;
  if (step.transition.reads && memory.location(op.location).messages.size() > 1)
    stale = " [written by T" + std::to_string(step.transition.from >> 24) + "]";
  std::string text = "  T" + std::to_string(step.thread) + "  ";
  static constexpr const char* kRmwNames[] = {"exchange", "fetch_add", "fetch_sub", "fetch_or",
                                              "fetch_and"};
  switch (step.transition.kind == Kind::kSpurious || step.transition.kind == Kind::kTimeout
              ? step.transition.kind
              : op.kind) {
    case Kind::kLoad:
      text += name + ".load(" + order + ") = " + show_value(got.value) + stale;
      break;
    case Kind::kStore:
      text += name + ".store(" + show_value(op.operand) + ", " + order + ")";
      break;
    case Kind::kRmw:
      text += name + "." + kRmwNames[static_cast<int>(op.rmw)] + "(" + show_value(op.operand) +
              ", " + order + ") = " + show_value(got.value) + " -> " + show_value(got.written) +
              stale;
      break;
    case Kind::kCas:
      text += name + ".compare_exchange(" + show_value(op.expected) + ", " +
              show_value(op.operand) + ", " + order + "/" + show_order(op.fail_order) +
              (got.succeeded ? ") stored" : ") failed, read " + show_value(got.value)) + stale;
      break;
    case Kind::kFence:
      text += "fence(" + order + ")";
      break;
    case Kind::kLight:
      text += "light_barrier()";
      break;
    case Kind::kHeavy:
      text += "heavy_barrier()";
      break;
    case Kind::kFutexWait:
      text += "futex_wait(" + name + ", " + show_value(op.expected) +
              (step.transition.succeeds ? ") sleeps" : ") returns, read " + show_value(got.value)) +
              stale;
      break;
    case Kind::kFutexWake:
      text += "futex_wake(" + name + ", " + std::to_string(op.wake_count) + ") wakes";
      if (step.transition.woken == 0) text += " nobody";
      for (int i = 1; i < kMaxThreads; ++i)
        if (step.transition.woken >> i & 1) text += " T" + std::to_string(i);
      break;
    case Kind::kPause:
      text += "pause()";
      break;
    case Kind::kSpurious:
      text += "futex_wait(" + name + ") returns for no reason";
      break;
    case Kind::kTimeout:
      text += "futex_wait(" + name + ") runs out of time";
      break;
  }
  return text + "  " + show_site(op.at);
}

inline std::string show_trace(const std::vector<Step>& steps, const Memory& memory) {
  std::string text;
  for (const Step& step : steps) text += show_step(step, memory) + "\n";
  return text;
}

}  // namespace model
