// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What bosk_last_error() tells: for each thread one line about the last call that failed.
//
// Lines are in a table by thread, not in thread-local memory: of that a plug-in's loader has too little for a line, and what a
// thread of the library finds there is another one's. The table has shelves of a few places each; where more threads than that meet on
// a shelf the line that was written longest ago is lost, and its thread is told that there is none. Shelves are locked by who only
// tries, so that nobody waits, also in a forked child.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <initializer_list>

namespace bosk::threads {

/// Something that a call was about: a name or a number.
struct Concern {
  const char* kind;
  const char* name;  ///< null: by number
  uintptr_t number = 0;
  bool is_address = false;

  /// Nothing was named; it is left out.
  bool is_none() const { return kind == nullptr; }
};

/// Notes that the caller's call of `function` failed, and why: constant texts, the names are copied. Leaves errno alone. Preemption is on.
void note_failure(const char* function, std::initializer_list<Concern> about, const char* why);

/// The caller's line, cut to `size` with its NUL. Returns its whole length; 0: there is none.
size_t last_failure(char* text, size_t size);

}  // namespace bosk::threads
