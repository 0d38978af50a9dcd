// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What observing may cost, and what it has cost: a part of the time that the program takes is paid in, whatever we cause is paid out.
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <utility>

namespace bosk::affinity {

constexpr double kMillisecond = 1e6;

inline double now_ns(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

/// Of all that have ended and were waited for, by us or by each other: those that live shortly are not all seen while they do.
inline double time_of_children() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto ns = [](const timeval& time) {
    return 1e9 * static_cast<double>(time.tv_sec) + 1e3 * static_cast<double>(time.tv_usec);
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

/// One owner: the thread whose own time it counts.
class Account {
 public:
  explicit Account(double overhead) : overhead_(overhead) {}

  /// Of the bound, less may be spent from now on.
  void set_part(double part) { part_ = part; }
  /// `cpus`: on how many the program runs. `step`: what is bought at once, which can always be saved up for.
  void pay_in(double program_ns, double cpus, double step) {
    const double most = std::max({kMostCredit, kSavedTime * cpus * overhead_, 2 * step});
    credit_ = std::clamp(credit_ + part_ * overhead_ * program_ns, kMostDebt, most);
  }
  /// `on`: one of the costs, which gets it as well.
  void spend(double ns, double* on) {
    *on += ns;
    credit_ -= ns;
  }
  /// All of the calling thread since the last time. If the program runs on all CPUs that there are, one of its threads has to wait meanwhile; and so have all, if they wait for each other.
  void spend_own_time(double* on) {
    const double now = now_ns(CLOCK_THREAD_CPUTIME_ID);
    spend((now - std::exchange(own_time_, now)) * waiting_, on);
  }
  /// The program runs on so many CPUs, of so many.
  void set_running(double running, double cpus) {
    const bool is_full = running > cpus - kIdle;
    // Who may spend all wants to learn at any price.
    waiting_ = is_full && overhead_ < 1 ? std::max(running, 1.0) : 1;
  }
  void begin() { own_time_ = now_ns(CLOCK_THREAD_CPUTIME_ID); }
  bool may_spend() const { return credit_ > 0; }
  double credit() const { return credit_; }

 private:
  /// What may be spent before the program has taken any time, and the most that is saved up or owed.
  static constexpr double kAdvance = 2 * kMillisecond;
  static constexpr double kMostCredit = 20 * kMillisecond;
  /// What comes in so long is saved up for: the more CPUs the program has, the more may be looked at a time, and the longer one look may take.
  static constexpr double kSavedTime = 250 * kMillisecond;
  /// So much of a CPU is enough for us.
  static constexpr double kIdle = .25;
  static constexpr double kMostDebt = -1000 * kMillisecond;

  double overhead_;
  double part_ = 1;
  double waiting_ = 1;  ///< threads that wait while we have a CPU
  double credit_ = kAdvance;
  double own_time_ = 0;
};

}  // namespace bosk::affinity
