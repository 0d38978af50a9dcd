// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What callbacks of profiling libraries are given: the memory layout of <acc_prof.h>.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::acc {

/// acc_event_t.
enum Event : int {
  kNoEvent = 0,
  kDeviceInitStart = 1,
  kDeviceInitEnd,
  kDeviceShutdownStart,
  kDeviceShutdownEnd,
  kRuntimeShutdown,
  kCreate,
  kDelete,
  kAlloc,
  kFree,
  kEnterDataStart,
  kEnterDataEnd,
  kExitDataStart,
  kExitDataEnd,
  kUpdateStart,
  kUpdateEnd,
  kComputeConstructStart,
  kComputeConstructEnd,
  kEnqueueLaunchStart,
  kEnqueueLaunchEnd,
  kEnqueueUploadStart,
  kEnqueueUploadEnd,
  kEnqueueDownloadStart,
  kEnqueueDownloadEnd,
  kWaitStart,
  kWaitEnd,
  kEventsEnd,
};

/// acc_construct_t, as far as the host's events name them.
enum Construct : int {
  kParallel = 0,
  kData = 3,
  kEnterData = 4,
  kExitData = 5,
  kHostData = 6,
  kUpdate = 12,
  kRuntimeApi = 15,
};

/// acc_prof_info.
struct ProfInfo {
  int event;
  int valid_bytes;
  int version;
  int device_type;
  int device_number;
  int thread_id;
  ptrdiff_t async;
  ptrdiff_t async_queue;
  const char* src_file;
  const char* func_name;
  int line_no;
  int end_line_no;
  int func_line_no;
  int func_end_line_no;
};
static_assert(sizeof(ProfInfo) == 72);

/// The version of the interface that it is: OpenACC 2.6.
constexpr int kProfInfoVersion = 201711;

/// acc_other_event_info: all that the host's events fill in.
struct OtherEventInfo {
  int event;
  int valid_bytes;
  int construct;
  int implicit;
  void* tool_info;
};
static_assert(sizeof(OtherEventInfo) == 24);

/// acc_event_info: a union whose members all begin like that one. Callbacks may write to it.
union EventInfo {
  OtherEventInfo other;
  unsigned char room[56];
};
static_assert(sizeof(EventInfo) == 56);

/// acc_api_info.
struct ApiInfo {
  int device_api;
  int valid_bytes;
  int device_type;
  int vendor;
  const void* device_handle;
  const void* context_handle;
  const void* async_handle;
};
static_assert(sizeof(ApiInfo) == 40);

/// acc_prof_callback.
using Callback = void (*)(ProfInfo*, EventInfo*, ApiInfo*);

/// acc_register_t.
enum Registration : int {
  kRegister = 0,
  kToggle = 1,
  kTogglePerThread = 2,
};

}  // namespace bosk::acc
