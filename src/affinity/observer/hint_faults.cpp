// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/hint_faults.h"

#include "affinity/observer/account.h"

namespace bosk::affinity {
namespace {

constexpr uint64_t kHugeBytes = uint64_t{2} << 20;
/// If there are more all are forgotten: each has to have one fault more before it counts.
constexpr size_t kMostFaulted = 65536;
constexpr double kAskAgain = 1000 * kMillisecond;

}  // namespace

bool HintFaults::is_one(ObservedProcess* process, uint64_t address, uint64_t key) {
  if (pages_->has_seen(key)) return true;
  if (faulted_.size() >= kMostFaulted) faulted_.clear();
  const auto [at, is_first] = faulted_.try_emplace(key / kHugeBytes);
  if (is_first || process == nullptr) return false;
  const double now = now_ns(CLOCK_MONOTONIC);
  if (now - at->second.asked >= kAskAgain) at->second = {now, process->is_in_huge_page(address)};
  return at->second.is_huge;
}

}  // namespace bosk::affinity
