// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much each pair of threads shares: the affinity matrix (Diener 2014, sections 2.2.1 and 3.4.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bosk::affinity {

/// Symmetric, with an empty diagonal; threads are numbered from 0 in the order in which they were first seen. 4 T² bytes
/// (eq. 9), one owner, who alone calls it.
class SharingMatrix {
 public:
  /// More are added by add(), in O(T²) each time their number doubles.
  explicit SharingMatrix(uint32_t threads = 0) { grow(threads); }

  uint32_t threads() const { return threads_; }
  uint32_t at(uint32_t a, uint32_t b) const { return cells_[index(a, b)]; }
  /// Of one thread with each of threads(), itself included (0).
  std::span<const uint32_t> row(uint32_t thread) const {
    return {cells_.data() + size_t{thread} * stride_, threads_};
  }

  /// The threads have shared something, `events` times. A pair that has done so 2³²−1 times stays there until the next aging; a thread shares
  /// nothing with itself.
  void add(uint32_t a, uint32_t b, uint32_t events = 1);

  /// So that what was counted long ago says less: each cell times ¾.
  void age();
  /// A thread has ended, and its number is for another one.
  void forget(uint32_t thread);
  void clear();

 private:
  size_t index(uint32_t a, uint32_t b) const { return size_t{a} * stride_ + b; }
  void grow(uint32_t threads);

  std::vector<uint32_t> cells_;
  uint32_t threads_ = 0;
  uint32_t stride_ = 0;
};

/// Equation 1: how much the amounts of sharing differ from pair to pair; 0: all threads share alike, and where they run makes no difference.
double heterogeneity(const SharingMatrix& matrix);

/// Equation 2: how much two threads share on average.
double sharing_amount(const SharingMatrix& matrix);

/// Pearson's correlation over the pairs of different threads: 1 if `b` is `a` up to scale and offset. 0 if one of them says nothing (all pairs
/// alike). Threads that one of them does not know share nothing there.
double correlation(const SharingMatrix& a, const SharingMatrix& b);

}  // namespace bosk::affinity
