// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/kernel_balancing.h"

#include <filesystem>
#include <fstream>

namespace bosk::affinity {
namespace {

constexpr int kNormal = 1;
constexpr int kTiers = 2;

std::string first_word(const std::string& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

}  // namespace

KernelBalancing look_at_balancing(const std::string& root) {
  KernelBalancing found;
  const std::string mode = first_word(root + "/proc/sys/kernel/numa_balancing");
  const int bits = mode.size() == 1 ? mode[0] - '0' : 0;
  found.is_on = (bits & kNormal) != 0;
  found.has_tiers =
      (bits & kTiers) != 0 || first_word(root + "/sys/kernel/mm/numa/demotion_enabled") == "true";
  std::error_code error;
  const std::string numad = first_word(root + "/run/numad.pid");
  found.has_numad = !numad.empty() && std::filesystem::exists(root + "/proc/" + numad, error);
  std::ifstream counters(root + "/proc/vmstat");
  std::string name;
  uint64_t value = 0;
  while (counters >> name >> value) {
    if (name == "numa_hint_faults") found.hint_faults = value;
    if (name == "numa_pages_migrated") found.moved_pages = value;
  }
  return found;
}

}  // namespace bosk::affinity
