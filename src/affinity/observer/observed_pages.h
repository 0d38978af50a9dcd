// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel's pages as whoever moves them sees them, with what is known of huge ones by arming them.
#pragma once

#include <functional>
#include <utility>

#include "affinity/acting/page_system.h"
#include "affinity/observer/write_protection.h"

namespace bosk::affinity {

/// One owner: the observer's thread.
class ObservedPages : public Kernel {
 public:
  using ProtectionOf = std::function<WriteProtection*(pid_t process)>;
  explicit ObservedPages(ProtectionOf protection_of) : protection_of_(std::move(protection_of)) {}

  bool is_huge(pid_t process, uint64_t address) override {
    WriteProtection* protection = protection_of_(process);
    return protection != nullptr && protection->is_in_huge_page(address);
  }
  bool split(pid_t process, uint64_t address) override {
    if (!Kernel::split(process, address)) return false;
    if (WriteProtection* protection = protection_of_(process)) protection->leave_split(address);
    return true;
  }

 private:
  ProtectionOf protection_of_;
};

}  // namespace bosk::affinity
