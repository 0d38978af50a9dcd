// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "base/cpu_mask.h"
#include "base/spare_cpus.h"

namespace bosk::context {

/// Around the making of a kernel thread that its maker is going to wait for. The kernel puts a new thread elsewhere than its maker;
/// where no CPU is free it is then behind a stranger for a time slice, milliseconds, while the maker's CPU idles, or somebody who is at work
/// on its own CPU is moved to another for it. So it begins on the maker's, which that gives away by waiting: threads inherit affinity masks.
class BeginHere {
 public:
  enum When : uint8_t {
    kWhereNoneIsFree,  ///< it has work to do, best on a CPU of its own
    kAlways,           ///< it waits at once
  };
  /// Of the maker, for the new thread.
  struct Masks {
    base::CpuMask own;  ///< no bytes: nothing has been done
    base::CpuMask here;
  };

  explicit BeginHere(When when = kWhereNoneIsFree) {
    if (when != kAlways && base::is_a_cpu_free()) return;
    const uint32_t cpu = base::current_cpu();
    if (cpu / 64 >= base::CpuMask::kWords) return;
    masks_.own = base::cpus_of_calling_thread();
    masks_.here.bytes = masks_.own.bytes;
    masks_.here.words[cpu / 64] = uint64_t{1} << cpu % 64;
    if (masks_.own.bytes == 0 || !base::set_cpus(masks_.here)) masks_ = {};
  }
  ~BeginHere() { begin(masks_); }
  BeginHere(const BeginHere&) = delete;
  BeginHere& operator=(const BeginHere&) = delete;

  const Masks& masks() const { return masks_; }
  /// The first thing that a new thread does. Somebody else may have bound it meanwhile; then that stands.
  static void begin(const Masks& masks) {
    if (masks.own.bytes != 0 && base::same_cpus(base::cpus_of_calling_thread(), masks.here))
      base::set_cpus(masks.own);
  }

 private:
  Masks masks_;
};

}  // namespace bosk::context
