// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The devices of OpenACC: there is the host, number 0 of its type, and nothing else. What can differ
// is whether it has been initialised, and by whom.
#pragma once

#include <stdint.h>

namespace bosk::acc {

/// acc_device_t.
enum DeviceType : int {
  kNone = 0,
  kDefault = 1,
  kHost = 2,
  kNotHost = 4,
  kNvidia = 5,
  kRadeon = 8,
  kTypesEnd = 9,
};

constexpr int kHostDevices = 1;

/// What each thread knows of its device. In the TLS of the identity, so that it belongs to the
/// OpenMP thread wherever that runs.
struct ThreadState {
  uint32_t attached_in;   ///< the epoch in which it got its device; stale after acc_shutdown
  uint32_t data_regions;  ///< data constructs that it is inside of
  bool muted;             ///< it switched its profiling events off
  bool initialising;      ///< callbacks hear that it gets its device, but it has none yet
  bool in_callback;       ///< it runs a callback of a profiling library
};
ThreadState& this_thread();

/// Ends the program with libgomp's words unless `type` is a value of acc_device_t.
void require_known(int type);
/// Ends the program with libgomp's words unless `type` means the host.
void require_host(int type);
/// Whether acc_device_default is the host, as it is unless ACC_DEVICE_TYPE names something else.
bool default_is_host();

/// The thread has a device: acc_async_test and its like ask for one.
bool attached();
/// Gives the thread its device, as every construct and most routines do. The first time in the
/// process that is an initialisation, which profiling libraries are told about.
void ensure_attached();

/// acc_init, acc_shutdown, acc_set_device_type, acc_set_device_num.
void init(int type);
void shutdown(int type);
void set_device_type(int type);
void set_device_number(int number, int type);
/// acc_get_device_type, acc_get_device_num.
int device_type();
int device_number();
/// The number that threads without a device will get.
int default_device_number();

/// Around the body of a data construct; a construct that ends must have begun.
void enter_data_region();
void leave_data_region();

/// Around a compute construct whose if clause is false.
class HostFallback {
 public:
  HostFallback();
  ~HostFallback();
  HostFallback(const HostFallback&) = delete;
  HostFallback& operator=(const HostFallback&) = delete;
};

}  // namespace bosk::acc
