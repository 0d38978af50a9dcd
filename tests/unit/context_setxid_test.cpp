// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// set*id while kernel threads run under identities that are not their own: no hang, and every kernel
// thread changes. Each test runs in a child that an alarm ends if it hangs.
#include "context/setxid.h"

#include <dirent.h>
#include <grp.h>
#include <sys/types.h>

#include <memory>
#include <set>

#include "context_support.h"
#include "in_child.h"

using namespace bosk;
using context_test::DonorContext;

namespace {

struct Action {
  void* handler;
  unsigned long flags;
#if defined(__x86_64__)
  void* restorer;
#endif
  base::KernelSigset mask;
};

void* handler_of_setxid() {
  Action action = {};
  if (base::raw_syscall(SYS_rt_sigaction, 33, 0, base::address_of(&action), 8) != 0) return nullptr;
  return action.handler;
}

void register_myself() {
  context::register_kernel_thread(base::thread_id(), context::thread_pointer());
}

std::unique_ptr<DonorContext> make(std::function<void(DonorContext&)> body) {
  auto made = std::make_unique<DonorContext>(std::move(body));
  if (made->identity() == nullptr) abort();
  context::register_kernel_thread(made->identity()->tid, made->identity()->thread_pointer);
  return made;
}

/// Some parked donors, and two kernel threads that are at work under lent identities.
class Crowd {
 public:
  Crowd() {
    context::identity_forget_after_fork();
    context::setxid_forget_after_fork();
    register_myself();
    for (int i = 0; i < 6; ++i)
      idle_.push_back(make([i](DonorContext& self) {
        if (i % 2 == 0) self.yield();
      }));
    for (auto& context : idle_) context->resume();
    for (int i = 0; i < 2; ++i)
      busy_.push_back(make([this](DonorContext&) {
        at_work_.fetch_add(1);
        while (!stop_.load()) base::cpu_pause();
      }));
    for (auto& context : busy_)
      threads_.emplace_back([&] {
        register_myself();
        context->resume();
        context::forget_kernel_thread(base::thread_id());
      });
    while (at_work_.load() != 2) sched_yield();
    installed_ = context::install_setxid_wrapper();
  }
  ~Crowd() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }
  bool installed() const { return installed_; }

 private:
  std::vector<std::unique_ptr<DonorContext>> idle_, busy_;
  std::vector<std::thread> threads_;
  std::atomic<int> at_work_{0};
  std::atomic<bool> stop_{false};
  bool installed_ = false;
};

constexpr unsigned kHangs = 60;

bosk::testing::ChildResult in_crowd(std::function<std::string()> body) {
  return bosk::testing::in_child({}, [&]() -> std::string {
    alarm(kHangs);
    Crowd crowd;
    return crowd.installed() ? body() : "no wrapper";
  });
}

TEST(Setxid, from_the_initial_thread) {
  const auto result = in_crowd([]() -> std::string {
    for (int i = 0; i < 2; ++i)
      if (setgid(getgid()) != 0) return strerror(errno);
    return "done";
  });
  EXPECT_EQ(result.output, "done");
  EXPECT_EQ(result.status, 0) << "it hangs";
}

TEST(Setxid, from_a_donor_context) {
  const auto result = in_crowd([]() -> std::string {
    std::string failure = "done";
    auto context = make([&](DonorContext& self) {
      for (int i = 0; i < 2; ++i) {
        if (setgid(getgid()) != 0) failure = strerror(errno);
        self.yield();
      }
    });
    // Twice on this kernel thread, and once more on another that was registered before.
    context->resume();
    std::thread([&] {
      register_myself();
      context->resume();
      context::forget_kernel_thread(base::thread_id());
    }).join();
    return failure;
  });
  EXPECT_EQ(result.output, "done");
  EXPECT_EQ(result.status, 0) << "it hangs";
}

TEST(Setxid, from_a_thread_that_never_met_the_runtime) {
  const auto result = in_crowd([]() -> std::string {
    int failures = 0;
    std::thread([&] { failures = setgid(getgid()) != 0; }).join();
    std::thread([&] { failures += setuid(getuid()) != 0; }).join();
    return failures == 0 ? "done" : "failed";
  });
  EXPECT_EQ(result.output, "done");
  EXPECT_EQ(result.status, 0) << "it hangs";
}

/// The distinct values of a line of status over all kernel threads of the process.
std::set<std::string> all_status(const std::string& key) {
  std::set<std::string> values;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    FILE* file = fopen(("/proc/self/task/" + std::string(entry->d_name) + "/status").c_str(), "r");
    char line[1024];
    while (file != nullptr && fgets(line, sizeof line, file) != nullptr)
      if (strncmp(line, key.c_str(), key.size()) == 0) values.insert(line);
    if (file != nullptr) fclose(file);
  }
  closedir(folder);
  return values;
}

TEST(Setxid, every_kernel_thread_changes) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can change";
  if (context_test::emulated()) GTEST_SKIP() << "/proc shows qemu's threads";
  for (const bool from_context : {false, true}) {
    const auto result = in_crowd([=]() -> std::string {
      bool failed = false;
      const auto change = [&] {
        const gid_t groups[] = {61236, 61237};
        failed = setgroups(2, groups) != 0 || setgid(61234) != 0 || setuid(61235) != 0;
      };
      auto context = make([&](DonorContext&) { change(); });
      if (from_context)
        context->resume();
      else
        change();
      if (failed) return strerror(errno);
      std::string text;
      for (const char* key : {"Uid:", "Gid:", "Groups:"})
        for (const std::string& value : all_status(key)) text += value;
      return text;
    });
    EXPECT_EQ(result.output,
              "Uid:\t61235\t61235\t61235\t61235\n"
              "Gid:\t61234\t61234\t61234\t61234\n"
              "Groups:\t61236 61237 \n")
        << from_context;
    EXPECT_EQ(result.status, 0);
  }
}

TEST(Setxid, the_wrapper_stays_on_top) {
  const auto result = in_crowd([]() -> std::string {
    void* ours = handler_of_setxid();
    if (!context::install_setxid_wrapper() || handler_of_setxid() != ours) return "not idempotent";
    for (int i = 0; i < 3; ++i) {
      std::thread([] {}).join();
      auto context = make([](DonorContext&) {});
      context->resume();
    }
    if (handler_of_setxid() != ours) return "glibc put its own back";
    return setgid(getgid()) == 0 ? "done" : strerror(errno);
  });
  EXPECT_EQ(result.output, "done");
  EXPECT_EQ(result.status, 0);
}

TEST(Setxid, a_forked_child_starts_afresh) {
  if (context_test::emulated()) GTEST_SKIP() << "qemu dies of threads made after such a fork";
  const auto result = in_crowd([]() -> std::string {
    const auto inner = bosk::testing::in_child({}, []() -> std::string {
      alarm(kHangs);
      context::identity_forget_after_fork();
      context::setxid_forget_after_fork();
      register_myself();
      std::string failure = "done";
      auto context = make([&](DonorContext&) {
        if (setgid(getgid()) != 0) failure = strerror(errno);
      });
      if (!context::install_setxid_wrapper()) return "no wrapper";
      context->resume();
      return failure;
    });
    return inner.status == 0 ? inner.output : "the child hangs";
  });
  EXPECT_EQ(result.output, "done");
  EXPECT_EQ(result.status, 0);
}

TEST(Setxid, thread_numbers_out_of_range_are_refused) {
  EXPECT_FALSE(context::register_kernel_thread(0, 1));
  EXPECT_FALSE(context::register_kernel_thread(-1, 1));
  EXPECT_FALSE(context::register_kernel_thread(1 << 22, 1));
  context::forget_kernel_thread(1 << 22);
  context::forget_kernel_thread(4194303);
  EXPECT_TRUE(context::register_kernel_thread(4194303, 1));
  context::forget_kernel_thread(4194303);
}

}  // namespace
