// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The events of a construct, as the host fills them in.
#include "abi/goacc/profiling.h"

#include "abi/goacc/device.h"

namespace bosk::acc {

Events::Events(const What& what) : wanted_(events_wanted()) {
  if (!wanted_) return;
  prof_ = {.event = kNoEvent,
           .valid_bytes = sizeof(ProfInfo),
           .version = kProfInfoVersion,
           .device_type = what.device_type,
           .device_number = what.device_number,
           .thread_id = -1,
           .async = what.async,
           .async_queue = what.async,
           .src_file = nullptr,
           .func_name = nullptr,
           .line_no = -1,
           .end_line_no = -1,
           .func_line_no = -1,
           .func_end_line_no = -1};
  event_ = {};
  event_.other = {.event = kNoEvent,
                  .valid_bytes = sizeof(OtherEventInfo),
                  .construct = what.construct,
                  .implicit = what.implicit ? 1 : 0,
                  .tool_info = nullptr};
  api_ = {.device_api = 0,  // acc_device_api_none
          .valid_bytes = sizeof(ApiInfo),
          .device_type = what.device_type,
          .vendor = -1,
          .device_handle = nullptr,
          .context_handle = nullptr,
          .async_handle = nullptr};
}

void Events::tell(Event event) {
  if (!wanted_) return;
  prof_.event = event;
  event_.other.event = event;
  tell_callbacks(&prof_, &event_, &api_);
}

}  // namespace bosk::acc
