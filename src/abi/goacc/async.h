// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Activity queues of the host: what is asked to run asynchronously has run when the call returns, so
// that every queue is always empty. Only the arguments are checked.
#pragma once

#include "abi/goacc/device.h"
#include "base/message.h"

namespace bosk::acc {

/// A queue number, acc_async_noval or acc_async_sync.
inline bool valid_queue(int queue) { return queue >= -2; }

/// Ends the program with libgomp's words if the thread has no device.
inline void require_device() {
  if (!attached()) base::gomp_fatal("no device active");
}

/// The same, or if there is no such queue.
inline void require_queue(int queue) {
  require_device();
  if (!valid_queue(queue)) base::gomp_fatal("invalid async-argument: %d", queue);
}

}  // namespace bosk::acc
