// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A touch of marked memory raises SIGBUS (userfaultfd) or SIGSEGV (mprotect) in the thread that touches,
// and our handler resolves it there, whatever ran: a native thread, a user-level one under a lent
// identity, a handler of the program's. It uses raw system calls and no TLS, keeps all signals blocked (so
// it is neither preempted nor entered twice), and returns to the instruction, which runs again.
#include "memory/next_touch/signals.h"

#include <string.h>
#include <ucontext.h>

#include "base/spinlock.h"
#include "memory/next_touch/next_touch.h"
#include "memory/next_touch/resolve.h"
#include "memory/next_touch/state.h"

namespace bosk::memory {
namespace {

/// The program may install a handler over ours, which keeps ours as the one to call for what it does not know, and
/// ours is put in front of that one in turn. So that the chain ends, ours is another function each time, a
/// *front*, and each has its own action behind it: front 1, the program's handler, front 0, what was there first.
constexpr int kFronts = 8;
struct Behind {
  base::SpinLock lock;  ///< all signals are blocked where it is held
  int used;             ///< fronts that have an action
  struct sigaction actions[kFronts];
};
constinit Behind behind_bus = {};
constinit Behind behind_segv = {};

Behind* behind(int signal_number) {
  return signal_number == SIGBUS ? &behind_bus : signal_number == SIGSEGV ? &behind_segv : nullptr;
}

/// The faults that found nothing of ours, by thread: who has just lost a race against a resolver touches
/// again and succeeds; who comes back to the same place, with nothing marked or ended since, is not ours. For what was open to
/// him when the gate was his is closed again only by a mark, which counts before. So the count must be that of the look-up: one
/// of later may have seen a mark that closed the page for a second race against another resolver.
struct Miss {
  std::atomic<uint64_t> key;
};
constexpr uint32_t kMisses = 256;
constinit Miss misses[kMisses] = {};

bool try_again(uintptr_t at, uint64_t changes) {
  const auto tid = static_cast<uint64_t>(base::thread_id());
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

void set_mask_for(const struct sigaction& action, int signal_number, const void* context) {
  base::KernelSigset mask;
  base::KernelSigset more;
  memcpy(&mask, &static_cast<const ucontext_t*>(context)->uc_sigmask, sizeof mask);
  memcpy(&more, &action.sa_mask, sizeof more);
  mask |= more;
  if ((action.sa_flags & SA_NODEFER) == 0) mask |= base::signal_bit(signal_number);
  base::set_signal_mask(mask);
}

/// What the kernel would have done without us, or what the handler that called us had found without us.
void pass_on(int front, bool by_kernel, int signal_number, siginfo_t* info, void* context) {
  Behind* theirs = behind(signal_number);
  struct sigaction action;
  {
    const SignalsBlocked blocked;
    theirs->lock.lock();
    struct sigaction& kept = theirs->actions[front];
    action = kept;
    if ((action.sa_flags & SA_RESETHAND) != 0) {
      kept.sa_handler = SIG_DFL;
      kept.sa_flags &= ~SA_SIGINFO;
    }
    theirs->lock.unlock();
  }
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
  if (by_kernel) set_mask_for(action, signal_number, context);
  if (plain)
    action.sa_handler(signal_number);
  else
    action.sa_sigaction(signal_number, info, context);
}

/// relaxed: what it reads is there before any thread has a worker.
constinit std::atomic<uint32_t (*)()> kept_node{nullptr};

uint32_t node_of_toucher() {
  if (auto* ask = kept_node.load(std::memory_order_relaxed))
    if (const uint32_t node = ask(); node != topology::kNone) return node;
  return node_of_caller();
}

void handle(int front, int signal_number, siginfo_t* info, void* context) {
  const int code =
      signal_number == SIGBUS ? static_cast<int>(BUS_ADRERR) : static_cast<int>(SEGV_ACCERR);
  bool by_kernel;
  {
    // They are blocked already, unless a handler of the program's has called this one. One that does so as the last
    // thing leaves the frame as the kernel made it, so only the kernel can tell.
    SignalsBlocked blocked;
    by_kernel = blocked.all_were_blocked();
    if (by_kernel) blocked.leave_blocked();
    if (info->si_code == code) {
      const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
      uint32_t changes;
      if (resolve_touch(at, signal_number, node_of_toucher(), &changes) || try_again(at, changes))
        return;
    }
  }
  pass_on(front, by_kernel, signal_number, info, context);
}

template <int kFront>
void on_fault(int signal_number, siginfo_t* info, void* context) {
  handle(kFront, signal_number, info, context);
}
using Handler = void (*)(int, siginfo_t*, void*);
constexpr Handler kHandlers[kFronts] = {on_fault<0>, on_fault<1>, on_fault<2>, on_fault<3>,
                                        on_fault<4>, on_fault<5>, on_fault<6>, on_fault<7>};

bool is_ours(const struct sigaction& action) {
  if ((action.sa_flags & SA_SIGINFO) == 0) return false;
  for (const Handler handler : kHandlers)
    if (action.sa_sigaction == handler) return true;
  return false;
}

bool same(const struct sigaction& a, const struct sigaction& b) {
  return a.sa_sigaction == b.sa_sigaction && a.sa_flags == b.sa_flags &&
         memcmp(&a.sa_mask, &b.sa_mask, sizeof(base::KernelSigset)) == 0;
}

/// The front before this action; -1: there are none left.
int front_of(Behind* theirs, const struct sigaction& action) {
  for (int front = 0; front < theirs->used; ++front)
    if (same(theirs->actions[front], action)) return front;
  if (theirs->used == kFronts) return -1;
  theirs->actions[theirs->used] = action;
  return theirs->used++;
}

}  // namespace

bool has_handler(int signal_number) {
  if (behind(signal_number) == nullptr) return true;
  struct sigaction now;
  return sigaction(signal_number, nullptr, &now) == 0 && is_ours(now);
}

bool keep_handler(int signal_number) {
  Behind* theirs = behind(signal_number);
  if (theirs == nullptr) return true;
  struct sigaction now;
  if (sigaction(signal_number, nullptr, &now) != 0) return false;
  while (!is_ours(now)) {
    theirs->lock.lock();
    const int front = front_of(theirs, now);
    theirs->lock.unlock();
    if (front < 0) return false;
    struct sigaction ours = {};
    ours.sa_sigaction = kHandlers[front];
    // Their frames may be meant for another stack than the one that overflowed: as theirs, so ours.
    ours.sa_flags = SA_SIGINFO | (now.sa_flags & SA_ONSTACK);
    sigfillset(&ours.sa_mask);
    struct sigaction before;
    if (sigaction(signal_number, &ours, &before) != 0) return false;
    if (same(before, now)) return true;
    now = before;  // the program has installed another one meanwhile
  }
  return true;
}

void next_touch_goes_by(uint32_t (*node_of_toucher)()) {
  kept_node.store(node_of_toucher, std::memory_order_relaxed);
}

void lock_handlers_for_fork() {
  behind_bus.lock.lock();
  behind_segv.lock.lock();
}
void unlock_handlers_after_fork() {
  behind_segv.lock.unlock();
  behind_bus.lock.unlock();
}

}  // namespace bosk::memory
