// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/fault_counts.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace bosk::affinity {
namespace {

// proc(5): after the name, which may have anything in it, the fields from the third on.
constexpr int kMinorFaults = 10 - 3;
constexpr int kCpu = 39 - 3;

bool read_stat(int file, ThreadStat* stat) {
  char text[1024];
  const ssize_t got = pread(file, text, sizeof text, 0);
  return got > 0 && parse_thread_stat({text, static_cast<size_t>(got)}, stat);
}

}  // namespace

bool parse_thread_stat(std::string_view line, ThreadStat* stat) {
  const size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > line.size()) return false;
  line.remove_prefix(name_end + 2);
  for (int field = 0; field <= kCpu; ++field) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    const bool is_number = error == std::errc();
    if (field == kMinorFaults) {
      if (!is_number) return false;
      stat->minor_faults = value;
    }
    if (field == kCpu) {
      stat->cpu = static_cast<uint16_t>(value);
      return is_number;
    }
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return false;
    line.remove_prefix(blank + 1);
  }
  return false;
}

void FaultCounts::find_threads(const std::function<void(uint32_t thread)>& ended) {
  const std::string folder = "/proc/" + std::to_string(process_) + "/task/";
  std::unordered_set<uint32_t> found;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    uint32_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec != std::errc()) continue;
    found.insert(thread);
    if (threads_.contains(thread)) continue;
    Known known;
    known.stat = FileDescriptor(::open((folder + name + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
    ThreadStat stat = {};
    if (!known.stat || !read_stat(known.stat.number(), &stat)) continue;
    known.faults = stat.minor_faults;
    threads_.emplace(thread, std::move(known));
  }
  std::erase_if(threads_, [&](const auto& each) {
    if (found.contains(each.first)) return false;
    ended(each.first);
    return true;
  });
}

void FaultCounts::read(std::vector<Faulted>* faulted) {
  for (auto& [thread, known] : threads_) {
    ThreadStat stat = {};
    if (!read_stat(known.stat.number(), &stat) || stat.minor_faults <= known.faults) continue;
    faulted->push_back({thread, stat.cpu, stat.minor_faults - known.faults});
    known.faults = stat.minor_faults;
  }
}

}  // namespace bosk::affinity
