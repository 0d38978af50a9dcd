// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a process has to say to `bosk run --learn`, if that observes it (observed/hand_over.h). Nothing where nobody does. Reads the environment.
#pragma once

#include <sys/un.h>

namespace bosk::base {

/// To be called before this process makes a userfaultfd, its own or ours: the kernel lets one have a piece of memory, and `bosk run --learn` has it if that
/// observes us. It lets go of all, for good; we wait for that, a second at most.
void release_from_observer();

/// To be called before this process looks at which CPUs it has: from now on its threads are ours to place, and the observer gives back what it has narrowed
/// them to. We wait for that, a second at most.
void release_threads_from_observer();

/// To be called before this process moves memory of its own: from now on that is ours to place, and the observer moves none of it any more. We wait for that, a
/// second at most.
void release_memory_from_observer();

struct ObserverAddress {
  sockaddr_un name;
  long size;
};
/// False: nobody observes us. Reads the environment; the others need not.
bool find_observer(ObserverAddress* observer);
/// Asks for the file of wishes. A socket, which is the caller's; or -errno.
int ask_for_wishes(const ObserverAddress& observer);
/// The answer, for which we wait so long: the file, which is the caller's; -EAGAIN: it has not come; another -errno: there is none.
int take_wishes(int socket, long wait_ns);

}  // namespace bosk::base
