// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads, cores, sockets, last-level caches and NUMA domains from /sys.
#include "omp/places_sysfs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/syscalls.h"

namespace bosk::omp {
namespace {

using base::MappedArray;
using topology::ProcessCpus;

class Reader {
 public:
  Reader(const char* root, const ProcessCpus& allowed, uint32_t most, PlaceList* places)
      : root_(root), allowed_(allowed), most_(most), places_(places) {}
  ~Reader() {
    text_.release();
    done_.release();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  bool list(PlaceKind kind) {
    if (!done_.resize(cpu_number_limit(allowed_))) return false;
    switch (kind) {
      case PlaceKind::kThreads:
      case PlaceKind::kCores:
        return list_cores(kind == PlaceKind::kThreads);
      case PlaceKind::kSockets:
        return list_siblings(&Reader::read_socket);
      case PlaceKind::kLlCaches:
        return list_siblings(&Reader::read_cache);
      case PlaceKind::kNumaDomains:
        return list_nodes();
    }
    return false;
  }

 private:
  using ReadSiblings = bool (Reader::*)(uint32_t cpu);

  bool full() const { return places_->count() >= most_; }

  // The whole file as text_, ended by a NUL. False: it is not there.
  [[gnu::format(printf, 2, 3)]] bool read_file(const char* format, ...) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/", root_);
    va_list args;
    va_start(args, format);
    length += vsnprintf(path + length, sizeof path - static_cast<size_t>(length), format, args);
    va_end(args);
    if (length >= static_cast<int>(sizeof path)) return false;
    const long file =
        base::raw_syscall(SYS_openat, AT_FDCWD, base::address_of(path), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    text_.clear();
    long got;
    do {
      constexpr uint32_t kChunk = 1024;
      const uint32_t at = text_.size();
      got = text_.resize(at + kChunk)
                ? base::raw_syscall(SYS_read, file, base::address_of(text_.data() + at), kChunk)
                : -1;
      text_.resize(at + (got > 0 ? static_cast<uint32_t>(got) : 0));
    } while (got > 0);
    base::raw_syscall(SYS_close, file);
    return got == 0 && text_.push('\0');
  }

  // Calls use(first, last) for every range of the list in text_. False: it is no list.
  template <typename Use>
  bool for_ranges(Use use) {
    base::TextReader reader(text_.data());
    if (reader.at_end()) return true;
    do {
      uint64_t first, last;
      if (!reader.take_unsigned(&first)) return false;
      last = first;
      if (reader.take('-') && !reader.take_unsigned(&last)) return false;
      if (last < first || last >= PlaceList::kMostPlaces) return false;
      use(static_cast<uint32_t>(first), static_cast<uint32_t>(last));
    } while (reader.take(','));
    return reader.at_end();
  }

  bool read_core(uint32_t cpu) { return read_file("cpu/cpu%u/topology/thread_siblings_list", cpu); }
  bool read_socket(uint32_t cpu) { return read_file("cpu/cpu%u/topology/core_siblings_list", cpu); }
  // The cache of the highest level; of two with the same level the later index.
  bool read_cache(uint32_t cpu) {
    uint64_t highest = 0;
    uint32_t best = 0;
    for (uint32_t index = 0; read_file("cpu/cpu%u/cache/index%u/level", cpu, index); index++) {
      uint64_t level;
      if (!base::parse_number(text_.data(), 1, 64, &level)) return false;
      if (level < highest) continue;
      highest = level;
      best = index;
    }
    return highest != 0 && read_file("cpu/cpu%u/cache/index%u/shared_cpu_list", cpu, best);
  }

  // Appends one place: what is allowed, and not in a place yet, of the list in text_ and of
  // `within` (null: anything).
  bool add_listed(const MappedArray<bool>* within) {
    bool started = false, memory_left = true;
    const bool is_list = for_ranges([&](uint32_t first, uint32_t last) {
      for (uint32_t cpu = allowed_.next(first); cpu <= last && memory_left;
           cpu = allowed_.next(cpu + 1)) {
        if (done_[cpu] || (within != nullptr && !(*within)[cpu])) continue;
        done_[cpu] = true;
        memory_left = (started || places_->start_place()) && places_->add_cpu(cpu);
        started = true;
      }
    });
    return is_list && memory_left;
  }

  bool list_siblings(ReadSiblings read) {
    for (uint32_t cpu = allowed_.next(0); cpu != ProcessCpus::kNoCpu && !full();
         cpu = allowed_.next(cpu + 1)) {
      if (done_[cpu]) continue;
      if (!(this->*read)(cpu) || !add_listed(nullptr)) return false;
      // A list that leaves out the CPU itself would be read again for ever.
      if (!done_[cpu]) return false;
    }
    return true;
  }

  // Socket by socket, so that neighbours in the list are neighbours in the machine whatever the
  // order of the CPU numbers.
  bool list_cores(bool single_threads) {
    MappedArray<bool> socket;
    bool good = socket.resize(done_.size());
    for (uint32_t cpu = allowed_.next(0); good && cpu != ProcessCpus::kNoCpu && !full();
         cpu = allowed_.next(cpu + 1)) {
      if (done_[cpu]) continue;
      memset(socket.data(), 0, socket.size());
      const auto note = [&](uint32_t first, uint32_t last) {
        const uint32_t end = last < socket.size() ? last + 1 : socket.size();
        for (uint32_t i = first; i < end; i++) socket[i] = true;
      };
      good = read_socket(cpu) && for_ranges(note);
      good = good && socket[cpu] && list_cores_of(socket, cpu, single_threads);
    }
    socket.release();
    return good;
  }

  bool list_cores_of(const MappedArray<bool>& socket, uint32_t from, bool single_threads) {
    for (uint32_t cpu = from; cpu != ProcessCpus::kNoCpu && !full(); cpu = allowed_.next(cpu + 1)) {
      if (done_[cpu] || !socket[cpu]) continue;
      const uint32_t before = places_->count();
      if (!read_core(cpu) || !add_listed(&socket) || !done_[cpu]) return false;
      if (single_threads && !split_last(before)) return false;
    }
    return true;
  }

  // Turns the place after the first `before` into one place per CPU.
  bool split_last(uint32_t before) {
    MappedArray<uint32_t> cpus;
    bool good = true;
    for (const CpuRange& range : places_->ranges(before)) {
      for (uint32_t i = 0; i < range.count; i++) good = good && cpus.push(range.first + i);
    }
    places_->drop_last_place();
    for (uint32_t i = 0; good && i < cpus.size() && !full(); i++) {
      good = places_->start_place() && places_->add_cpu(cpus[i]);
    }
    cpus.release();
    return good;
  }

  bool list_nodes() {
    // A kernel without NUMA is one domain.
    if (!read_file("node/online")) return add_everything();
    MappedArray<uint32_t> nodes;
    bool memory_left = true;
    bool good = for_ranges([&](uint32_t first, uint32_t last) {
      for (uint32_t node = first; node <= last; node++) {
        memory_left = memory_left && nodes.push(node);
      }
    });
    good = good && memory_left;
    for (uint32_t i = 0; good && i < nodes.size() && !full(); i++) {
      good = read_file("node/node%u/cpulist", nodes[i]) && add_listed(nullptr);
    }
    nodes.release();
    return good;
  }

  bool add_everything() {
    if (!places_->start_place()) return false;
    for (uint32_t cpu = allowed_.next(0); cpu != ProcessCpus::kNoCpu;
         cpu = allowed_.next(cpu + 1)) {
      if (!places_->add_cpu(cpu)) return false;
    }
    return true;
  }

  const char* root_;
  const ProcessCpus& allowed_;
  uint32_t most_;
  PlaceList* places_;
  MappedArray<char> text_;
  MappedArray<bool> done_;  ///< per CPU: it is in a place
};

bool list_from_sysfs(const void* self, PlaceKind kind, const ProcessCpus& allowed, uint32_t most,
                     PlaceList* places) {
  return Reader(static_cast<const char*>(self), allowed, most, places).list(kind);
}

}  // namespace

PlaceSource sysfs_place_source(const char* root) { return {list_from_sysfs, root}; }

}  // namespace bosk::omp
