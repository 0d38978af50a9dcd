// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is mapped where: asked of the kernel, for marking only.
#pragma once

#include <stdint.h>

namespace bosk::memory {

struct Mapping {
  uintptr_t begin;
  uintptr_t end;
  int prot;
  bool shared;
  bool file;  ///< files, huge pages that are reserved, devices
  bool huge;  ///< of reserved huge pages
};

/// The mapping that holds `at`. False: there is none.
bool mapping_at(uintptr_t at, Mapping* mapping);

/// The same, or the first one behind it.
bool mapping_at_or_behind(uintptr_t at, Mapping* mapping);

/// Is all of it mapped, and is none of it locked? 0, -ENOMEM (a hole), -EBUSY (locked).
long check_unlocked(uintptr_t begin, uintptr_t end);

/// In the mapping of the main thread's stack?
bool in_main_stack(const Mapping& mapping);

/// In a forked child: what was open describes the parent.
void mappings_forget_after_fork();

}  // namespace bosk::memory
