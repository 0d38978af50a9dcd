// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decides whether user-level threads can be given identities of their own, by trying it.
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

#include <atomic>

#include "base/message.h"
#include "base/settings.h"
#include "base/syscalls.h"
#include "context/annotations.h"
#include "context/identity.h"
#include "context/switch.h"

// Our own tests of identities under ThreadSanitizer (preset tsan) do without preemption.
#if !defined(BOSK_TSAN) || defined(BOSK_TSAN_PROGRAMS)
#define BOSK_MINDS_TSAN 1
extern "C" [[gnu::weak]] void __tsan_init();
#endif

namespace bosk::context {
namespace {

constinit std::atomic<Provider> decided{Provider::kUnknown};
constinit base::SayOnce once;

/// A TLS variable in the model that a program's own would have: through whatever the loader set up.
constinit thread_local volatile int test_value = 0;

struct SelfTest {
  DonorRequest request;
  std::atomic<uint32_t> answered{0};
  Identity* identity = nullptr;
  void* caller_sp = nullptr;
  uintptr_t caller_thread_pointer = 0;
  void* donor_sp = nullptr;
  const char* failure = nullptr;
};

/// The compiler takes pthread_self() for a constant of the function that calls it: asked here, it is
/// asked afresh.
[[gnu::noinline]] pthread_t ask_self() {
  asm volatile("");
  return pthread_self();
}

void on_donor(void* argument) {
  acquire_from(argument);
  auto* identity = static_cast<Identity*>(argument);
  auto* test = static_cast<SelfTest*>(identity->parked_argument);
  identity->parked_argument = nullptr;
  const char* here = static_cast<char*>(__builtin_frame_address(0));
  if (here < identity->stack_low || here >= identity->stack_high)
    test->failure = "the stack is not the donor's";
  else if (thread_pointer() != identity->thread_pointer || thread_block()->identity != identity)
    test->failure = "the thread pointer did not change";
  else if (test_value != 0)
    test->failure = "thread-local variables are shared";
  else if (!pthread_equal(ask_self(), identity->pthread))
    test->failure = "pthread_self does not follow";
  test_value = 2;
  errno = EDOM;
  annotated_switch(&test->donor_sp, test->caller_sp, test->caller_thread_pointer, test, identity);
  __builtin_unreachable();
}

void on_answer(DonorRequest* request, Identity* identity) {
  auto* test = static_cast<SelfTest*>(request->argument);
  test->identity = identity;
  // release: the waiter sees identity and the request's results. The waiter cannot return before
  // `answered` is set, but may before the wake: a wake-up at an address that is gone is harmless.
  test->answered.store(1, std::memory_order_release);
  base::futex_wake(&test->answered, 1);
}

[[gnu::noinline]] void switch_there_and_back(SelfTest* test) {
  const pthread_t self = ask_self();
  const int old_errno = errno;
  const int old_value = test_value;
  test->caller_thread_pointer = thread_pointer();
  test->identity->parked_argument = test;
  test_value = 1;
  errno = ERANGE;
  // While this kernel thread has another's identity, a tick must find no thread to preempt.
  ThreadBlock* block = thread_block();
  preempt_disable(block);
  annotated_switch(&test->caller_sp, test->request.initial_sp, test->identity->thread_pointer,
                   test->identity, test);
  preempt_enable(block);
  if (test->failure == nullptr) {
    if (thread_pointer() != test->caller_thread_pointer || !pthread_equal(ask_self(), self))
      test->failure = "the way back lost the identity";
    else if (test_value != 1)
      test->failure = "thread-local variables are shared";
    else if (errno != ERANGE)
      test->failure = "errno is shared";
  }
  test_value = old_value;
  errno = old_errno;
}

/// Shadow stacks hold return addresses per kernel thread; our switch does not carry them along.
bool has_shadow_stack() {
  unsigned long state = 0;
#if defined(__x86_64__)
  constexpr long kShadowStackStatus = 0x5005;  // ARCH_SHSTK_STATUS
  if (base::raw_syscall(SYS_arch_prctl, kShadowStackStatus, base::address_of(&state)) != 0)
    return false;
#else
  constexpr long kShadowStackStatus = 74;  // PR_GET_SHADOW_STACK_STATUS
  if (base::raw_syscall(SYS_prctl, kShadowStackStatus, base::address_of(&state)) != 0) return false;
#endif
  return (state & 1) != 0;
}

/// Null: identities work.
const char* find_obstacle() {
  if (base::settings().selftest_fail_identity) return "BOSK_SELFTEST asks for it";
#if defined(__x86_64__)
  constexpr unsigned long kFsGsBase = 2;  // HWCAP2_FSGSBASE
  if ((getauxval(AT_HWCAP2) & kFsGsBase) == 0)
    return "setting FS needs Linux 5.9 and a processor with FSGSBASE, which valgrind hides";
#endif
  if (has_shadow_stack()) return "shadow stacks are on";
#if defined(BOSK_MINDS_TSAN)
  // The program was built with it: who waits in the kernel would not be set aside.
  if (&__tsan_init != nullptr) return "ThreadSanitizer holds back the signals that preempt threads";
#endif
  // glibc takes the static TLS of all objects out of the stack that it is given, and refuses one that is
  // too small for it.
  const char* failure = nullptr;
  for (size_t stack = size_t{1} << 20; stack <= size_t{1} << 28; stack <<= 4) {
    SelfTest test;
    test.request.stack_size = stack;
    test.request.entry = on_donor;
    test.request.argument = &test;
    test.request.finished = on_answer;
    if (request_donor(&test.request))
      while (test.answered.load(std::memory_order_acquire) == 0)
        base::futex_wait(&test.answered, 0);
    if (test.identity != nullptr) {
      switch_there_and_back(&test);
      release_donor(test.identity);
      return test.failure;
    }
    failure = strerrordesc_np(test.request.error);
    if (test.request.error != EINVAL) break;
  }
  return failure;
}

/// Of a test that came second, too: it is shown only where the answer was no.
constinit std::atomic<const char*> known_obstacle{nullptr};

}  // namespace

const char* provider_obstacle() {
  return decided.load(std::memory_order_acquire) == Provider::kKernelThreads
             ? known_obstacle.load(std::memory_order_relaxed)
             : nullptr;
}

Provider provider() {
  Provider known = decided.load(std::memory_order_acquire);
  if (known != Provider::kUnknown) return known;
  if (base::settings().identity == base::IdentityChoice::kKernelThread) {
    known_obstacle.store("BOSK_IDENTITY=kthread", std::memory_order_relaxed);
    decided.store(Provider::kKernelThreads, std::memory_order_release);
    return Provider::kKernelThreads;
  }
  // Threads that come here together test separately, and the first result counts: nobody waits for
  // another that a fork may have left behind.
  const char* obstacle = find_obstacle();
  if (obstacle != nullptr) known_obstacle.store(obstacle, std::memory_order_relaxed);
  const Provider mine = obstacle == nullptr ? Provider::kDonors : Provider::kKernelThreads;
  if (!decided.compare_exchange_strong(known, mine, std::memory_order_acq_rel)) return known;
  if (obstacle != nullptr && once.first())
    base::say(
        "cannot give user-level threads identities of their own (%s); "
        "using one kernel thread per OpenMP thread",
        obstacle);
  return mine;
}

}  // namespace bosk::context
