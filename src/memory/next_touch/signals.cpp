// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A touch of marked memory raises SIGBUS (userfaultfd) or SIGSEGV (mprotect) in the thread that touches,
// and our handler resolves it there, whatever ran: a native thread, a user-level one under a lent
// identity, a handler of the program's. It uses raw system calls and no TLS, keeps all signals blocked (so
// it is neither preempted nor entered twice), and returns to the instruction, which runs again.
#include "memory/next_touch/signals.h"

#include <string.h>
#include <ucontext.h>

#include "base/spinlock.h"
#include "memory/next_touch/resolve.h"
#include "memory/next_touch/state.h"

namespace bosk::memory {
namespace {

/// The program's action for a signal that we handle. All signals are blocked where the lock is held.
struct Behind {
  base::SpinLock lock;
  bool known;
  struct sigaction action;
};
constinit Behind behind_bus = {};
constinit Behind behind_segv = {};

Behind* behind(int signal_number) {
  return signal_number == SIGBUS ? &behind_bus : signal_number == SIGSEGV ? &behind_segv : nullptr;
}

/// The faults that found nothing of ours, by thread: who has just lost a race against a resolver touches
/// again and succeeds; who comes back to the same place, with nothing marked or ended since, is not ours.
struct Miss {
  std::atomic<uint64_t> key;
};
constexpr uint32_t kMisses = 256;
constinit Miss misses[kMisses] = {};

bool try_again(uintptr_t at) {
  const auto tid = static_cast<uint64_t>(base::thread_id());
  // acquire: pairs with the release of whoever has ended the region.
  const uint64_t changes = state.changes.load(std::memory_order_acquire);
  const uint64_t key =
      (at * 0x9e3779b97f4a7c15u) ^ (tid << 40) ^ (changes * 0xff51afd7ed558ccdu) ^ 1;
  // relaxed: written and read back by the same thread; another one in the same place costs a round.
  return misses[tid % kMisses].key.exchange(key, std::memory_order_relaxed) != key;
}

void to_default(int signal_number) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal_number, &action, nullptr);
}

/// What the kernel would have done without us.
void pass_on(int signal_number, siginfo_t* info, void* context) {
  Behind* theirs = behind(signal_number);
  theirs->lock.lock();
  const struct sigaction action = theirs->action;
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    theirs->action.sa_handler = SIG_DFL;
    theirs->action.sa_flags &= ~SA_SIGINFO;
  }
  theirs->lock.unlock();
  count(state.counters.chained, 1);
  const bool plain = (action.sa_flags & SA_SIGINFO) == 0;
  const bool sent = info->si_code <= 0;  // by a process, not by a fault
  if (plain && action.sa_handler == SIG_IGN && sent) return;
  if (plain && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
    // A fault happens again when we return, and nobody ignores that; what was sent is sent again.
    to_default(signal_number);
    if (sent)
      base::raw_syscall(SYS_rt_tgsigqueueinfo, base::raw_syscall(SYS_getpid), base::thread_id(),
                        signal_number, base::address_of(info));
    return;
  }
  base::KernelSigset mask;
  base::KernelSigset more;
  memcpy(&mask, &static_cast<const ucontext_t*>(context)->uc_sigmask, sizeof mask);
  memcpy(&more, &action.sa_mask, sizeof more);
  mask |= more;
  if ((action.sa_flags & SA_NODEFER) == 0) mask |= base::signal_bit(signal_number);
  base::set_signal_mask(mask);
  if (plain)
    action.sa_handler(signal_number);
  else
    action.sa_sigaction(signal_number, info, context);
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
  const int code =
      signal_number == SIGBUS ? static_cast<int>(BUS_ADRERR) : static_cast<int>(SEGV_ACCERR);
  if (info->si_code == code) {
    const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
    if (resolve_touch(at, signal_number, node_of_caller()) || try_again(at)) return;
  }
  pass_on(signal_number, info, context);
}

/// Their frames may be meant for another stack than the one that overflowed: as theirs, so ours.
bool install(int signal_number, int their_flags) {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | (their_flags & SA_ONSTACK);
  sigfillset(&action.sa_mask);
  return sigaction(signal_number, &action, nullptr) == 0;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_fault;
}

}  // namespace

bool keep_handler(int signal_number) {
  Behind* theirs = behind(signal_number);
  if (theirs == nullptr) return true;
  struct sigaction now;
  if (sigaction(signal_number, nullptr, &now) != 0) return false;
  if (is_ours(now)) return true;
  theirs->lock.lock();
  theirs->action = now;
  theirs->known = true;
  const bool installed = install(signal_number, now.sa_flags);
  theirs->lock.unlock();
  return installed;
}

bool sigaction_behind_ours(int signal_number, const struct sigaction* wanted,
                           struct sigaction* before) {
  Behind* theirs = behind(signal_number);
  if (theirs == nullptr) return false;
  const SignalsBlocked blocked;
  theirs->lock.lock();
  struct sigaction now;
  const bool ours = theirs->known && sigaction(signal_number, nullptr, &now) == 0 && is_ours(now);
  if (ours) {
    const struct sigaction was = theirs->action;
    if (wanted != nullptr) {
      theirs->action = *wanted;
      if (((wanted->sa_flags ^ was.sa_flags) & SA_ONSTACK) != 0)
        install(signal_number, wanted->sa_flags);
    }
    if (before != nullptr) *before = was;
  }
  theirs->lock.unlock();
  return ours;
}

}  // namespace bosk::memory
