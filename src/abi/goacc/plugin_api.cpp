// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_PLUGIN_*: what libgomp offers to the plug-ins that drive accelerators. bosk loads none, but
// a program may have brought one's helper library: memory, messages and queries work as they do there.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/goacc/debug.h"
#include "abi/goacc/environment.h"
#include "abi/goacc/profiling.h"
#include "abi/gomp/export.h"
#include "base/message.h"

using namespace bosk::acc;
using bosk::base::gomp_fatal;

namespace {

constexpr size_t kLongest = 900;  // a line of base/message.h has room for it

void* or_die(void* block, size_t size) {
  if (block == nullptr && size != 0) gomp_fatal("Out of memory allocating %zu bytes", size);
  return block;
}

}  // namespace

BOSK_EXPORT void* GOMP_PLUGIN_malloc(size_t size) { return or_die(malloc(size), size); }
BOSK_EXPORT void* GOMP_PLUGIN_malloc_cleared(size_t size) { return or_die(calloc(1, size), size); }
BOSK_EXPORT void* GOMP_PLUGIN_realloc(void* block, size_t size) {
  return or_die(realloc(block, size), size);
}

// Said only if GOMP_DEBUG is on, without prefix and end of line.
BOSK_EXPORT [[gnu::format(printf, 2, 3)]] void GOMP_PLUGIN_debug(int /*kind*/, const char* format,
                                                                 ...) {
  va_list arguments;
  va_start(arguments, format);
  debug(format, arguments);
  va_end(arguments);
}

BOSK_EXPORT [[gnu::format(printf, 1, 2)]] void GOMP_PLUGIN_error(const char* format, ...) {
  char text[kLongest];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  bosk::base::gomp_error("%s", text);
}

BOSK_EXPORT [[noreturn, gnu::format(printf, 1, 2)]] void GOMP_PLUGIN_fatal(const char* format,
                                                                           ...) {
  char text[kLongest];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  gomp_fatal("%s", text);
}

// A thread has no device that a plug-in drives.
BOSK_EXPORT void* GOMP_PLUGIN_goacc_thread() { return nullptr; }
BOSK_EXPORT void* GOMP_PLUGIN_acc_thread() { return nullptr; }

/// GOMP_OPENACC_DIM.
BOSK_EXPORT unsigned GOMP_PLUGIN_acc_default_dim(unsigned dimension) {
  if (dimension >= kDimensions) {
    gomp_fatal("invalid dimension argument: %d", static_cast<int>(dimension));
  }
  return settings().dimension[dimension];
}

BOSK_EXPORT void GOMP_PLUGIN_goacc_profiling_dispatch(ProfInfo* prof, EventInfo* event,
                                                      ApiInfo* api) {
  if (prof->event <= kNoEvent || prof->event >= kEventsEnd || !events_wanted()) return;
  tell_callbacks(prof, event, api);
}

// Plug-ins for GCC 8 and before; libgomp has refused it since in these words.
BOSK_EXPORT void GOMP_PLUGIN_async_unmap_vars(void*, int) { gomp_fatal("invalid plugin function"); }

// The argument is what the runtime gave the plug-in with a target task. bosk never does.
BOSK_EXPORT void GOMP_PLUGIN_target_task_completion(void*) {
  gomp_fatal("GOMP_PLUGIN_target_task_completion: no plug-in has a target task here");
}

// A target region that a device asks the host to run; the arguments depend on the version of GCC. No device
// can ask, as no plug-in drives one.
BOSK_EXPORT void GOMP_PLUGIN_target_rev() {
  gomp_fatal("GOMP_PLUGIN_target_rev: no plug-in drives a device here");
}
