// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Page-fault events of this process: rings of CPUs that are read one after the other, while threads go from one CPU to the next.
#include "affinity/observer/fault_events.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace bosk::affinity {
namespace {

constexpr size_t kPage = 4096;

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

void go_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

/// Pages that nobody has touched.
class Fresh {
 public:
  Fresh() : at_(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Fresh() { munmap(at_, kPage); }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;
  void touch() { *static_cast<volatile char*>(at_) = 1; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(at_); }

 private:
  void* at_;
};

/// A thread faults on the first CPU and ends on the last one, between the readings of the two.
TEST(FaultEvents, AThreadHasEndedOnlyWhenAllItsFaultsAreTold) {
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two CPUs";
  std::string why;
  const pid_t self = getpid();
  const std::unique_ptr<FaultEvents> events = FaultEvents::open({&self, 1}, &why);
  if (!events) GTEST_SKIP() << why;

  Fresh marker;
  Fresh late;
  uint32_t number = 0;
  std::vector<std::string> told;
  const FaultEvents::Visitor visitor = {
      [&](const FaultEvents::Fault& fault) {
        if (fault.address / kPage == late.address() / kPage) {
          EXPECT_EQ(fault.thread, number);
          told.emplace_back("fault");
        }
        if (fault.address / kPage != marker.address() / kPage || number != 0) return;
        std::thread([&] {
          go_to(cpus.front());
          late.touch();
          go_to(cpus.back());
          number = static_cast<uint32_t>(gettid());
        }).join();
      },
      [](uint32_t, uint32_t, uint32_t) {},
      [&](uint32_t thread) {
        if (thread == number) told.emplace_back("ended");
      }};
  std::thread([&] {
    go_to(cpus.front());
    marker.touch();
  }).join();
  for (int i = 0; i < 3; ++i) events->drain(visitor);
  ASSERT_NE(number, 0U) << "the marker's fault was not seen";
  EXPECT_EQ(told, (std::vector<std::string>{"fault", "ended"}));
}

/// Threads that were there when somebody began to look, and those that they make: each fault is told once, of the thread that had it.
TEST(FaultEvents, ThreadsThatWereThereAreSeenAndThoseThatTheyMake) {
  constexpr size_t kThreads = 4;
  std::vector<Fresh> own(kThreads);
  std::vector<Fresh> of_child(kThreads);
  std::vector<uint32_t> numbers(2 * kThreads);
  std::barrier<> looked(kThreads + 1);
  std::barrier<> made(kThreads + 1);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      made.arrive_and_wait();
      looked.arrive_and_wait();
      numbers[i] = static_cast<uint32_t>(gettid());
      own[i].touch();
      std::thread([&] {
        numbers[kThreads + i] = static_cast<uint32_t>(gettid());
        of_child[i].touch();
      }).join();
    });
  made.arrive_and_wait();
  std::string why;
  const pid_t self = getpid();
  const std::unique_ptr<FaultEvents> events = FaultEvents::open({&self, 1}, &why);
  looked.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  if (!events) GTEST_SKIP() << why;

  std::map<uint64_t, std::vector<uint32_t>> seen;
  const FaultEvents::Visitor visitor = {
      [&](const FaultEvents::Fault& fault) { seen[fault.address / kPage].push_back(fault.thread); },
      [](uint32_t, uint32_t, uint32_t) {}, [](uint32_t) {}};
  for (int i = 0; i < 2; ++i) events->drain(visitor);
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(seen[own[i].address() / kPage], std::vector{numbers[i]});
    EXPECT_EQ(seen[of_child[i].address() / kPage], std::vector{numbers[kThreads + i]});
  }
}

/// Off for all threads, and for those that are made meanwhile; and on again.
TEST(FaultEvents, WhileOffNothingIsSeenAndThenAllIs) {
  std::string why;
  const pid_t self = getpid();
  const std::unique_ptr<FaultEvents> events = FaultEvents::open({&self, 1}, &why);
  if (!events) GTEST_SKIP() << why;
  Fresh before, off, off_by_another, on, on_by_another;
  std::map<uint64_t, int> seen;
  const FaultEvents::Visitor visitor = {
      [&](const FaultEvents::Fault& fault) { ++seen[fault.address / kPage]; },
      [](uint32_t, uint32_t, uint32_t) {}, [](uint32_t) {}};
  std::barrier<> phase(2);
  std::thread another([&] {
    phase.arrive_and_wait();
    off_by_another.touch();
    phase.arrive_and_wait();
    phase.arrive_and_wait();
    on_by_another.touch();
  });
  before.touch();
  events->set_on(false);
  off.touch();
  phase.arrive_and_wait();
  phase.arrive_and_wait();
  events->set_on(true);
  phase.arrive_and_wait();
  on.touch();
  another.join();
  events->drain(visitor);
  EXPECT_EQ(seen[before.address() / kPage], 1);
  EXPECT_EQ(seen[off.address() / kPage], 0);
  EXPECT_EQ(seen[off_by_another.address() / kPage], 0);
  EXPECT_EQ(seen[on.address() / kPage], 1);
  EXPECT_EQ(seen[on_by_another.address() / kPage], 1);
}

}  // namespace
}  // namespace bosk::affinity
