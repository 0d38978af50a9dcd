// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOACC_*: what gcc -fopenacc calls for constructs. The host runs them where they stand, on the
// program's own data: a compute construct is a call of its function with the addresses as they are
// (the function itself makes its firstprivate copies), and a data construct moves nothing. So nothing
// has to be known of launch dimensions, of queues to launch on and of queues to wait for, and the
// variable arguments that tell them are not read: with one device and empty queues there is no value
// of theirs that could matter. Flags come inverted.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/goacc/async.h"
#include "abi/goacc/debug.h"
#include "abi/goacc/device.h"
#include "abi/goacc/map_kinds.h"
#include "abi/goacc/profiling.h"
#include "abi/gomp/export.h"
#include "base/cpu.h"

using namespace bosk::acc;

namespace {

constexpr int kFlagHostFallback = 1;

using Body = void (*)(void*);

void run(int flags, Body body, void** addresses) {
  if ((flags & kFlagHostFallback) != 0) {
    const HostFallback fallback;
    body(static_cast<void*>(addresses));
  } else {
    body(static_cast<void*>(addresses));
  }
}

void trace(const char* name, size_t n, void** addresses, size_t* sizes, unsigned short* kinds) {
  if (BOSK_LIKELY(!debugging())) return;
  debug("%s: mapnum=%zu, hostaddrs=%p, size=%p, kinds=%p\n", name, n, static_cast<void*>(addresses),
        static_cast<void*>(sizes), static_cast<void*>(kinds));
}

void tell_enter_data(Construct construct, int async) {
  Events events({.construct = construct, .async = async});
  events.tell(Event::kEnterDataStart);
  events.tell(Event::kEnterDataEnd);
}

void tell_exit_data(Construct construct, int async) {
  Events events({.construct = construct, .async = async});
  events.tell(Event::kExitDataStart);
  events.tell(Event::kExitDataEnd);
}

}  // namespace

// parallel, kernels and serial; the events call all of them parallel, and synchronous.
BOSK_EXPORT void GOACC_parallel_keyed(int inverted_flags, Body body, size_t n, void** addresses,
                                      size_t* sizes, unsigned short* kinds, ...) {
  trace("GOACC_parallel_keyed", n, addresses, sizes, kinds);
  ensure_attached();
  Events events({.construct = Construct::kParallel});
  events.tell(Event::kComputeConstructStart);
  run(~inverted_flags, body, addresses);
  events.tell(Event::kComputeConstructEnd);
}

// GCC 5: the function for the host, whatever the other arguments say; there were no events then.
BOSK_EXPORT void GOACC_parallel(int inverted_flags, Body body, size_t n, void** addresses,
                                size_t* sizes, unsigned short* kinds, int /*gangs*/,
                                int /*workers*/, int /*lanes*/, int /*async*/, int /*n_waits*/,
                                ...) {
  trace("GOACC_parallel", n, addresses, sizes, kinds);
  ensure_attached();
  run(~inverted_flags, body, addresses);
}

// The host as compiled code sees it: one gang of one worker.
BOSK_EXPORT int GOACC_get_thread_num() { return 0; }
BOSK_EXPORT int GOACC_get_num_threads() { return 1; }

// data and host_data.
BOSK_EXPORT void GOACC_data_start(int /*inverted_flags*/, size_t n, void** addresses, size_t* sizes,
                                  unsigned short* kinds) {
  trace("GOACC_data_start", n, addresses, sizes, kinds);
  ensure_attached();
  tell_enter_data(any_use_device(n, kinds) ? Construct::kHostData : Construct::kData, kAsyncSync);
  enter_data_region();
}

BOSK_EXPORT void GOACC_data_end() {
  leave_data_region();
  tell_exit_data(Construct::kData, kAsyncSync);
}

BOSK_EXPORT void GOACC_enter_data(int /*inverted_flags*/, size_t n, void** addresses, size_t* sizes,
                                  unsigned short* kinds, int async, int /*n_waits*/, ...) {
  trace("GOACC_enter_data", n, addresses, sizes, kinds);
  ensure_attached();
  tell_enter_data(Construct::kEnterData, async);
}

BOSK_EXPORT void GOACC_exit_data(int /*inverted_flags*/, size_t n, void** addresses, size_t* sizes,
                                 unsigned short* kinds, int async, int /*n_waits*/, ...) {
  trace("GOACC_exit_data", n, addresses, sizes, kinds);
  ensure_attached();
  tell_exit_data(Construct::kExitData, async);
}

// Both in one, up to GCC 11.
BOSK_EXPORT void GOACC_enter_exit_data(int /*inverted_flags*/, size_t n, void** addresses,
                                       size_t* sizes, unsigned short* kinds, int async,
                                       int /*n_waits*/, ...) {
  trace("GOACC_enter_exit_data", n, addresses, sizes, kinds);
  const Direction direction = direction_of_directive(n, kinds);
  ensure_attached();
  if (direction == Direction::kEnter) {
    tell_enter_data(Construct::kEnterData, async);
  } else {
    tell_exit_data(Construct::kExitData, async);
  }
}

// The declare directive of a local variable: one call where it comes into being, one where it ends.
BOSK_EXPORT void GOACC_declare(int /*inverted_flags*/, size_t n, void** addresses, size_t* sizes,
                               unsigned short* kinds) {
  trace("GOACC_declare", n, addresses, sizes, kinds);
  ensure_attached();
  for (size_t i = 0; i < n; ++i) {
    switch (direction_of_declaration(kinds[i])) {
      case Direction::kEnter:
        tell_enter_data(Construct::kEnterData, kAsyncSync);
        break;
      case Direction::kExit:
        tell_exit_data(Construct::kExitData, kAsyncSync);
        break;
      case Direction::kNeither:
        break;
    }
  }
}

BOSK_EXPORT void GOACC_update(int /*inverted_flags*/, size_t n, void** addresses, size_t* sizes,
                              unsigned short* kinds, int async, int /*n_waits*/, ...) {
  trace("GOACC_update", n, addresses, sizes, kinds);
  ensure_attached();
  Events events({.construct = Construct::kUpdate, .async = async});
  events.tell(Event::kUpdateStart);
  events.tell(Event::kUpdateEnd);
}

// wait: on the queues that are listed, or on all if there are none.
BOSK_EXPORT void GOACC_wait(int async, int n_waits, ...) {
  ensure_attached();
  if (n_waits <= 0) {
    if (async != kAsyncSync) require_queue(async);
    return;
  }
  va_list queues;
  va_start(queues, n_waits);
  for (int i = 0; i < n_waits; ++i) require_queue(va_arg(queues, int));
  va_end(queues);
}
