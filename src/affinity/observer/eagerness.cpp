// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/eagerness.h"

#include <algorithm>
#include <utility>

#include "affinity/observer/account.h"

namespace bosk::affinity {
namespace {

constexpr double kQuiet = 1000 * kMillisecond;
/// After that, until the next step.
constexpr double kStillQuiet = 500 * kMillisecond;
constexpr int kSteps = 3;
constexpr uint64_t kSeenOften = 1000;
constexpr double kLookPeriod = 1000 * kMillisecond;
/// With fewer, likeness is chance, and with more it takes long.
constexpr uint32_t kFewestCompared = 4;
constexpr uint32_t kMostCompared = 256;
/// Events for each thread, with which two matrices can be compared.
constexpr uint64_t kEnoughEvents = 16;
/// What is new is like what was there, by structure and not by chance; and is no more.
constexpr double kLike = .6;
constexpr double kUnlike = .3;

}  // namespace

void Eagerness::news(double now) {
  since_ = now;
  accesses_ = learner_->accesses();
  threads_ = learner_->threads().size();
}

/// What has come since the last look, against what had come until then. Without structure both are chance, and as unlike as ever.
bool Eagerness::is_sharing_otherwise() {
  const SharingMatrix& matrix = learner_->matrix();
  const uint32_t threads = matrix.threads();
  if (threads < kFewestCompared || threads > kMostCompared) return false;
  SharingMatrix fresh(threads);
  uint64_t events = 0;
  for (uint32_t a = 0; a < threads; ++a)
    for (uint32_t b = 0; b < a; ++b) {
      const uint32_t was = a < before_.threads() ? before_.at(a, b) : 0;
      // Less: it has been aged.
      if (const uint32_t is = matrix.at(a, b); is > was) {
        fresh.add(a, b, is - was);
        events += is - was;
      }
    }
  if (events < kEnoughEvents * threads) return false;
  const double likeness = correlation(fresh, fresh_);
  const bool is_otherwise = likeness_ > kLike && likeness < likeness_ - kUnlike;
  likeness_ = is_otherwise ? 0 : likeness_ + (likeness - likeness_) / 4;
  before_ = matrix;
  fresh_ = std::move(fresh);
  return is_otherwise;
}

double Eagerness::part(double now) {
  if (since_ == 0) news(now);
  if (now >= look_again_) {
    look_again_ = now + kLookPeriod;
    const size_t threads = learner_->threads().size();
    if (is_sharing_otherwise() || threads > threads_ + threads_ / 4) news(now);
  }
  const uint64_t seen = learner_->accesses() - accesses_;
  const uint64_t often = kSeenOften * std::max<size_t>(threads_, 1);
  double part = 1;
  for (int step = 0; step < kSteps; ++step)
    if (now - since_ >= kQuiet + step * kStillQuiet && seen >= often) part /= 2;
  return part;
}

}  // namespace bosk::affinity
