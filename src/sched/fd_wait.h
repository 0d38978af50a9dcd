// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waiting for file descriptors without holding a worker: poll(2) for user-level threads.
#pragma once

#include <poll.h>
#include <stdint.h>

namespace bosk::sched {

/// As poll(2) with an absolute deadline (clock.h): how many of the `count` descriptors are ready, told in
/// their `revents`; 0: the deadline has passed; negative: an errno value (-EBADF for one that is not open is
/// told in revents, as poll does; -ENOMEM, -EAGAIN, -EMFILE: the poller or the clock cannot be had).
/// While it waits the calling thread's worker runs others; descriptors may be blocking or not. Any thread.
int poll_until(pollfd* fds, uint32_t count, uint64_t deadline);

/// Somebody waits.
bool poller_is_needed();
/// Nobody waits, or can begin to (pause.h).
void stop_poller();
void poller_forget_after_fork();

}  // namespace bosk::sched
