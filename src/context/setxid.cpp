// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// glibc's signal for set*id under lent identities; and ticks, which share it.
//
// User and group numbers belong to kernel threads; POSIX gives them to the process. So glibc's
// setuid() sends signal 33 to every thread it knows, by the thread number in its control block, waits
// until all handlers have made the system call, and has each handler clear a flag in "its own" control
// block, which it finds through the thread pointer. Under a lent identity that is somebody else's: the
// right flag is never cleared and setuid() hangs. Hence the wrapper, which gives the kernel thread its
// own identity back while glibc's handler runs.
//
// Second trap: glibc does not signal the caller. If that is a user-level thread under a lent identity,
// the caller's control block names the donor's kernel thread, which would keep its old privileges.
// The kernel thread that carries the caller does get the signal, and its wrapper then takes the lender
// along.
#include "context/setxid.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>

#include "base/syscalls.h"
#include "context/identity.h"
#include "context/switch.h"

namespace bosk::context {
namespace {

constexpr int kSigSetxid = 33;

// ---- tid → own thread pointer: two levels, read by signal handlers, nothing is ever freed. ----

constexpr uint32_t kChunkBits = 10;
constexpr uint32_t kChunkEntries = 1u << kChunkBits;
constexpr uint32_t kMostTids = 1u << 22;  ///< the kernel's PID_MAX_LIMIT on 64-bit machines

struct Chunk {
  std::atomic<uintptr_t> own[kChunkEntries];
};
constinit std::atomic<Chunk*> chunks[kMostTids / kChunkEntries] = {};

std::atomic<uintptr_t>* entry_of(int tid) {
  if (tid <= 0 || static_cast<uint32_t>(tid) >= kMostTids) return nullptr;
  // acquire pairs with the release that published the chunk: it is zeroed.
  Chunk* chunk = chunks[static_cast<uint32_t>(tid) >> kChunkBits].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &chunk->own[static_cast<uint32_t>(tid) % kChunkEntries];
}

uintptr_t own_thread_pointer(int tid) {
  std::atomic<uintptr_t>* entry = entry_of(tid);
  return entry == nullptr ? 0 : entry->load(std::memory_order_acquire);
}

int tid_of(uintptr_t thread_pointer) {
  for (uint32_t c = 0; c < kMostTids / kChunkEntries; ++c) {
    Chunk* chunk = chunks[c].load(std::memory_order_acquire);
    if (chunk == nullptr) continue;
    for (uint32_t i = 0; i < kChunkEntries; ++i)
      if (chunk->own[i].load(std::memory_order_relaxed) == thread_pointer)
        return static_cast<int>(c * kChunkEntries + i);
  }
  return 0;
}

// ---- The handler. ----

/// The kernel's own layout; glibc's sigaction() refuses signal 33.
struct KernelSigaction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
#if defined(__x86_64__)
  void (*restorer)();
#endif
  base::KernelSigset mask;
};
constexpr unsigned long kRestorer = 0x04000000;  // SA_RESTORER, in no header

bool get_action(KernelSigaction* action) {
  return base::raw_syscall(SYS_rt_sigaction, kSigSetxid, 0, base::address_of(action),
                           sizeof action->mask) == 0;
}

constinit std::atomic<void (*)(int, siginfo_t*, void*)> glibc_handler{nullptr};
constinit std::atomic<void (*)(void*, int)> tick_handler{nullptr};

/// What a lender must become. One is enough: glibc lets one set*id run at a time.
struct Credentials {
  std::atomic<uint32_t> state;  ///< 0 not wanted, 1 to be taken over, 2 taken over (futex)
  uint32_t uid[3];              ///< real, effective, saved
  uint32_t gid[3];
  int group_count;
  uint32_t groups[65536];  ///< the kernel's NGROUPS_MAX; untouched pages cost nothing
};
constinit Credentials wanted = {};

void take_over() {
  // Groups first: afterwards the right to change them may be gone.
  if (wanted.group_count >= 0)
    base::raw_syscall(SYS_setgroups, wanted.group_count, base::address_of(wanted.groups));
  base::raw_syscall(SYS_setresgid, wanted.gid[0], wanted.gid[1], wanted.gid[2]);
  base::raw_syscall(SYS_setresuid, wanted.uid[0], wanted.uid[1], wanted.uid[2]);
}

/// Makes the kernel thread `tid`, whose identity the calling one has borrowed, change its credentials
/// to ours, and waits until it has. It can: a lender is parked with this signal unblocked.
void take_lender_along(int tid) {
  base::raw_syscall(SYS_getresuid, base::address_of(&wanted.uid[0]),
                    base::address_of(&wanted.uid[1]), base::address_of(&wanted.uid[2]));
  base::raw_syscall(SYS_getresgid, base::address_of(&wanted.gid[0]),
                    base::address_of(&wanted.gid[1]), base::address_of(&wanted.gid[2]));
  wanted.group_count =
      static_cast<int>(base::raw_syscall(SYS_getgroups, 65536, base::address_of(wanted.groups)));
  wanted.state.store(1, std::memory_order_release);
  const long process = base::raw_syscall(SYS_getpid);
  siginfo_t info = {};
  info.si_signo = kSigSetxid;
  info.si_code = SI_QUEUE;
  info.si_pid = static_cast<pid_t>(process);
  if (base::raw_syscall(SYS_rt_tgsigqueueinfo, process, tid, kSigSetxid, base::address_of(&info)) ==
      0)
    while (wanted.state.load(std::memory_order_acquire) == 1) base::futex_wait(&wanted.state, 1);
  wanted.state.store(0, std::memory_order_relaxed);
}

/// The signal interrupted the system call that sent it: this kernel thread runs the caller of set*id.
/// The registers still hold tgkill's arguments then.
bool sent_by_myself(const void* context, long process, int tid) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto* code = reinterpret_cast<const unsigned char*>(machine.gregs[REG_RIP]);
  return machine.gregs[REG_RAX] == 0 && machine.gregs[REG_RDI] == process &&
         machine.gregs[REG_RSI] == tid && machine.gregs[REG_RDX] == kSigSetxid &&
         code[-2] == 0x0f && code[-1] == 0x05;
#else
  // svc #0
  const auto* code = reinterpret_cast<const uint32_t*>(machine.pc);
  return machine.regs[0] == 0 && machine.regs[8] == SYS_tgkill &&
         machine.regs[1] == static_cast<uint64_t>(tid) && machine.regs[2] == kSigSetxid &&
         code[-1] == 0xd4000001 && process != 0;
#endif
}

void on_signal(int signal_number, siginfo_t* info, void* context) {
  if (info->si_code == SI_TIMER) {
    // relaxed: set before the first timer is made.
    if (auto* tick = tick_handler.load(std::memory_order_relaxed))
      tick(context, info->si_value.sival_int);
    return;
  }
  const long process = base::raw_syscall(SYS_getpid);
  const int tid = base::thread_id();
  if (info->si_code == SI_QUEUE) {
    // From take_lender_along. Other processes of the user can send the like, but only what was wanted
    // here is served.
    if (wanted.state.load(std::memory_order_acquire) != 1) return;
    take_over();
    wanted.state.store(2, std::memory_order_release);
    base::futex_wake(&wanted.state, 1);
    return;
  }
  auto* theirs = glibc_handler.load(std::memory_order_acquire);
  const uintptr_t installed = thread_pointer();
  const uintptr_t own = own_thread_pointer(tid);
  if (own == 0 || own == installed) {
    theirs(signal_number, info, context);
    return;
  }
  set_thread_pointer(own);
  theirs(signal_number, info, context);
  set_thread_pointer(installed);
  if (!sent_by_myself(context, process, tid)) return;
  const int lender = tid_of(installed);
  if (lender != 0) take_lender_along(lender);
}

}  // namespace

bool register_kernel_thread(int tid, uintptr_t thread_pointer) {
  if (tid <= 0 || static_cast<uint32_t>(tid) >= kMostTids) return false;
  std::atomic<Chunk*>& slot = chunks[static_cast<uint32_t>(tid) >> kChunkBits];
  if (slot.load(std::memory_order_acquire) == nullptr) {
    const long address = base::raw_syscall(SYS_mmap, 0, sizeof(Chunk), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address < 0 && address > -4096) return false;
    Chunk* none = nullptr;
    if (!slot.compare_exchange_strong(none, reinterpret_cast<Chunk*>(address),
                                      std::memory_order_acq_rel))
      base::raw_syscall(SYS_munmap, address, sizeof(Chunk));
  }
  entry_of(tid)->store(thread_pointer, std::memory_order_release);
  return true;
}

void forget_kernel_thread(int tid) {
  if (std::atomic<uintptr_t>* entry = entry_of(tid)) entry->store(0, std::memory_order_release);
}

void set_tick_handler(void (*handler)(void*, int)) {
  tick_handler.store(handler, std::memory_order_relaxed);
}

bool install_setxid_wrapper() {
  KernelSigaction action;
  if (!get_action(&action)) return false;
  if (action.handler == on_signal) return true;
  if (reinterpret_cast<uintptr_t>(action.handler) <= 1) return false;  // SIG_DFL, SIG_IGN
  glibc_handler.store(action.handler, std::memory_order_release);
  action.handler = on_signal;
  // glibc's asks for the alternate stack. But that belongs to a kernel thread, and who has suspended in a handler of
  // the program's stands on it, while another thread runs there and is ticked.
  action.flags &= ~static_cast<unsigned long>(SA_ONSTACK);
  // Nothing may interrupt while the thread pointer is not the interrupted code's, and nothing of the
  // program's may run on top of a tick, whose thread may go on much later and elsewhere.
  action.mask = ~base::KernelSigset{0};
#if defined(__x86_64__)
  if ((action.flags & kRestorer) == 0) return false;
#endif
  return base::raw_syscall(SYS_rt_sigaction, kSigSetxid, base::address_of(&action), 0,
                           sizeof action.mask) == 0;
}

void setxid_forget_after_fork() {
  // Who forked may have run on a kernel thread under an identity that was not its own. The child's kernel thread is registered for rseq
  // with that one's own, whose stack the C library unmaps when it pleases, for it knows nobody who has it; the kernel kills
  // whose area it cannot write to. All entries are still there, and one is right; the kernel refuses the others.
  bool is_elsewhere = !register_rseq();
  for (auto& slot : chunks) {
    Chunk* chunk = slot.load(std::memory_order_relaxed);
    if (chunk == nullptr) continue;
    for (auto& entry : chunk->own) {
      const uintptr_t own = entry.load(std::memory_order_relaxed);
      if (own == 0) continue;
      if (is_elsewhere && unregister_rseq_of(own)) is_elsewhere = !register_rseq();
      entry.store(0, std::memory_order_relaxed);
    }
  }
  wanted.state.store(0, std::memory_order_relaxed);
}

}  // namespace bosk::context
