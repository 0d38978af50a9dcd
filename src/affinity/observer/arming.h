// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is armed in which process and when: as much as may be spent.
#pragma once

#include <random>

#include "affinity/observer/account.h"
#include "affinity/observer/fault_price.h"
#include "affinity/observer/member.h"
#include "affinity/observer/observer.h"

namespace bosk::affinity {

/// Of processes with asynchronous write-protection chunks are armed, in those that have taken more time more often; of those with soft-dirty marks all memory at once, in turn,
/// when that much has been saved up. One owner.
class Arming {
 public:
  /// All must live longer.
  Arming(Account* account, ObserverCosts* costs, ObserverCounts* counts);

  /// There are no page-fault events.
  void do_without_events();
  /// Measures what all has its price by, once, before anything is armed: some 3 ms.
  void measure_prices();

  const WriteProtection::Shape& shape() const { return shape_; }
  /// On how many CPUs the program runs.
  void set_running(double cpus) { running_ = cpus; }
  double running() const { return running_; }
  /// What is bought at once, at most, for Account::pay_in().
  double step(Members* members) const;
  /// Looks at what is armed in the process, and arms it again.
  WriteProtection::Look look(Member* member);
  /// More, as far as the account goes.
  void arm(Members* members);
  /// The kernel has told of faults.
  void spend_on_events(double faults);
  /// Of these, those that would not have been without marks that were cleared.
  void spend_on_faults(double faults);
  /// Pages were moved: all CPUs forget what they knew of them.
  void spend_on_move();

 private:
  bool arm_chunk(Members* members);
  void clear_marks(Members* members);
  void choose_pages(Members* members);
  double call_price() const;
  double chunk_price() const;
  double clear_price(const SoftDirty& marks) const;

  bool has_events_ = true;
  Account* account_;
  ObserverCosts* costs_;
  ObserverCounts* counts_;
  FaultPrice price_;
  WriteProtection::Shape shape_;
  std::minstd_rand random_{std::random_device()()};
  double running_ = 1;
  double call_ns_ = 0;  ///< what it takes to arm a chunk, whatever its size
  pid_t cleared_ = 0;   ///< whose marks were cleared last
};

}  // namespace bosk::affinity
