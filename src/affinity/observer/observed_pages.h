// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel's pages as whoever moves them sees them, with what is known of huge ones by observing them.
#pragma once

#include <functional>
#include <utility>

#include "affinity/acting/page_system.h"
#include "affinity/observer/observed_process.h"

namespace bosk::affinity {

/// One owner: the observer's thread.
class ObservedPages : public Kernel {
 public:
  using ProcessOf = std::function<ObservedProcess*(pid_t process)>;
  explicit ObservedPages(ProcessOf process_of) : process_of_(std::move(process_of)) {}

  bool is_huge(pid_t process, uint64_t address) override {
    ObservedProcess* observed = process_of_(process);
    return observed != nullptr && observed->is_in_huge_page(address);
  }
  bool split(pid_t process, uint64_t address) override {
    if (!Kernel::split(process, address)) return false;
    if (ObservedProcess* observed = process_of_(process)) observed->leave_split(address);
    return true;
  }

 private:
  ProcessOf process_of_;
};

}  // namespace bosk::affinity
