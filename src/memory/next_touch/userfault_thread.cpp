// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// It allocates for the toucher: its own memory policy prefers the node of the toucher's CPU. It uses
// system calls only and memory of nobody else, so that it never waits for what it has to resolve itself.
#include "memory/next_touch/userfault_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "memory/next_touch/kernel_nodes.h"
#include "memory/next_touch/resolve.h"
#include "memory/next_touch/userfault.h"

namespace bosk::memory {
namespace {

void* serve(void* argument) {
  const int file = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  // Not where the thread that happened to mark first is bound.
  const uint64_t all_cpus[16] = {~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull,
                                 ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull};
  base::raw_syscall(SYS_sched_setaffinity, 0, sizeof all_cpus, base::address_of(all_cpus));
  uint32_t preferred = kMostKernelNodes;
  for (;;) {
    pollfd wait = {file, POLLIN, 0};
    base::raw_syscall(SYS_ppoll, base::address_of(&wait), 1, 0, 0, 0);
    uffd_msg message;
    const long got = base::raw_syscall(SYS_read, file, base::address_of(&message), sizeof message);
    if (got == -EAGAIN || got == -EINTR) continue;
    if (got != sizeof message) return nullptr;  // closed: a forked child, or the program did it
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    uint32_t target = 0;
    if (count_memory_nodes() > 1) {
      target = node_of_thread(static_cast<int>(message.arg.pagefault.feat.ptid));
      if (target != preferred) prefer_node(preferred = target);
    }
    const auto at = static_cast<uintptr_t>(message.arg.pagefault.address);
    // Resolved already, and the region with it: let it touch again.
    uint32_t changes;
    if (!resolve_touch(at, 0, target, &changes))
      userfault_wake(file, at & ~(base::kPage - 1), (at | (base::kPage - 1)) + 1);
  }
}

}  // namespace

bool start_userfault_thread(int file) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  // No signal of the program's is for it. glibc's own, for set*id, comes all the same.
  sigset_t all;
  sigfillset(&all);
  pthread_attr_setsigmask_np(&attributes, &all);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, size_t{128} * 1024);
  pthread_t thread;
  const int failed = pthread_create(&thread, &attributes, serve,
                                    reinterpret_cast<void*>(static_cast<intptr_t>(file)));
  pthread_attr_destroy(&attributes);
  return failed == 0;
}

}  // namespace bosk::memory
