// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/acting/page_system.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "affinity/observer/file_descriptor.h"

namespace bosk::affinity {
namespace {

constexpr int kMove = 2;     // MPOL_MF_MOVE
constexpr int kMoveAll = 4;  // MPOL_MF_MOVE_ALL
constexpr size_t kPage = 4096;
constexpr double kSecond = 1e9;
/// Reading policies takes no more than one part in this of the time.
constexpr double kReadShare = 200;

double now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

}  // namespace

MappedPolicies::MappedPolicies(std::span<const char> text) {
  std::string_view left(text.data(), text.size());
  while (!left.empty()) {
    const size_t end = left.find('\n');
    const std::string_view line = left.substr(0, end);
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    Mapping mapping = {};
    const auto [rest, error] =
        std::from_chars(line.data(), line.data() + line.size(), mapping.begin, 16);
    if (error != std::errc() || rest == line.data() + line.size() || *rest != ' ') continue;
    const std::string_view policy = line.substr(static_cast<size_t>(rest + 1 - line.data()));
    // "local" is what the usual one does, said explicitly.
    mapping.is_placed = !policy.starts_with("default") && !policy.starts_with("local");
    mappings_.push_back(mapping);
  }
}

bool MappedPolicies::is_placed(uint64_t address) const {
  const auto after = std::ranges::upper_bound(mappings_, address, std::less<>(), &Mapping::begin);
  return after != mappings_.begin() && (after - 1)->is_placed;
}

long Kernel::move(pid_t process, std::span<const uint64_t> pages, std::span<const int> nodes,
                  std::span<int> status) {
  const auto call = [&](int flags) -> long {
    const long done = syscall(SYS_move_pages, process, pages.size(), pages.data(),
                              nodes.empty() ? nullptr : nodes.data(), status.data(), flags);
    return done < 0 ? -errno : done;
  };
  if (nodes.empty()) return call(0);
  if (may_move_shared_) {
    const long done = call(kMoveAll);
    if (done != -EPERM) return done;
    // What several processes have mapped moves for who has CAP_SYS_NICE only.
    may_move_shared_ = false;
  }
  return call(kMove);
}

bool Kernel::is_placed(pid_t process, uint64_t address, double now) {
  auto at = read_.find(process);
  if (at == read_.end() || now > at->second.until) {
    const double before = now_ns();
    std::ifstream file("/proc/" + std::to_string(process) + "/numa_maps", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const double took = now_ns() - before;
    at = read_
             .insert_or_assign(
                 process, Read{MappedPolicies(text), now + std::max(kSecond, kReadShare * took)})
             .first;
  }
  return at->second.policies.is_placed(address);
}

pid_t Kernel::parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // "number (name) state parent …", and a name may have anything in it.
  const size_t name = text.rfind(')');
  if (name == std::string::npos || name + 4 >= text.size()) return 0;
  return std::atoi(text.c_str() + name + 4);
}

bool Kernel::split(pid_t process, uint64_t address) {
  // Advice for a part of a huge page splits it.
  iovec range = {reinterpret_cast<void*>(address - address % kPage), kPage};
  const FileDescriptor handle(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  return handle && syscall(SYS_process_madvise, handle.number(), &range, 1, MADV_COLD, 0) ==
                       static_cast<long>(kPage);
}

}  // namespace bosk::affinity
