// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ACC_PROFLIB: profiling libraries that the user wants beside the program.
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "abi/goacc/profiling.h"
#include "abi/goacc/profiling_api.h"
#include "base/loader.h"
#include "base/message.h"
#include "context/observers.h"

namespace bosk::acc {
namespace {

constinit std::atomic<bool> asked{false};

void complain(const char* file, const char* why) {
  base::gomp_error("while loading ACC_PROFLIB \"%s\": %s", file, why != nullptr ? why : "unknown");
}

void load(const char* file) {
  const char* why = nullptr;
  void* handle = base::open_library(file, RTLD_LAZY, &why);
  if (handle == nullptr) return complain(file, why);
  // It may have brought thread-local variables along, and the next region must know.
  context::observers_may_have_changed();
  void* entry = dlsym(handle, "acc_register_library");
  if (entry == nullptr) {
    complain(file, dlerror());
    dlclose(handle);
    return;
  }
  using RegisterLibrary = void (*)(ProfilingRegister, ProfilingRegister, ProfilingLookup);
  reinterpret_cast<RegisterLibrary>(entry)(acc_prof_register, acc_prof_unregister, acc_prof_lookup);
}

void load_all(const char* list) {
  const int saved = errno;
  char* files = strdup(list);
  if (files == nullptr) base::gomp_fatal("Out of memory allocating %zu bytes", strlen(list) + 1);
  char* rest = files;
  while (const char* file = strsep(&rest, ";")) {
    if (*file != '\0') load(file);
  }
  free(files);
  errno = saved;
}

}  // namespace

// One thread loads. Others that come meanwhile do not wait for it: a library may itself start threads
// that use OpenACC, and wait for them. So may a library that registers while it is loaded come here.
void load_profiling_libraries() {
  // relaxed: nothing is read that the loading thread wrote; the registry has its own lock.
  if (asked.load(std::memory_order_relaxed) || asked.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  if (const char* list = secure_getenv("ACC_PROFLIB"); list != nullptr) load_all(list);
}

}  // namespace bosk::acc
