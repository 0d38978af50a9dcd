// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which device a thread has, and who may take it away.
#include "abi/goacc/device.h"

#include <strings.h>

#include <atomic>

#include "abi/goacc/environment.h"
#include "abi/goacc/profiling.h"
#include "base/message.h"

namespace bosk::acc {
namespace {

constinit thread_local ThreadState state{};

// acquire and release throughout: these are asked once per construct, and whoever finds the device
// initialised must see what the initialising thread's callbacks wrote before.
constinit std::atomic<uint32_t> epoch{1};      // of the devices; acc_shutdown begins another
constinit std::atomic<bool> announced{false};  // somebody got the device; stays after acc_shutdown
constinit std::atomic<bool> initialised{false};  // since the last acc_shutdown
constinit std::atomic<bool> in_use{false};       // by threads that came after an acc_shutdown
constinit std::atomic<int> number_set{-1};       // acc_set_device_num; -1: as the environment says
constinit std::atomic<uint32_t> data_regions{0};
constinit std::atomic<uint32_t> host_fallbacks{0};

void require_number(int number) {
  if (number < 0 || number >= kHostDevices) base::gomp_fatal("device %d out of range", number);
}

void attach() {
  const uint32_t now = epoch.load(std::memory_order_acquire);
  // A thread that gets its device again begins anew.
  if (state.attached_in != 0 && state.attached_in != now) state.muted = false;
  state.attached_in = now;
  in_use.store(true, std::memory_order_release);
}

// Between the two events the device is checked, then `bring_up` called. The thread has it after both.
void initialise(const Events::What& what, void (*bring_up)()) {
  Events events(what);
  state.initialising = true;
  events.tell(Event::kDeviceInitStart);
  require_host(what.device_type);
  require_number(what.device_number);
  bring_up();
  events.tell(Event::kDeviceInitEnd);
  state.initialising = false;
}

}  // namespace

ThreadState& this_thread() { return state; }

void require_known(int type) {
  if (type < 0 || type >= kTypesEnd) {
    base::gomp_fatal("unknown device type %u", static_cast<unsigned>(type));
  }
}

bool default_is_host() {
  const char* type = settings().device_type;
  return type == nullptr || strcasecmp(type, "host") == 0;
}

void require_host(int type) {
  require_known(type);
  switch (type) {
    case kHost:
      return;
    case kDefault:
      if (default_is_host()) return;
      base::gomp_fatal("device type %s not supported", settings().device_type);
    case kNotHost:
      base::gomp_fatal("no device found");
    case kNone:
      base::gomp_fatal("device type none not supported");
    case kNvidia:
      base::gomp_fatal("device type nvidia not supported");
    case kRadeon:
      base::gomp_fatal("device type radeon not supported");
    default:
      base::gomp_fatal("unknown device type %u", static_cast<unsigned>(type));
  }
}

bool attached() { return state.attached_in == epoch.load(std::memory_order_acquire); }

void ensure_attached() {
  if (attached()) return;
  load_profiling_libraries();
  // Whoever else comes meanwhile need not wait: there is nothing to initialise.
  if (!announced.exchange(true, std::memory_order_acq_rel)) {
    initialise({.construct = Construct::kParallel,
                .device_type = kDefault,
                .device_number = default_device_number(),
                .implicit = true},
               [] { initialised.store(true, std::memory_order_release); });
  }
  attach();
}

void init(int type) {
  require_known(type);
  load_profiling_libraries();
  initialise({.construct = Construct::kRuntimeApi,
              .device_type = type,
              .device_number = default_device_number()},
             [] {
               if (initialised.exchange(true, std::memory_order_acq_rel)) {
                 base::gomp_fatal("device already active");
               }
               announced.store(true, std::memory_order_release);
             });
  attach();
}

void shutdown(int type) {
  require_host(type);
  if (data_regions.load(std::memory_order_acquire) != 0) {
    base::gomp_fatal("shutdown in 'acc data' region");
  }
  if (host_fallbacks.load(std::memory_order_acquire) != 0) {
    base::gomp_fatal("shutdown during host fallback");
  }
  const bool was_initialised = initialised.exchange(false, std::memory_order_acq_rel);
  const bool was_in_use = in_use.exchange(false, std::memory_order_acq_rel);
  if (!was_initialised && !was_in_use) base::gomp_fatal("no device initialized");
  // 0 would be the epoch of threads that never had a device.
  if (epoch.fetch_add(1, std::memory_order_acq_rel) == UINT32_MAX) {
    epoch.fetch_add(1, std::memory_order_acq_rel);
  }
}

void set_device_type(int type) {
  require_host(type);
  load_profiling_libraries();
  require_number(default_device_number());
  announced.store(true, std::memory_order_release);
  initialised.store(true, std::memory_order_release);
  attach();
}

void set_device_number(int number, int type) {
  require_known(type);
  // acc_device_none stands for the number on all types.
  if (type != kNone) {
    require_host(type);
  } else if (!announced.load(std::memory_order_acquire)) {
    require_host(kDefault);
  }
  load_profiling_libraries();
  if (number < 0) number = default_device_number();
  require_number(number);
  number_set.store(number, std::memory_order_release);
  announced.store(true, std::memory_order_release);
  if (type != kNone) initialised.store(true, std::memory_order_release);
  attach();
}

int default_device_number() {
  const int set = number_set.load(std::memory_order_acquire);
  return set >= 0 ? set : settings().device_number;
}

int device_type() {
  if (attached()) return kHost;
  if (state.initialising) return kNone;
  require_host(kDefault);
  return kHost;
}

int device_number() { return attached() ? 0 : default_device_number(); }

void enter_data_region() {
  ++state.data_regions;
  data_regions.fetch_add(1, std::memory_order_acq_rel);
}

void leave_data_region() {
  if (state.data_regions == 0) base::gomp_fatal("GOACC_data_end without GOACC_data_start");
  --state.data_regions;
  data_regions.fetch_sub(1, std::memory_order_acq_rel);
}

HostFallback::HostFallback() { host_fallbacks.fetch_add(1, std::memory_order_acq_rel); }
HostFallback::~HostFallback() { host_fallbacks.fetch_sub(1, std::memory_order_acq_rel); }

}  // namespace bosk::acc
