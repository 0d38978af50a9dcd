// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of libc's that the library sees to itself (abi/libc/): where libc stands before it, objects get libc's. Those that wait, or act on
// the thread, are led to ours by the slots through which the objects call.
//
// A slot is a word of the loader's, which it fills when an object is loaded or calls for the first time; no code is changed. Of a slot
// that leads to somebody else than libc (another library's own, a tool's) it is left alone. Nothing's correctness rests on it.
#pragma once

#include "context/loaded_object.h"

namespace bosk::context {

/// Whose names come first. From a look at the loaded objects, and valid as long as that.
struct Precedence {
  LoadedObject ours{};  ///< no headers: not there
  LoadedObject libc{};
  bool we_come_first = false;

  /// To be called for the objects in their order.
  void see(const LoadedObject& object);
};

/// Leads the object's calls that ours are for (suspects.h: kBetterOurs, kByCall) to ours. Returns the name of one of kByCall that leads elsewhere
/// nevertheless; null: none. Idempotent. Under the loader's lock.
const char* take_calls(const LoadedObject& object, const Precedence& precedence);

}  // namespace bosk::context
