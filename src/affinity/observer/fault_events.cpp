// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/fault_events.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "affinity/acting/thread_mover.h"

namespace bosk::affinity {
namespace {

constexpr size_t kPage = 4096;
/// 40 bytes a fault. On machines with many CPUs smaller, for memory that every user may lock (perf_event_mlock_kb) is so much a CPU.
constexpr size_t kRingPages = 64;
constexpr size_t kSmallRingPages = 16;
constexpr size_t kManyCpus = 64;
/// Of one process, each an open file.
constexpr size_t kMostEvents = 16384;

perf_event_attr page_faults() {
  perf_event_attr attr = {};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = sizeof attr;
  attr.config = PERF_COUNT_SW_PAGE_FAULTS;
  attr.sample_period = 1;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU;
  attr.inherit = 1;
  attr.task = 1;
  attr.exclude_kernel = 1;  // faults inside of system calls: allowed to root only
  attr.exclude_hv = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  return attr;
}

/// What follows the header of a PERF_RECORD_SAMPLE of ours.
struct Sample {
  uint32_t process;
  uint32_t thread;
  uint64_t time;
  uint64_t address;
  uint32_t cpu;
  uint32_t reserved;
};
/// Of PERF_RECORD_FORK and PERF_RECORD_EXIT.
struct Task {
  uint32_t process;
  uint32_t parent_process;
  uint32_t thread;
  uint32_t parent;
  uint64_t time;
};
struct Lost {
  uint64_t id;
  uint64_t lost;
};

std::string why_not(int error) {
  int paranoid = 0;
  std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> paranoid;
  if ((error == EACCES || error == EPERM) && paranoid > 2)
    return "kernel.perf_event_paranoid is " + std::to_string(paranoid) +
           " (sysctl kernel.perf_event_paranoid=2, as root, allows page-fault events to everybody)";
  if (error == ENOENT || error == ENOSYS || error == EACCES || error == EPERM)
    return "page-fault events of perf are not allowed here (" + std::string(std::strerror(error)) +
           "; a container's filter?)";
  return std::string("page-fault events of perf: ") + std::strerror(error);
}

}  // namespace

struct FaultEvents::Ring {
  Ring(FileDescriptor opened, int of_cpu, size_t pages)
      : event(std::move(opened)), cpu(of_cpu), bytes(pages * kPage) {
    void* mapped =
        mmap(nullptr, kPage + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event.number(), 0);
    if (mapped != MAP_FAILED) head = static_cast<perf_event_mmap_page*>(mapped);
  }
  ~Ring() {
    if (head != nullptr) munmap(head, kPage + bytes);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// The record's bytes may go around the ring's end.
  void copy(uint64_t at, void* to, size_t size) const {
    const auto* data = reinterpret_cast<const char*>(head) + kPage;
    const size_t begin = at % bytes;
    const size_t first = std::min(size, bytes - begin);
    std::memcpy(to, data + begin, first);
    std::memcpy(static_cast<char*>(to) + first, data, size - first);
  }

  /// `record(header, where its body is)` for each that was not read. Returns where they end.
  template <typename Record>
  uint64_t read(const Record& record) const {
    // acquire: the kernel has written the records before it moved its end.
    const uint64_t end = std::atomic_ref(head->data_head).load(std::memory_order_acquire);
    uint64_t at = head->data_tail;
    while (at < end) {
      perf_event_header header;
      copy(at, &header, sizeof header);
      if (header.size < sizeof header) break;
      record(header, at + sizeof header);
      at += header.size;
    }
    return end;
  }

  FileDescriptor event;
  std::vector<FileDescriptor> writers;
  int cpu;
  size_t bytes;
  perf_event_mmap_page* head = nullptr;
};

FaultEvents::~FaultEvents() = default;

/// The rings are those of events of our own, which never happen: the others write into them. A ring of an event whose thread has ended would be readable for ever.
bool FaultEvents::make_rings() {
  poll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  const size_t pages = static_cast<size_t>(cpus) > kManyCpus ? kSmallRingPages : kRingPages;
  perf_event_attr attr = page_faults();
  attr.disabled = 1;
  attr.inherit = 0;
  attr.wakeup_watermark = static_cast<uint32_t>(pages * kPage / 2);
  for (int cpu = 0; cpu < cpus; ++cpu) {
    FileDescriptor event(
        static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event && errno == ENODEV) continue;  // that CPU is not there, or is off
    if (!event) return false;
    auto ring = std::make_unique<Ring>(std::move(event), cpu, pages);
    if (ring->head == nullptr) return false;
    epoll_event wanted = {};
    wanted.events = EPOLLIN;
    epoll_ctl(poll_.number(), EPOLL_CTL_ADD, ring->event.number(), &wanted);
    rings_.push_back(std::move(ring));
  }
  errno = ENODEV;
  return !rings_.empty();
}

std::unique_ptr<FaultEvents> FaultEvents::open(std::span<const pid_t> processes, std::string* why) {
  std::unique_ptr<FaultEvents> events(new FaultEvents);
  if (!events->make_rings()) {
    *why = why_not(errno);
    return nullptr;
  }
  bool has_any = false;
  for (const pid_t process : processes) {
    if (events->add(process, why))
      has_any = true;
    else if (kill(process, 0) == 0 || errno != ESRCH)
      return nullptr;
  }
  if (!has_any) return nullptr;
  why->clear();
  return events;
}

/// 0, or an errno.
int FaultEvents::add_thread(pid_t thread) {
  perf_event_attr attr = page_faults();
  for (const auto& ring : rings_) {
    FileDescriptor event(static_cast<int>(
        syscall(SYS_perf_event_open, &attr, thread, ring->cpu, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event || ioctl(event.number(), PERF_EVENT_IOC_SET_OUTPUT, ring->event.number()) != 0)
      return errno;
    ring->writers.push_back(std::move(event));
  }
  return 0;
}

/// Threads that were made by those that have events already, which they have inherited.
std::set<uint32_t> FaultEvents::made_and_not_read() const {
  std::set<uint32_t> made;
  for (const auto& ring : rings_)
    ring->read([&](const perf_event_header& header, uint64_t body) {
      if (header.type != PERF_RECORD_FORK) return;
      Task task;
      ring->copy(body, &task, sizeof task);
      made.insert(task.thread);
    });
  return made;
}

/// False: not all of its threads, or it has ended.
bool FaultEvents::add(pid_t process, std::string* why) {
  constexpr int kRounds = 8;
  std::set<uint32_t> known;
  size_t added = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<uint32_t> fresh = KernelThreads().threads_of(process);
    std::erase_if(fresh, [&](uint32_t thread) { return known.contains(thread); });
    if (fresh.empty()) break;
    if (fresh.size() * rings_.size() > kMostEvents) {
      *why = "it has " + std::to_string(fresh.size()) + " threads, more than can be followed on " +
             std::to_string(rings_.size()) + " CPUs";
      return false;
    }
    const std::set<uint32_t> inherited = round == 0 ? std::set<uint32_t>() : made_and_not_read();
    for (const uint32_t thread : fresh) {
      known.insert(thread);
      const int error = inherited.contains(thread) ? 0 : add_thread(static_cast<pid_t>(thread));
      if (error == 0) ++added;
      if (error == 0 || error == ESRCH) continue;
      *why = why_not(error);
      return false;
    }
  }
  if (added == 0) *why = why_not(ESRCH);
  return added != 0;
}

void FaultEvents::set_on(bool on) {
  for (const auto& ring : rings_)
    for (const FileDescriptor& writer : ring->writers)
      ioctl(writer.number(), on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void FaultEvents::drain(const Visitor& visitor) {
  const size_t before = ended_.size();
  for (const auto& ring : rings_) drain(ring.get(), visitor);
  for (size_t i = 0; i < before; ++i)
    if (!ended_[i].is_told) visitor.thread_ended(ended_[i].thread);
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(before));
}

void FaultEvents::drain(Ring* ring, const Visitor& visitor) {
  const uint64_t end = ring->read([&](const perf_event_header& header, uint64_t body) {
    if (header.type == PERF_RECORD_SAMPLE && header.size == sizeof header + sizeof(Sample)) {
      Sample sample;
      ring->copy(body, &sample, sizeof sample);
      ++faults_;
      visitor.fault({sample.time, sample.address, sample.process, sample.thread, sample.cpu});
    } else if (header.type == PERF_RECORD_EXIT) {
      Task ended;
      ring->copy(body, &ended, sizeof ended);
      ended_.push_back({ended.thread, ended.time, false});
    } else if (header.type == PERF_RECORD_FORK) {
      Task made;
      ring->copy(body, &made, sizeof made);
      // The same number, and later: another thread.
      for (Ended& ended : ended_) {
        if (ended.thread != made.thread || ended.is_told || ended.time_ns > made.time) continue;
        ended.is_told = true;
        visitor.thread_ended(ended.thread);
      }
      visitor.thread_made(made.process, made.thread, made.parent);
    } else if (header.type == PERF_RECORD_LOST) {
      Lost gone;
      ring->copy(body, &gone, sizeof gone);
      lost_ += gone.lost;
    }
  });
  // release: we have read them before the kernel writes over them.
  std::atomic_ref(ring->head->data_tail).store(end, std::memory_order_release);
}

}  // namespace bosk::affinity
