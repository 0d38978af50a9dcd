// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finding the program's C++ run-time without depending on one.
#include "omp/exception_globals.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>

#include "base/loader_looks.h"

namespace bosk::omp {
namespace detail {

constinit std::atomic<GetExceptionGlobals> get_exception_globals{nullptr};

ExceptionState take_exceptions(GetExceptionGlobals get) {
  ExceptionState* globals = get();
  const ExceptionState state = *globals;
  if (BOSK_UNLIKELY(state.caught != nullptr || state.uncaught != 0)) *globals = {};
  return state;
}

void put_exceptions_back(ExceptionState state) {
  // Asked again: the work in between may have moved the thread to another kernel thread, and a
  // compiler must not think the address constant.
  *get_exception_globals.load(std::memory_order_relaxed)() = state;
}

}  // namespace detail

namespace {

/// dlpi_adds when we looked last, plus one; 0: never.
constinit std::atomic<uint64_t> looked_at{0};

int first_object(dl_phdr_info* info, size_t, void* adds) {
  *static_cast<uint64_t*>(adds) = info->dlpi_adds;
  return 1;
}

detail::GetExceptionGlobals look_up() {
  const int program_errno = errno;
  const char* const name = "__cxa_get_globals";
  void* symbol = dlsym(RTLD_DEFAULT, name);
  if (symbol == nullptr) {
    // Loaded by a plug-in that keeps its libraries to itself.
    for (const char* library : {"libstdc++.so.6", "libc++abi.so.1"}) {
      void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
      if (handle == nullptr) continue;
      symbol = dlsym(handle, name);
      // Not closed: the run-time then stays as long as we call into it.
      if (symbol != nullptr) break;
      dlclose(handle);
    }
  }
  // What we did not find must not show up in the program.
  dlerror();
  errno = program_errno;
  return reinterpret_cast<detail::GetExceptionGlobals>(symbol);
}

}  // namespace

void find_exception_globals() {
  if (detail::get_exception_globals.load(std::memory_order_relaxed) != nullptr) return;
  uint64_t adds = 0;
  const base::LoaderLook alone;
  dl_iterate_phdr(first_object, &adds);
  if (looked_at.load(std::memory_order_relaxed) == adds + 1) return;
  if (const auto found = look_up())
    detail::get_exception_globals.store(found, std::memory_order_relaxed);
  looked_at.store(adds + 1, std::memory_order_relaxed);
}

}  // namespace bosk::omp
