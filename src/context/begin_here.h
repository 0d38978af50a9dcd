// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "base/cpu_mask.h"
#include "base/spare_cpus.h"

namespace bosk::context {

/// Around the making of a kernel thread that its maker is going to wait for. The kernel puts a new thread elsewhere than its maker;
/// where no CPU is free it is then behind a stranger for a time slice, milliseconds, while the maker's CPU idles. So it begins on the
/// maker's, which that gives away by waiting: threads inherit affinity masks.
class BeginHere {
 public:
  BeginHere() {
    if (base::is_a_cpu_free()) return;
    const uint32_t cpu = base::current_cpu();
    if (cpu / 64 >= base::CpuMask::kWords) return;
    own_ = base::cpus_of_calling_thread();
    here_.bytes = own_.bytes;
    here_.words[cpu / 64] = uint64_t{1} << cpu % 64;
    if (own_.bytes == 0 || !base::set_cpus(here_)) own_.bytes = 0;
  }
  ~BeginHere() {
    // Somebody else may have bound this thread meanwhile; then that stands.
    if (own_.bytes != 0 && base::same_cpus(base::cpus_of_calling_thread(), here_))
      base::set_cpus(own_);
  }
  BeginHere(const BeginHere&) = delete;
  BeginHere& operator=(const BeginHere&) = delete;

  /// For the new thread: what begin() takes there.
  const base::CpuMask& cpus() const { return own_; }
  /// The first thing that a new thread does.
  static void begin(const base::CpuMask& cpus) {
    if (cpus.bytes != 0) base::set_cpus(cpus);
  }

 private:
  base::CpuMask own_;  ///< no bytes: nothing has been done
  base::CpuMask here_;
};

}  // namespace bosk::context
