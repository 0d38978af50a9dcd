// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members go where an observer wishes them, in short regions, in a long one, while pools end and while the process forks; and what an observer says that has
// lost its senses does no harm.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../unit/in_child.h"
#include "affinity/acting/wish_file.h"
#include "affinity/observer/hellos.h"
#include "observed/hand_over.h"
#include "omp/icv.h"
#include "omp/region.h"
#include "sched/homes.h"
#include "sched/scheduler.h"

namespace bosk {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLimit{15};
constexpr std::chrono::milliseconds kStays{30};
constexpr int kOften = 5;

/// Wishes that the two members change places, again and again.
class PlayedObserver {
 public:
  PlayedObserver() {
    setenv(BOSK_OBSERVER_VARIABLE, hellos_.name().c_str(), 1);
    thread_ = std::thread([this] {
      while (!is_over_.load()) look();
    });
  }
  ~PlayedObserver() {
    is_over_ = true;
    thread_.join();
  }
  int obeyed() const { return obeyed_.load(); }
  int asked() const { return asked_.load(); }

 private:
  void look() {
    pollfd hello = {hellos_.descriptor(), POLLIN, 0};
    poll(&hello, 1, 2);
    while (auto said = hellos_.next()) {
      // Children are refused.
      if (said->kind != BOSK_OBSERVED_WISHES || said->process != getpid()) continue;
      ++asked_;
      wished_.clear();
      file_ = affinity::WishFile::make();
      if (!file_->send(said->waits)) file_.reset();
    }
    if (!file_) return;
    file_->read();
    if (file_->team() == 2) {
      const std::vector<uint32_t> are_on = {file_->cpu_of(0), file_->cpu_of(1)};
      const bool is_done = are_on == wished_;
      if (is_done && !was_done_) {
        ++obeyed_;
        done_at_ = Clock::now();
      }
      was_done_ = is_done;
      // Long enough for them to go there.
      if (wished_.empty() || (is_done && Clock::now() - done_at_ > kStays)) {
        wished_ = {are_on[1], are_on[0]};
        was_done_ = false;
      }
      file_->wish(wished_);
    }
    file_->ring();
  }

  affinity::Hellos hellos_;
  std::unique_ptr<affinity::WishFile> file_;
  std::vector<uint32_t> wished_;
  bool was_done_ = false;
  Clock::time_point done_at_;
  std::atomic<int> obeyed_{0};
  std::atomic<int> asked_{0};
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

std::string with_observer(std::string (*body)(const PlayedObserver&)) {
  cpu_set_t given;
  sched_getaffinity(0, sizeof given, &given);
  if (CPU_COUNT(&given) < 2) return "one CPU";
  const PlayedObserver observer;
  return body(observer);
}

void run(std::string (*body)(const PlayedObserver&), const char* identity) {
  const auto result = bosk::testing::in_child(
      {{"BOSK_WORKER_HOMES", "on"}, {"BOSK_IDENTITY", identity}, {"BOSK_WORKERS", "2"}},
      [body] { return with_observer(body); });
  if (result.output == "one CPU") GTEST_SKIP() << "one CPU has no seats to give";
  EXPECT_EQ(result.output, "fine") << result.errors;
  EXPECT_EQ(result.errors, "");
}

void count(void* data) {
  static_cast<std::atomic<long>*>(data)->fetch_add(1, std::memory_order_relaxed);
}

/// Regions of two until they have changed places so often, or it has taken long.
bool open_regions(const PlayedObserver& observer, int obeyed) {
  std::atomic<long> members{0};
  const auto end = Clock::now() + kLimit;
  long regions = 0;
  while (observer.obeyed() < obeyed && Clock::now() < end) {
    omp::parallel(count, &members, 2, 0);
    ++regions;
  }
  return members.load() == 2 * regions && observer.obeyed() >= obeyed;
}

std::string short_regions(const PlayedObserver& observer) {
  return open_regions(observer, kOften) ? "fine" : "not as wished";
}

struct LongRegion {
  const PlayedObserver* observer;
  std::atomic<int> moved{0};
};

void compute(void* data) {
  auto& region = *static_cast<LongRegion*>(data);
  const auto end = Clock::now() + kLimit;
  uint32_t last = base::current_cpu();
  while (
      (region.observer->obeyed() < kOften || region.moved.load(std::memory_order_relaxed) == 0) &&
      Clock::now() < end)
    if (const uint32_t now = base::current_cpu(); now != last) {
      last = now;
      region.moved.fetch_add(1, std::memory_order_relaxed);
    }
}

[[maybe_unused]] std::string a_long_region(const PlayedObserver& observer) {
  LongRegion region{&observer};
  omp::parallel(compute, &region, 2, 0);
  if (observer.obeyed() < kOften) return "not as wished";
  return region.moved.load() > 0 ? "fine" : "they have seats, and are not there";
}

std::string pools_that_end(const PlayedObserver& observer) {
  for (int round = 1; round <= 20; ++round) {
    std::string answer = "fine";
    std::thread opener(
        [&] { answer = open_regions(observer, observer.obeyed() + 1) ? "fine" : "not as wished"; });
    opener.join();
    if (answer != "fine") return answer + " in round " + std::to_string(round);
  }
  return "fine";
}

[[maybe_unused]] std::string forks(const PlayedObserver& observer) {
  for (int round = 1; round <= 10; ++round) {
    if (!open_regions(observer, observer.obeyed() + 1))
      return "not as wished in round " + std::to_string(round);
    const pid_t child = fork();
    if (child == 0) {
      std::atomic<long> members{0};
      for (int i = 0; i < 100; ++i) omp::parallel(count, &members, 2, 0);
      _exit(members.load() == 200 ? 0 : 1);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) return "the child has failed";
  }
  // The parent's, and some of those of the children that were there long enough.
  return observer.asked() >= 1 ? "fine" : "nobody has asked";
}

TEST(Wishes, AreDoneBetweenRegions) { run(short_regions, "auto"); }
TEST(Wishes, AreDoneByKernelThreads) { run(short_regions, "kthread"); }
TEST(Wishes, LetPoolsEnd) { run(pools_that_end, "auto"); }
// ThreadSanitizer has no ticks, and no threads in forked children.
#ifndef BOSK_TSAN
TEST(Wishes, AreDoneInALongRegion) { run(a_long_region, "auto"); }
TEST(Wishes, LetProcessesFork) { run(forks, "auto"); }
#endif

/// Who tells wins.
std::string told(const PlayedObserver& observer) {
  std::atomic<long> members{0};
  omp::parallel(count, &members, 2, 0);
  sched::Pool* pool = omp::current_thread()->pool;
  const uint32_t parts[] = {1, 0};
  const auto end = Clock::now() + kLimit;
  // Until then they may have changed places already.
  sched::Exchange done = sched::Exchange::kLater;
  while (done == sched::Exchange::kLater && Clock::now() < end)
    done = sched::exchange_seats(pool, 2, parts);
  if (done == sched::Exchange::kLater) return "told for nothing";
  const sched::Seats* seats = pool->seats.load();
  while (observer.asked() == 0 && Clock::now() < end) omp::parallel(count, &members, 2, 0);
  for (const auto later = Clock::now() + std::chrono::milliseconds(300); Clock::now() < later;)
    omp::parallel(count, &members, 2, 0);
  return pool->seats.load() == seats ? "fine" : "somebody knew better";
}

TEST(Wishes, AreNothingToWhatIsTold) { run(told, "auto"); }

/// Who answers with a file of any numbers.
std::string anything(const PlayedObserver&) {
  affinity::Hellos hellos;
  setenv(BOSK_OBSERVER_VARIABLE, hellos.name().c_str(), 1);
  std::atomic<bool> is_over{false};
  std::thread observer([&] {
    int file = -1;
    bosk_wishes* words = nullptr;
    unsigned seed = 1;
    while (!is_over.load()) {
      while (auto said = hellos.next()) {
        if (said->kind != BOSK_OBSERVED_WISHES) continue;
        const auto made = affinity::WishFile::make();
        if (!made->send(said->waits)) continue;
        file = open(("/proc/self/fd/" + std::to_string(made->descriptor())).c_str(), O_RDWR);
        words = static_cast<bosk_wishes*>(
            mmap(nullptr, sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
      }
      if (words == nullptr) continue;
      const auto lot = [&](uint32_t most) {
        const auto drawn = static_cast<uint32_t>(rand_r(&seed));
        return drawn % 4 == 0 ? UINT32_MAX - drawn % 3 : drawn % most;
      };
      for (uint32_t& wish : words->wish)
        std::atomic_ref(wish).store(lot(4), std::memory_order_relaxed);
      std::atomic_ref(words->wished).store(lot(4), std::memory_order_relaxed);
      std::atomic_ref(words->team).store(lot(8), std::memory_order_relaxed);
      std::atomic_ref(words->seats).store(lot(8), std::memory_order_relaxed);
      std::atomic_ref(words->news).fetch_add(1, std::memory_order_release);
      syscall(SYS_futex, &words->news, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
    }
    if (words != nullptr) munmap(words, sizeof *words);
    close(file);
  });
  std::atomic<long> members{0};
  long regions = 0;
  for (const auto end = Clock::now() + std::chrono::seconds(1); Clock::now() < end; ++regions)
    omp::parallel(count, &members, 2, 0);
  is_over = true;
  observer.join();
  return members.load() == 2 * regions ? "fine" : "members are missing";
}

TEST(Wishes, MayBeAnything) { run(anything, "auto"); }

}  // namespace
}  // namespace bosk
