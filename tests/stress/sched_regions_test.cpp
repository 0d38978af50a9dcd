// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random trees of regions on the real scheduler, results against the sequential model: 1, 3 and 16
// workers on whatever the machine has, strict and relaxed identities, all wait policies, the shortest
// period of preemption, several initial threads.
//
// What the library reads from the environment it reads once, so every configuration is a process of
// its own: this program again, with --child. By hand:
//   BOSK_WORKERS=3 BOSK_PREEMPT_PERIOD=100us sched_regions_test --child MILLISECONDS THREADS [SEED [REGIONS]]
#include <errno.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "omp/explicit_task.h"
#include "omp/locks.h"
#include "omp/single.h"
#include "omp/team.h"
#include "random_regions.h"

namespace {

using namespace stress;
namespace omp = bosk::omp;

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
constexpr bool kTsan = true;
#else
constexpr bool kTsan = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr bool kSlow = true;
#else
constexpr bool kSlow = kTsan;
#endif
// ThreadSanitizer holds asynchronous signals back until the program calls libc: no preemption there.
constexpr const char* kPeriod = kTsan ? "off" : "100us";

bool strict = false;
constexpr uint32_t kMostThreads = 8;
std::atomic<uint64_t> current_seed[kMostThreads];  // of each initial thread, for the watchdog

[[noreturn]] void fail(const Region& r, const char* what, uint64_t got, uint64_t wanted) {
  std::fprintf(stderr, "seed %llu depth %u budget %u: %s: %llu, expected %llu\n",
               static_cast<unsigned long long>(r.seed), r.depth, r.budget, what,
               static_cast<unsigned long long>(got), static_cast<unsigned long long>(wanted));
  std::_Exit(1);
}

// Each thread's own, and compilers may keep its address over a call.
thread_local uint64_t whose = 0;

struct Shared {
  Region region;
  uint32_t size;
  // Written by one member, read by the others after a barrier: all plain, so that TSan checks them.
  std::vector<uint64_t> mark[kMostPhases];
  std::vector<uint64_t*> identity;
  std::vector<uint64_t> sum;  // of each member
  std::atomic<uint32_t> started{0};
  std::vector<uint8_t> seen;  // members that have run
  bosk::omp::LockWord lock{0};
  uint64_t locked_sum = 0;  // under lock
  uint64_t single_value = 0;
  std::atomic<uint64_t> task_sum{0};
  std::atomic<uint32_t> baton[kMostPhases] = {};
  std::atomic<uint32_t> winners[kMostPhases] = {};

  Shared(const Region& r, uint32_t members) : region(r), size(members) {
    for (auto& m : mark) m.resize(members);
    identity.resize(members);
    sum.resize(members);
    seen.resize(members);
  }
};

uint64_t run_region(const Region& r);

void compute(uint64_t draw) {
  // Up to some microseconds, now and then longer than a period of preemption.
  const uint64_t turns = draw % 64 == 0 ? 200'000 : draw % 2'000;
  for (uint64_t i = 0; i < turns; ++i) asm volatile("" ::: "memory");
}

void meet_and_compare(Shared& s, uint32_t index, uint32_t phase) {
  auto& mark = s.mark[phase];
  mark[index] = mix(s.region.seed, phase, index);
  omp::barrier();
  for (uint32_t i = 0; i < s.size; i += s.size > 32 ? 1 + (index + i) % 13 : 1)
    if (mark[i] != mix(s.region.seed, phase, i)) fail(s.region, "mark after barrier", i, index);
}

struct TaskData {
  Shared* shared;
  uint64_t value;
};
void task_body(void* data) {
  auto* task = static_cast<TaskData*>(data);
  compute(task->value);
  task->shared->task_sum.fetch_add(task->value, std::memory_order_relaxed);
}

void run_phase(Shared& s, uint32_t index, uint32_t phase) {
  const Region& r = s.region;
  const uint64_t value = member_value(r, phase, index);
  uint64_t& sum = s.sum[index];
  switch (phase_of(r, phase, s.size)) {
    case Phase::kWork:
      compute(value);
      sum += value;
      break;
    case Phase::kBarrier:
      compute(value);
      meet_and_compare(s, index, phase);
      sum += value;
      break;
    case Phase::kNested:
      if (member_opens(r, phase, index)) sum += run_region(inner_region(r, phase, index, s.size));
      sum += value;
      break;
    case Phase::kSingle: {
      // What the single writes must not be read by a member of the phase before.
      omp::barrier();
      if (omp::single_start(omp::current_member())) {
        s.winners[phase].fetch_add(1, std::memory_order_relaxed);
        s.single_value = mix(r.seed, 400 + phase);
      }
      omp::barrier();
      if (s.single_value != mix(r.seed, 400 + phase)) fail(r, "single", s.single_value, phase);
      if (s.winners[phase].load(std::memory_order_relaxed) != 1)
        fail(r, "winners of a single", s.winners[phase].load(), 1);
      sum += value;
      omp::barrier();
      break;
    }
    case Phase::kLock:
      omp::lock(s.lock);
      s.locked_sum += value;
      if (value % 8 == 0) compute(value);
      omp::unlock(s.lock);
      break;
    case Phase::kHold:
      omp::lock(s.lock);
      s.locked_sum += value;
      if (index == r.seed % s.size)
        s.locked_sum += run_region(inner_region(r, phase, index, s.size));
      omp::unlock(s.lock);
      break;
    case Phase::kTasks:
      for (uint32_t task = 0; task < tasks_of(r, phase, index); ++task) {
        TaskData data{&s, value + task};
        omp::create_task({task_body, &data, nullptr, sizeof data, alignof(TaskData), true, 0,
                          nullptr, 0, nullptr, nullptr});
      }
      omp::barrier();
      break;
    case Phase::kFlags: {
      std::atomic<uint32_t>& baton = s.baton[phase];
      while (baton.load(std::memory_order_acquire) != index) {
      }
      sum += value;
      baton.store(index + 1, std::memory_order_release);
      break;
    }
    case Phase::kIdentity:
      s.identity[index] = &whose;
      omp::barrier();
      for (uint32_t i = 0; strict && i < s.size; ++i) {
        if (i != index && s.identity[i] == &whose) fail(r, "members with one identity", i, index);
        if (*s.identity[i] != mix(r.seed, 500, i))
          fail(r, "another's thread-local value", i, index);
      }
      omp::barrier();
      sum += value;
      break;
    case Phase::kCount:
      break;
  }
}

void member_main(void* argument) {
  Shared& s = *static_cast<Shared*>(argument);
  const omp::ImplicitTask* member = omp::current_member();
  const uint32_t index = member->index;
  if (member->team->size != s.size) fail(s.region, "team size", member->team->size, s.size);
  if (index >= s.size) fail(s.region, "member index", index, s.size);
  if (s.seen[index] != 0) fail(s.region, "member ran twice", index, 0);
  s.seen[index] = 1;
  s.started.fetch_add(1, std::memory_order_relaxed);
  // Member 0 is the opener's thread: its variable is the opener's, too.
  const uint64_t before = whose;
  whose = mix(s.region.seed, 500, index);
  for (uint32_t phase = 0; phase < phase_count(s.region); ++phase) {
    errno = static_cast<int>(index + 1);
    run_phase(s, index, phase);
    if (strict && whose != mix(s.region.seed, 500, index))
      fail(s.region, "own thread-local value", whose, mix(s.region.seed, 500, index));
    if (omp::current_member() != member || omp::current_member()->index != index)
      fail(s.region, "current member", omp::current_member()->index, index);
  }
  // Others may still look at it.
  if (index == 0 && strict) {
    omp::barrier();
    whose = before;
  } else if (strict) {
    omp::barrier();
  }
}

uint64_t run_region(const Region& r) {
  Shared s(r, team_size(r));
  omp::parallel(member_main, &s, s.size, 0);
  if (s.started.load(std::memory_order_relaxed) != s.size)
    fail(r, "members that ran", s.started.load(), s.size);
  uint64_t sum = s.locked_sum + s.task_sum.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < s.size; ++i) {
    if (s.seen[i] != 1) fail(r, "member did not run", i, s.size);
    sum += s.sum[i];
  }
  return sum;
}

// ---- the child process

struct Job {
  uint32_t number;
  uint64_t seed;
  uint64_t most_trees;
  std::chrono::steady_clock::time_point end;
  uint64_t trees = 0;
  uint64_t regions = 0;
};

void* initial_thread(void* argument) {
  auto* job = static_cast<Job*>(argument);
  omp::own_icvs(omp::current_task())->max_active_levels = 255;
  for (uint64_t tree = 0; tree < job->most_trees; ++tree) {
    if (tree != 0 && std::chrono::steady_clock::now() >= job->end) break;
    const uint64_t seed = job->most_trees == 1 ? job->seed : mix(job->seed, job->number, tree);
    current_seed[job->number].store(seed, std::memory_order_relaxed);
    const Region root{seed, 0, static_cast<uint32_t>(4 + mix(seed, 9) % 600)};
    uint64_t regions = 0;
    const uint64_t expected = expected_sum(root, &regions);
    const uint64_t sum = run_region(root);
    if (sum != expected) fail(root, "sum of the tree", sum, expected);
    ++job->trees;
    job->regions += regions;
  }
  return nullptr;
}

void watchdog(int) {
  char text[64 + kMostThreads * 24];
  int length = std::snprintf(text, sizeof text, "hangs; tree seeds:");
  for (auto& seed : current_seed)
    if (seed.load() != 0)
      length += std::snprintf(text + length, sizeof text - length, " %llu",
                              static_cast<unsigned long long>(seed.load()));
  text[length++] = '\n';
  if (write(2, text, length) < 0) _exit(3);
  if (getenv("BOSK_STRESS_STAY") != nullptr) return;  // for a debugger
  _exit(3);
}

int child(int argc, char** argv) {
  const long milliseconds = argc > 2 ? std::atol(argv[2]) : 1000;
  uint32_t threads = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : 1;
  if (threads < 1 || threads > kMostThreads) threads = 1;
  const uint64_t seed = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  const uint64_t most = argc > 5 ? std::strtoull(argv[5], nullptr, 10) : UINT64_MAX;
  const char* period = getenv("BOSK_PREEMPT_PERIOD");
  // ThreadSanitizer holds ticks back until libc is called.
  may_spin = !kTsan && (period == nullptr ||
                        (std::strcmp(period, "off") != 0 && std::strcmp(period, "0") != 0));
  const char* identity = getenv("BOSK_IDENTITY");
  strict = identity == nullptr || std::strcmp(identity, "strict") == 0;
  struct sigaction action{};
  action.sa_handler = watchdog;
  sigaction(SIGALRM, &action, nullptr);
  alarm(static_cast<unsigned>(milliseconds / 1000 + (getenv("BOSK_STRESS_ALARM") != nullptr
                                                         ? std::atoi(getenv("BOSK_STRESS_ALARM"))
                                                     : kSlow ? 120
                                                             : 40)));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  std::vector<Job> jobs;
  for (uint32_t i = 0; i < threads; ++i) jobs.push_back({i, seed, most, end});
  std::vector<pthread_t> handles(threads);
  for (uint32_t i = 1; i < threads; ++i)
    if (pthread_create(&handles[i], nullptr, initial_thread, &jobs[i]) != 0) return 4;
  initial_thread(&jobs[0]);
  for (uint32_t i = 1; i < threads; ++i) pthread_join(handles[i], nullptr);
  uint64_t trees = 0, regions = 0;
  for (const Job& job : jobs) trees += job.trees, regions += job.regions;
  std::printf("seed %llu: %llu trees, %llu regions\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(trees), static_cast<unsigned long long>(regions));
  return trees == 0 ? 5 : 0;
}

// ---- the configurations

struct Configuration {
  const char* workers;
  const char* identity;
  const char* wait_policy;  // empty: none
  const char* threads;
  const char* machine = "";   // empty: the one that there is. Else teams are placed
  const char* relation = "";  // of nested teams; empty: none
};

class Regions : public testing::TestWithParam<Configuration> {};

TEST_P(Regions, AgreeWithTheSequentialModel) {
  const Configuration& c = GetParam();
  const char* fixed = getenv("BOSK_STRESS_SEED");
  const std::string seed =
      fixed != nullptr
          ? fixed
          : std::to_string(std::chrono::system_clock::now().time_since_epoch().count() %
                           1'000'000'007);
  std::printf("BOSK_STRESS_SEED=%s\n", seed.c_str());
  std::fflush(stdout);
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    setenv("BOSK_WORKERS", c.workers, 1);
    setenv("BOSK_IDENTITY", c.identity, 1);
    const bool placed = c.machine[0] != '\0';
    // Without ticks nobody leaves ghosts to those who are nearer.
    setenv("BOSK_PREEMPT_PERIOD", kTsan && placed ? "1s" : kPeriod, 1);
    if (placed) setenv("BOSK_SYNTHETIC", c.machine, 1);
    if (c.relation[0] != '\0') setenv("BOSK_RELATION", c.relation, 1);
    setenv("OMP_STACKSIZE", kSlow ? "1M" : "256K", 1);
    if (c.wait_policy[0] != '\0') setenv("OMP_WAIT_POLICY", c.wait_policy, 1);
    execl("/proc/self/exe", "sched_regions_test", "--child", kSlow ? "2000" : "800", c.threads,
          seed.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << ", seed " << seed;
  EXPECT_EQ(WEXITSTATUS(status), 0) << "seed " << seed;
}

std::string name_of(const testing::TestParamInfo<Configuration>& info) {
  const Configuration& c = info.param;
  return std::string("Workers") + c.workers + "_" + c.identity + "_" +
         (c.wait_policy[0] != '\0' ? c.wait_policy : "unset") + "_" + c.threads +
         (c.machine[0] != '\0' ? "_placed" : "") + (c.relation[0] != '\0' ? "_gangs" : "");
}

// The active policy is left out where workers outnumber CPUs by far: it means to spin then.
INSTANTIATE_TEST_SUITE_P(
    All, Regions,
    testing::Values(
        Configuration{"1", "strict", "", "1"}, Configuration{"1", "relaxed", "", "1"},
        Configuration{"1", "relaxed", "passive", "3"}, Configuration{"2", "strict", "active", "1"},
        Configuration{"3", "strict", "", "1"}, Configuration{"3", "relaxed", "", "1"},
        Configuration{"3", "strict", "passive", "2"}, Configuration{"3", "relaxed", "active", "1"},
        Configuration{"16", "strict", "", "1"}, Configuration{"16", "relaxed", "passive", "1"},
        Configuration{"16", "strict", "passive", "2"},
        Configuration{"8", "strict", "passive", "1", "node:4 core:2 pu:1"},
        Configuration{"4", "relaxed", "", "1", "node:2 core:2 pu:1"},
        Configuration{"4", "relaxed", "", "2", "", "2:gang;3:gang;4:gang"},
        Configuration{"8", "strict", "passive", "1", "node:2 core:4 pu:1", "2:gang;3:gang"}),
    name_of);

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--child") == 0) return child(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
