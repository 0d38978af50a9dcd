// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A model checker for small lock-free programs: runs one body under every interleaving of its
// threads and every choice of what each load may read. See docs/design/model-checking.md.
//
//   model::Result r = model::explore({}, [] {
//     auto state = std::make_shared<State<model::ModelAtomics>>();
//     model::spawn([=] { state->first(); });
//     model::spawn([=] { state->second(); });
//     model::at_end([=] { MODEL_ASSERT(state->sum() == 2); });
//   });
//   EXPECT_TRUE(r.proved()) << r.failure;
//
// Covered: C++20's memory model as message histories and views: a load may read every message that
// coherence allows, stores may take effect late and out of order, release and acquire pass views,
// read-modify-writes carry on release sequences, fences, a global seq_cst view, the asymmetric
// light/heavy barrier, futexes, data races.
// Not covered: load buffering (a load that reads a store which comes later in the execution order);
// seq_cst accesses follow the order of execution, which is a little stronger than C++20 asks.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "atomics.h"
#include "explorer.h"
#include "mutate.h"

namespace model {

inline Result explore(const Options& options, std::function<void()> body) {
  return Explorer(options, std::move(body)).run();
}

/// From the body of explore(): one more thread. Nothing runs before the body has returned.
inline void spawn(std::function<void()> body) { Execution::current()->spawn(std::move(body)); }

/// Runs after all threads have ended, and sees everything they did.
inline void at_end(std::function<void()> body) { Execution::current()->at_end(std::move(body)); }

/// Adds to Result::outcomes, which litmus tests compare with the exact set that is allowed.
inline void outcome(const std::string& text) {
  if (!Execution::current()->unwinding()) Execution::current()->outcomes().insert(text);
}

inline void fail(const std::string& text) { Execution::current()->fail(text); }

/// A readable name in the trace.
template <class T>
void name(const atomic<T>& object, const std::string& text) {
  Execution::current()->memory().location(object.location()).name = text;
}

}  // namespace model

#define MODEL_ASSERT(condition)                                           \
  do {                                                                    \
    if (!(condition))                                                     \
      ::model::fail("assertion failed: " #condition " " +                 \
                    ::model::show_site(std::source_location::current())); \
  } while (false)
