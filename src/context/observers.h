// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Can the program tell two identities apart, or a thread from its kernel thread? (docs/design/identity.md)
#pragma once

#include <stdint.h>

#include "context/loaded_object.h"

namespace bosk::context {

/// True ("strict"): some loaded object could tell that two members of a team ran under one identity,
/// so every member keeps its own until the team ends. Looks at the loaded objects at most once a
/// millisecond. Once true it stays so: what was unloaded may have left pointers behind.
///
/// Takes the loader's lock: call it with preemption on.
bool identities_observable_cached(uint64_t now_cycles);

/// True: some loaded object acts on the kernel thread of a member (affinity, signals, clocks), so
/// level-1 members need one each even where they outnumber the CPUs. Cached like the above.
bool kernel_threads_observable_cached(uint64_t now_cycles);
bool kernel_threads_observable();

/// True: the program, or a library for it, acts on members of any level by way of their kernel threads: it sends
/// them signals, gives them masks and alternate stacks, or has the kernel look after their mutexes
/// (priority inheritance, robust ones). A thread that is lent to whatever runs it has none of these, so each member
/// needs a kernel thread of its own. Not of programs with threads of bosk's own. Looks anew each time: some 20 us.
bool threads_are_addressed();

/// Who gave that answer, as below; null: nobody.
const char* addressing_name();

/// True: some loaded object asks where a thread's stack is, so a thread must run on its own.
bool stacks_observable_cached(uint64_t now_cycles);

/// Forgets when the objects were last looked at: after a dlopen that bosk has seen.
void observers_may_have_changed();

/// Which object and symbol gave the answer, as "object (symbol)"; null while it is false, or where
/// BOSK_IDENTITY gave it.
const char* observer_name();
const char* kernel_thread_observer_name();

/// What one object says; the answers above are those of all objects but bosk's own together. The
/// symbols are null where the object says nothing.
struct ObjectVerdict {
  const char* identity_symbol;
  const char* kernel_thread_symbol;
  const char* texts_symbol;  ///< identity, but where it gets the library's own functions
  const char*
      by_call_symbol;  ///< kernel threads, but where it gets the library's own function, which sees to each call
  const char* float_flags_symbol;  ///< it can read the exception flags of x87
  bool better_ours;                ///< it has calls of which the library's own are better
};
ObjectVerdict judge_object(const LoadedObject& object);

}  // namespace bosk::context
