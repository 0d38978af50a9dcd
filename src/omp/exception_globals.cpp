// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finding the program's C++ run-time without depending on one.
#include "omp/exception_globals.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/loader.h"
#include "context/loaded_object.h"
#include "context/thread_errno.h"

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
/// In cycles; 0: never.
constinit std::atomic<uint64_t> asked_at{0};

struct Look {
  uint64_t adds = 0;
  detail::GetExceptionGlobals found = nullptr;
  bool again = false;          ///< also if somebody has looked since the last load
  bool behind_loader = false;  ///< the loader's own object has been seen, or cannot be told
  char* owner =
      nullptr;  ///< for the path of whose it is, if that may go; PATH_MAX bytes, or null: not wanted
};

/// Not dlsym(): a call of that, also one that finds, takes from the program what its last failed dlopen() has left for
/// dlerror().
int look_at(dl_phdr_info* info, size_t, void* argument) {
  auto* look = static_cast<Look*>(argument);
  if (look->adds == 0) {
    look->adds = info->dlpi_adds + 1;
    // relaxed: all that is wanted is that not everybody looks.
    if (!look->again && looked_at.load(std::memory_order_relaxed) == look->adds) return 1;
  }
  const context::LoadedObject object{info->dlpi_name != nullptr ? info->dlpi_name : "",
                                     info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
  // We have a copy, which is nobody's.
  if (context::contains(object, reinterpret_cast<uintptr_t>(&look_at))) return 0;
  const uintptr_t loader = getauxval(AT_BASE);
  if (loader == 0 || info->dlpi_addr == loader) look->behind_loader = true;
  void* function = context::find_function(object, "__cxa_get_globals");
  if (function == nullptr) return 0;
  // What the program needs stands before the loader, which all need, and never goes.
  if (look->behind_loader && look->owner != nullptr) {
    if (strlen(object.name) >= PATH_MAX) return 0;
    strcpy(look->owner, object.name);
  }
  look->found = reinterpret_cast<detail::GetExceptionGlobals>(function);
  return 1;
}

void look_now(Look* look) {
  const base::LoaderLook alone;
  dl_iterate_phdr(look_at, look);
}

/// What was found must stay as long as we call into it, also where a plug-in has brought it that goes: held, for good.
/// Another thread may unload it, or still load it and give it up, between our look and this: then it cannot be held, or
/// what we hold is another one. So what is held is looked at once more.
bool hold(const Look& found) {
  if (found.owner[0] == '\0') return true;
  const context::ErrnoKept kept;
  void* const handle = dlopen(found.owner, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    dlerror();
    return false;
  }
  Look again;
  again.again = true;
  look_now(&again);
  if (again.found == found.found) return true;
  dlclose(handle);
  return false;
}

}  // namespace

void find_exception_globals() {
  if (detail::get_exception_globals.load(std::memory_order_relaxed) != nullptr) return;
  // A child that cannot look: its members have kernel threads of their own, and so these globals (context/observers.cpp).
  if (!base::LoaderLook::is_possible()) return;
  char owner[PATH_MAX] = "";
  Look look;
  look.owner = owner;
  look_now(&look);
  if (look.found != nullptr) {
    // Gone again: the next look starts anew.
    if (!hold(look)) return;
    detail::get_exception_globals.store(look.found, std::memory_order_relaxed);
  }
  looked_at.store(look.adds, std::memory_order_relaxed);
}

void find_exception_globals(uint64_t now_cycles) {
  if (detail::get_exception_globals.load(std::memory_order_relaxed) != nullptr) return;
  // Unsigned: a clock that is a little behind on another CPU leads to one more look.
  const uint64_t before = asked_at.load(std::memory_order_relaxed);
  if (before != 0 && now_cycles - before < 1000 * base::cycles_per_microsecond()) return;
  asked_at.store(now_cycles | 1, std::memory_order_relaxed);
  find_exception_globals();
}

}  // namespace bosk::omp
