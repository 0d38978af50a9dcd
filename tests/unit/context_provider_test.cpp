// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who provides identities: the start-up test, and what is said when it fails.
#include <sys/auxv.h>
#include <sys/resource.h>

#include "context/identity.h"
#include "context_support.h"
#include "in_child.h"

using namespace bosk;

namespace {

/// More than the stack that the self-test tries first: glibc takes this out of a donor's stack.
thread_local volatile char much_tls[3 << 20];

const char* name_of(context::Provider provider) {
  switch (provider) {
    case context::Provider::kUnknown:
      return "unknown";
    case context::Provider::kDonors:
      return "donors";
    case context::Provider::kKernelThreads:
      return "kernel threads";
  }
  return "?";
}

bosk::testing::ChildResult ask(const bosk::testing::Variables& variables) {
  return bosk::testing::in_child(variables, []() -> std::string {
    context::identity_forget_after_fork();
    // Asking again gives the same, and says nothing again.
    std::string text = name_of(context::provider());
    for (int i = 0; i < 3; ++i)
      if (text != name_of(context::provider())) text += ", then something else";
    return text;
  });
}

bool can_set_thread_pointer() {
#if defined(__x86_64__)
  return (getauxval(AT_HWCAP2) & 2) != 0;
#else
  return true;
#endif
}

TEST(Provider, donors_where_the_thread_pointer_can_be_set) {
  const auto result = ask({});
  if (can_set_thread_pointer()) {
    EXPECT_EQ(result.output, "donors");
    // Sanitizers have their own things to say about small stacks.
    EXPECT_EQ(result.errors.find("bosk:"), std::string::npos) << result.errors;
  } else {
    EXPECT_EQ(result.output, "kernel threads");
    EXPECT_THAT(result.errors, ::testing::HasSubstr("FSGSBASE"));
  }
  EXPECT_EQ(result.status, 0);
}

TEST(Provider, a_program_with_much_tls_has_donors_too) {
  if (!can_set_thread_pointer()) GTEST_SKIP();
  much_tls[sizeof much_tls - 1] = 1;
  const auto result = ask({});
  EXPECT_EQ(result.output, "donors");
  EXPECT_EQ(result.errors.find("bosk:"), std::string::npos) << result.errors;
}

TEST(Provider, a_failed_self_test_is_said_once) {
  const auto result = ask({{"BOSK_SELFTEST", "fail-identity"}});
  EXPECT_EQ(result.output, "kernel threads");
  EXPECT_EQ(result.errors,
            "bosk: cannot give user-level threads identities of their own (BOSK_SELFTEST asks for "
            "it); using one kernel thread per OpenMP thread\n");
  EXPECT_EQ(result.status, 0);
}

TEST(Provider, kernel_threads_when_asked_without_a_word) {
  const auto result = ask({{"BOSK_IDENTITY", "kthread"}});
  EXPECT_EQ(result.output, "kernel threads");
  EXPECT_EQ(result.errors, "");
}

TEST(Provider, a_refused_donor_means_kernel_threads_and_says_why) {
  if (context_test::emulated() || !can_set_thread_pointer()) GTEST_SKIP();
  const auto result = bosk::testing::in_child({}, []() -> std::string {
    context::identity_forget_after_fork();
    if (geteuid() == 0 && setresuid(61233, 61233, 61233) != 0) return "no nobody";
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    return name_of(context::provider());
  });
  EXPECT_EQ(result.output, "kernel threads");
  EXPECT_THAT(result.errors, ::testing::HasSubstr("(Resource temporarily unavailable)"));
}

TEST(Provider, the_test_leaves_the_caller_as_it_was) {
  const auto result = bosk::testing::in_child({}, []() -> std::string {
    context::identity_forget_after_fork();
    const base::KernelSigset mask = base::signal_mask();
    const uintptr_t thread_pointer = context::thread_pointer();
    const int32_t off = context::thread_block()->preempt_off;
    errno = E2BIG;
    context::provider();
    if (errno != E2BIG) return "errno";
    if (base::signal_mask() != mask) return "signal mask";
    if (context::thread_pointer() != thread_pointer) return "identity";
    if (context::thread_block()->preempt_off != off) return "preemption";
    return "same";
  });
  EXPECT_EQ(result.output, "same");
}

TEST(Provider, many_threads_may_ask_first_together) {
  const auto result = bosk::testing::in_child({}, []() -> std::string {
    context::identity_forget_after_fork();
    std::atomic<int> go{0}, donors{0}, others{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        go.fetch_add(1);
        while (go.load() != 8) sched_yield();
        (context::provider() == context::Provider::kDonors ? donors : others).fetch_add(1);
      });
    for (auto& thread : threads) thread.join();
    return donors == 8 || others == 8 ? "agreed" : "disagreed";
  });
  EXPECT_EQ(result.output, "agreed");
  EXPECT_EQ(result.status, 0);
}

}  // namespace
