// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counts intervals with much that is remote, and asks less often where asking has not helped.
#include "policies/memory/remote_watch.h"

#include <string.h>

#include <algorithm>
#include <atomic>

namespace bosk::policies {
namespace {

/// What has fallen to three quarters has been helped; what has grown by a quarter is a new question.
constexpr double kHelped = 0.75;
constexpr double kGrown = 1.25;

// Relaxed: figures. One thread writes them, after a fork perhaps another one.
constinit std::atomic<const char*> remote_source{nullptr};
constinit std::atomic<uint64_t> intervals{0};
constinit std::atomic<uint64_t> raised_in_all{0};
constinit std::atomic<double> share_seen{0};

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

/// The first that is not in front of it.
RemoteWatch::Known* RemoteWatch::place_of(uint64_t name) {
  return std::lower_bound(known_.data(), known_.data() + known_.size(), name,
                          [](const Known& known, uint64_t n) { return known.name < n; });
}

RemoteWatch::Known* RemoteWatch::find(uint64_t name) {
  Known* const at = place_of(name);
  if (at != known_.data() + known_.size() && at->name == name) return at;
  const auto place = static_cast<uint32_t>(at - known_.data());
  if (!known_.push({})) return nullptr;
  restless_ = true;
  Known* const made = known_.data() + place;
  memmove(made + 1, made, (known_.size() - 1 - place) * sizeof *made);
  *made = {name, 0, interval_, 0, 0, 0};
  return made;
}

bool RemoteWatch::note(uint64_t name, const RemoteAmounts& amounts) {
  Known* known = find(name);
  if (known == nullptr) return false;
  known->interval = interval_;
  const double all = amounts.local + amounts.remote;
  if (!(all > 0)) return false;  // nothing is known of this interval
  const double share = amounts.remote / all;
  if (share < kRemoteShare) {
    *known = {name, 0, interval_, 0, 0, 0};
    return false;
  }
  restless_ = true;
  if (known->asked_at != 0 &&
      (share < kHelped * known->asked_at || share > kGrown * known->asked_at)) {
    // As after a first interval with much: what is left is a question of its own.
    known->asked_at = 0;
    known->pause = known->left_of_it = 0;
    known->in_a_row = 0;
  }
  if (known->left_of_it != 0) {
    --known->left_of_it;
    return false;
  }
  if (++known->in_a_row < kRemoteIntervals) return false;
  known->pause = known->pause == 0 ? 1 : std::min(2 * known->pause, kMostRemotePause);
  known->left_of_it = known->pause;
  known->asked_at = share;
  return true;
}

void RemoteWatch::keep(uint64_t name) {
  Known* const at = place_of(name);
  if (at != known_.data() + known_.size() && at->name == name) at->interval = interval_;
}

bool RemoteWatch::end_interval() {
  const bool restless = restless_;
  restless_ = false;
  Known* const first = known_.data();
  Known* const last = std::remove_if(first, first + known_.size(), [this](const Known& known) {
    return known.interval != interval_;
  });
  known_.resize(static_cast<uint32_t>(last - first));
  ++interval_;
  return restless;
}

void note_remote_source(const char* source) { remote_source.store(source, kRelaxed); }

void note_remote_interval(uint64_t raised, const RemoteAmounts& all) {
  intervals.fetch_add(1, kRelaxed);
  raised_in_all.fetch_add(raised, kRelaxed);
  const double sum = all.local + all.remote;
  if (sum > 0) share_seen.store(all.remote / sum, kRelaxed);
}

RemoteCounts remote_counts() {
  return {remote_source.load(kRelaxed), intervals.load(kRelaxed), raised_in_all.load(kRelaxed),
          share_seen.load(kRelaxed)};
}

}  // namespace bosk::policies
