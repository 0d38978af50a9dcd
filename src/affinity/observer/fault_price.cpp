// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/fault_price.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

#include "affinity/observer/fault_events.h"
#include "affinity/observer/file_descriptor.h"
#include "affinity/observer/pagemap_scan.h"

namespace bosk::affinity {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = 64;
constexpr FaultPrice kUsual = {750, 500, 5000};
/// An event writes 40 bytes into a ring, and cannot be had for less; what is measured may be less by chance.
constexpr double kLeastEvent = 100;

class Pages {
 public:
  Pages()
      : memory_(mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0)) {
    madvise(memory_, kPages * kPage, MADV_NOHUGEPAGE);
  }
  ~Pages() { munmap(memory_, kPages * kPage); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  bool are_there() const { return memory_ != MAP_FAILED; }
  uint64_t begin() const { return reinterpret_cast<uint64_t>(memory_); }
  /// ns a page.
  double write_each() const {
    auto* const at = static_cast<volatile char*>(memory_);
    const auto before = std::chrono::steady_clock::now();
    for (size_t page = 0; page < kPages; ++page) at[page * kPage] = 1;
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - before;
    return took.count() / kPages;
  }

 private:
  void* memory_;
};

bool protect(const Pages& pages, const FileDescriptor& userfaultfd, const FileDescriptor& pagemap) {
  uffdio_register area = {};
  area.range = {pages.begin(), kPages * kPage};
  area.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(userfaultfd.number(), UFFDIO_REGISTER, &area) != 0) return false;
  PageRegion region;
  PagemapScanArgument scan = {};
  scan.size = sizeof scan;
  scan.flags = kScanProtects;
  scan.begin = pages.begin();
  scan.end = pages.begin() + kPages * kPage;
  scan.regions = reinterpret_cast<uint64_t>(&region);
  scan.n_regions = 1;
  scan.category_all = kPageWritten;
  scan.category_returned = kPageWritten;
  return ioctl(pagemap.number(), kPagemapScan, &scan) == 1;
}

/// What interrupts take from a thread that does nothing but look at the clock while another one arms pages of their process.
double measure_interrupt(const Pages& pages, const FileDescriptor& userfaultfd,
                         const FileDescriptor& pagemap) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::nanoseconds kLeastGap{500};
  // Longer ones are somebody else's turn, as where we have one CPU.
  constexpr std::chrono::nanoseconds kMostGap{100'000};
  // Relaxed: both only say when; what the thread has found is read after join().
  std::atomic<bool> has_begun{false};
  std::atomic<bool> is_over{false};
  Clock::duration taken{};
  std::thread victim([&] {
    Clock::time_point last = Clock::now();
    has_begun.store(true, std::memory_order_relaxed);
    while (!is_over.load(std::memory_order_relaxed)) {
      const Clock::time_point now = Clock::now();
      if (now - last > kLeastGap && now - last < kMostGap) taken += now - last;
      last = now;
    }
  });
  while (!has_begun.load(std::memory_order_relaxed)) std::this_thread::yield();
  constexpr int kCalls = 16;
  int calls = 0;
  while (calls < kCalls && protect(pages, userfaultfd, pagemap)) {
    pages.write_each();
    ++calls;
  }
  is_over.store(true, std::memory_order_relaxed);
  victim.join();
  const std::chrono::duration<double, std::nano> all = taken;
  // Less cannot be: the other one had no CPU meanwhile.
  constexpr double kLeast = 200;
  const double each = all.count() / kCalls;
  return calls == kCalls && each > kLeast ? each : kUsual.interrupt_ns;
}

}  // namespace

FaultPrice measure_fault_price(bool with_events) {
  FaultPrice price = kUsual;
  if (!with_events) price.event_ns = 0;
  const FileDescriptor userfaultfd(
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
  const FileDescriptor pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  const Pages pages;
  if (!pages.are_there() || !ask_for_async_protection(userfaultfd.number())) return price;
  pages.write_each();
  const auto best_of_rounds = [&](double* best) {
    constexpr int kRounds = 8;
    *best = 1e9;
    for (int round = 0; round < kRounds; ++round) {
      if (!protect(pages, userfaultfd, pagemap)) return false;
      *best = std::min(*best, pages.write_each());
    }
    return true;
  };
  double alone = 0;
  if (!best_of_rounds(&alone)) return price;
  price.fault_ns = alone;
  price.interrupt_ns = measure_interrupt(pages, userfaultfd, pagemap);
  if (!with_events) return price;
  std::string why;
  const pid_t self = getpid();
  const auto events = FaultEvents::open({&self, 1}, &why);
  double watched = 0;
  if (events && best_of_rounds(&watched)) price.event_ns = std::max(kLeastEvent, watched - alone);
  return price;
}

}  // namespace bosk::affinity
