// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C++ exceptions that a thread of the program is handling, set aside while it does other work.
//
// The C++ run-time keeps, per thread, a stack of caught exceptions and a count of uncaught ones. A
// task that a waiting thread runs is other work on the same thread: a `throw;` in it must not raise
// the exception whose handler contains the wait.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"

namespace bosk::omp {

/// What the C++ ABI's __cxa_get_globals() points to (Itanium C++ ABI: exception handling, §2.2.2).
struct ExceptionState {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

namespace detail {
using GetExceptionGlobals = ExceptionState* (*)();
/// Null: the program has no C++ run-time, as far as we know.
extern constinit std::atomic<GetExceptionGlobals> get_exception_globals;
ExceptionState take_exceptions(GetExceptionGlobals get);
void put_exceptions_back(ExceptionState state);
}  // namespace detail

/// Looks for a C++ run-time if none is known yet: one may have been loaded. Preemption must be on.
/// A look costs what dl_iterate_phdr costs (about 70 ns) unless an object was loaded since the
/// last.
void find_exception_globals();
/// The same, at most once a millisecond.
void find_exception_globals(uint64_t now_cycles);

/// Sets the calling thread's exceptions aside.
inline ExceptionState exceptions_enter() {
  // relaxed: the pointer is all there is to see.
  const auto get = detail::get_exception_globals.load(std::memory_order_relaxed);
  if (BOSK_LIKELY(get == nullptr)) return {};
  return detail::take_exceptions(get);
}

/// Puts them back. The work in between has handled all of its own.
inline void exceptions_leave(ExceptionState state) {
  if (BOSK_UNLIKELY(state.caught != nullptr || state.uncaught != 0))
    detail::put_exceptions_back(state);
}

}  // namespace bosk::omp
