// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Donors as kernel threads: how they park, what they cost, how they end, how they are refused.
#include <dirent.h>
#include <linux/rseq.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <memory>

#include "context/identity.h"
#include "context/switch.h"
#include "context_support.h"
#include "in_child.h"

using namespace bosk;
using context_test::DonorContext;

namespace {

/// A line of /proc/self/task/TID/status, without its name.
std::string status_of(int tid, const std::string& key) {
  const std::string path = "/proc/self/task/" + std::to_string(tid) + "/status";
  FILE* file = fopen(path.c_str(), "r");
  std::string result;
  char line[512];
  while (file != nullptr && fgets(line, sizeof line, file) != nullptr)
    if (std::string(line).rfind(key + ":", 0) == 0) {
      result = line + key.size() + 1;
      result.erase(0, result.find_first_not_of(" \t"));
      result.erase(result.find_last_not_of(" \n") + 1);
    }
  if (file != nullptr) fclose(file);
  return result;
}

size_t mapped_kib() { return strtoul(status_of(base::thread_id(), "VmSize").c_str(), nullptr, 10); }

void wait_until_asleep(int tid) {
  while (status_of(tid, "State").rfind("S", 0) != 0) sched_yield();
}

bool is_mapped(const char* address) {
  unsigned char resident;
  return mincore(const_cast<char*>(address), 1, &resident) == 0;
}

TEST(Donors, park_with_every_signal_but_setxid_blocked) {
  if (context_test::emulated()) GTEST_SKIP() << "/proc shows qemu's masks";
  DonorContext fresh([](DonorContext&) {});
  DonorContext used([](DonorContext& self) { self.yield(); });
  ASSERT_NE(fresh.identity(), nullptr);
  ASSERT_NE(used.identity(), nullptr);
  used.resume();
  for (DonorContext* context : {&fresh, &used}) {
    wait_until_asleep(context->identity()->tid);
    const std::string blocked = status_of(context->identity()->tid, "SigBlk");
    const uint64_t never = base::signal_bit(SIGKILL) | base::signal_bit(SIGSTOP);
    EXPECT_EQ(strtoull(blocked.c_str(), nullptr, 16), ~(base::signal_bit(33) | never)) << blocked;
  }
}

TEST(Donors, know_their_stack) {
  const char* local = nullptr;
  DonorContext context(
      [&](DonorContext&) { local = static_cast<char*>(__builtin_frame_address(0)); }, 4 << 20);
  ASSERT_NE(context.identity(), nullptr);
  context.resume();
  const context::Identity& identity = *context.identity();
  EXPECT_EQ(identity.kind, context::IdentityKind::kDonor);
  EXPECT_GE(identity.stack_high - identity.stack_low, 4 << 20);
  EXPECT_GT(local, identity.stack_low);
  EXPECT_LT(local, identity.stack_high);
  // What was asked for is there to be used, whatever TLS takes from the same mapping.
  EXPECT_GE(local - identity.stack_low, (4 << 20) - (16 << 10));
  // What the scheduler keeps there, and what it may do with it.
  ASSERT_NE(identity.records, nullptr);
  memset(identity.records, 0xff, context::kRecordRoom);
}

TEST(Donors, run_a_context_on_their_own_kernel_thread_when_told) {
  std::vector<int> where;
  std::vector<base::KernelSigset> masks;
  DonorContext context([&](DonorContext& self) {
    for (int i = 0; i < 3; ++i) {
      where.push_back(base::thread_id());
      masks.push_back(base::signal_mask());
      if (i == 1)
        self.yield_to_park();
      else
        self.yield();
    }
  });
  ASSERT_NE(context.identity(), nullptr);
  const int donor = context.identity()->tid;
  const int here = base::thread_id();
  ASSERT_NE(donor, here);
  context.resume();
  const base::KernelSigset mask = base::signal_bit(SIGUSR1) | base::signal_bit(SIGTERM);
  context.resume_on_own_thread(mask);
  context.resume();
  EXPECT_EQ(where, (std::vector<int>{here, donor, here}));
  ASSERT_EQ(masks.size(), 3u);
  EXPECT_EQ(masks[1], mask);
  EXPECT_EQ(masks[2], masks[0]);
  if (!context_test::emulated()) {
    wait_until_asleep(donor);
    EXPECT_EQ(strtoull(status_of(donor, "SigBlk").c_str(), nullptr, 16) & mask, mask);
  }
}

TEST(Donors, have_rseq_unregistered) {
  // A second registration is refused while there is one; the new one here is taken back at once.
  struct alignas(32) Area {
    char bytes[64] = {};
  };
  Area area;
#if defined(__x86_64__)
  constexpr long kSignature = 0x53053053;
#else
  constexpr long kSignature = static_cast<long>(0xd428bc00);
#endif
  long registered = -1, taken_back = -1;
  DonorContext context([&](DonorContext& self) {
    self.yield();
    registered = base::raw_syscall(SYS_rseq, base::address_of(&area), 32, 0, kSignature);
    taken_back =
        base::raw_syscall(SYS_rseq, base::address_of(&area), 32, RSEQ_FLAG_UNREGISTER, kSignature);
    self.yield_to_park();
  });
  ASSERT_NE(context.identity(), nullptr);
  context.resume();
  context.resume_on_own_thread(0);
  if (registered == -ENOSYS) GTEST_SKIP() << "no rseq here";
  EXPECT_EQ(registered, 0) << strerror(static_cast<int>(-registered));
  EXPECT_EQ(taken_back, 0);
}

TEST(Donors, unregistering_rseq_twice_is_harmless) {
  std::thread([] {
    context::unregister_rseq();
    context::unregister_rseq();
    EXPECT_GE(sched_getcpu(), 0);
  }).join();
}

TEST(DonorsDeathTest, a_full_stack_hits_the_guard_page) {
  const auto overflow = [] {
    context::identity_forget_after_fork();
    DonorContext context(
        [](DonorContext& self) {
          // From the first frame down, a page at a time, as a deep recursion would.
          volatile char* low = self.identity()->stack_low;
          for (volatile char* at = low + 8192; at >= low - 4096; at -= 4096) *at = 1;
        },
        context_test::kStack);
    context.resume();
    _exit(0);
  };
  const auto crashed = [](int status) {
    // The sanitizers catch it and exit.
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV
                               : context_test::kSanitized && WEXITSTATUS(status) != 0;
  };
  EXPECT_EXIT(overflow(), crashed, "");
}

TEST(Donors, leave_no_stacks_behind) {
  constexpr size_t kStack = 2 << 20;
  constexpr int kDonors = 100;
  const auto batch = [&] {
    std::vector<std::unique_ptr<DonorContext>> contexts;
    std::vector<char*> stacks;
    for (int i = 0; i < kDonors; ++i) {
      contexts.push_back(
          std::make_unique<DonorContext>([](DonorContext& self) { self.yield(); }, kStack));
      ASSERT_NE(contexts.back()->identity(), nullptr);
      if (i % 2 == 0) contexts.back()->resume();
      stacks.push_back(contexts.back()->identity()->stack_low);
    }
    contexts.clear();
    for (const char* stack : stacks)
      while (is_mapped(stack)) sched_yield();
  };
  batch();
  const size_t before = mapped_kib();
  for (int i = 0; i < 3; ++i) batch();
  // 300 stacks of 2 MiB came and went; park stacks are 32 KiB and pooled in slabs.
  if (!context_test::emulated() && !context_test::kSanitized) {
    EXPECT_LT(mapped_kib(), before + 32 * 1024);
  }
}

TEST(Donors, are_counted) {
  const context::IdentityCounts before = context::identity_counts();
  DonorContext context([](DonorContext&) {});
  ASSERT_NE(context.identity(), nullptr);
  EXPECT_EQ(context::identity_counts().donors, before.donors + 1);
  EXPECT_EQ(context::identity_counts().kernel_threads, before.kernel_threads);
}

TEST(Donors, the_factory_makes_plain_threads_too) {
  struct Asked {
    context::DonorRequest request;
    std::atomic<uint32_t> told{0};  // 1 by the thread, 2 by the factory
    base::KernelSigset mask = 0;
    int tid = 0;
    void tell(uint32_t what) {
      told.store(what, std::memory_order_release);
      base::futex_wake(&told, 1);
    }
  } asked;
  asked.request.thread_main = [](void* argument) {
    auto* us = static_cast<Asked*>(argument);
    us->mask = base::signal_mask();
    us->tid = base::thread_id();
    us->tell(1);
    return false;
  };
  asked.request.argument = &asked;
  asked.request.mask = base::signal_bit(SIGUSR2);
  // Only failures are reported; a thread that was made speaks for itself.
  asked.request.finished = [](context::DonorRequest* request, context::Identity*) {
    static_cast<Asked*>(request->argument)->tell(2);
  };
  const context::IdentityCounts before = context::identity_counts();
  ASSERT_TRUE(context::request_donor(&asked.request));
  while (asked.told.load(std::memory_order_acquire) == 0) base::futex_wait(&asked.told, 0);
  ASSERT_EQ(asked.told, 1u) << strerror(asked.request.error);
  EXPECT_EQ(asked.mask, base::signal_bit(SIGUSR2));
  EXPECT_NE(asked.tid, base::thread_id());
  EXPECT_EQ(context::identity_counts().kernel_threads, before.kernel_threads + 1);
}

TEST(Donors, a_forked_child_makes_its_own) {
  if (context_test::emulated()) GTEST_SKIP() << "qemu dies of threads made after such a fork";
  DonorContext before([](DonorContext& self) { self.yield(); });
  ASSERT_NE(before.identity(), nullptr);
  before.resume();
  const bosk::testing::ChildResult result = bosk::testing::in_child({}, []() -> std::string {
    context::identity_forget_after_fork();
    int ran = 0;
    DonorContext context([&](DonorContext&) { ++ran; });
    if (context.identity() == nullptr) return strerror(context.error());
    context.resume();
    return ran == 1 ? "ran" : "did not run";
  });
  EXPECT_EQ(result.output, "ran");
  EXPECT_EQ(result.status, 0);
}

// ---- Refusals. ----

/// As somebody whom limits bind; root is exempt from RLIMIT_NPROC.
bool become_nobody() { return geteuid() != 0 || setresuid(61234, 61234, 61234) == 0; }

bool limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  return setrlimit(static_cast<__rlimit_resource_t>(resource), &both) == 0;
}

TEST(Donors, no_factory_is_an_error_not_a_crash) {
  if (context_test::emulated()) GTEST_SKIP() << "qemu makes threads of its own";
  const bosk::testing::ChildResult result = bosk::testing::in_child({}, []() -> std::string {
    context::identity_forget_after_fork();
    if (!become_nobody() || !limit(RLIMIT_NPROC, 0)) return "no limit";
    DonorContext refused([](DonorContext&) {});
    if (refused.identity() != nullptr) return "made";
    if (refused.error() != EAGAIN) return strerror(refused.error());
    return "refused";
  });
  EXPECT_EQ(result.output, "refused");
  EXPECT_EQ(result.status, 0);
}

TEST(Donors, a_refused_donor_is_an_error_and_the_next_may_work) {
  if (context_test::emulated()) GTEST_SKIP() << "qemu makes threads of its own";
  const bosk::testing::ChildResult result = bosk::testing::in_child({}, []() -> std::string {
    context::identity_forget_after_fork();
    if (!become_nobody()) return "no nobody";
    rlimit old;
    getrlimit(RLIMIT_NPROC, &old);
    DonorContext first([](DonorContext&) {});
    if (first.identity() == nullptr) return "not even one";
    const rlimit none{0, old.rlim_max};
    setrlimit(RLIMIT_NPROC, &none);
    for (int i = 0; i < 100; ++i) {
      DonorContext refused([](DonorContext&) {});
      if (refused.identity() != nullptr) return "made";
      if (refused.error() != EAGAIN) return strerror(refused.error());
    }
    setrlimit(RLIMIT_NPROC, &old);
    DonorContext second([](DonorContext&) {});
    if (second.identity() == nullptr) return strerror(second.error());
    second.resume();
    return second.done() ? "refused, then made" : "did not run";
  });
  EXPECT_EQ(result.output, "refused, then made");
  EXPECT_EQ(result.status, 0);
}

TEST(Donors, a_stack_that_does_not_fit_is_an_error) {
  if (context_test::emulated() || context_test::kSanitized)
    GTEST_SKIP() << "the address space cannot be limited here";
  const bosk::testing::ChildResult result = bosk::testing::in_child({}, []() -> std::string {
    context::identity_forget_after_fork();
    DonorContext first([](DonorContext&) {});
    if (first.identity() == nullptr) return "not even one";
    rlimit old;
    getrlimit(RLIMIT_AS, &old);
    const rlimit little{(mapped_kib() << 10) + (16 << 20), old.rlim_max};
    setrlimit(RLIMIT_AS, &little);
    DonorContext refused([](DonorContext&) {}, size_t{1} << 30);
    if (refused.identity() != nullptr) return "made";
    if (refused.error() != ENOMEM) return strerror(refused.error());
    DonorContext small([](DonorContext&) {});
    if (small.identity() == nullptr) return strerror(small.error());
    small.resume();
    return small.done() ? "refused, then made" : "did not run";
  });
  EXPECT_EQ(result.output, "refused, then made");
  EXPECT_EQ(result.status, 0);
}

TEST(Donors, an_absurd_stack_size_is_an_error) {
  DonorContext refused([](DonorContext&) {}, size_t{1} << 62);
  EXPECT_EQ(refused.identity(), nullptr);
  EXPECT_EQ(refused.error(), ENOMEM);
}

}  // namespace
