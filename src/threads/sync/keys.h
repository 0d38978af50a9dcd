// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Thread-local data of bosk/sync.h: values per key and identity.
#pragma once

#include <stdint.h>

namespace bosk::threads {

/// Codes of bosk/error.h.
int create_key(uint64_t* key, void (*destructor)(void*));
int delete_key(uint64_t key);
void* value_of_key(uint64_t key);
int set_value_of_key(uint64_t key, void* value);

/// A thread of bosk ends: calls the destructors of the values that the installed identity has, and drops them. With
/// preemption on; the destructors are the program's code. To be called under the identity that the thread ran
/// under, before anything else runs under it.
void run_key_destructors();

/// For whoever runs a thread on top of another one under the same identity: takes away the values of the
/// installed identity (null: none) and gives it others, which an earlier call has taken away.
struct KeyValues;
KeyValues* exchange_key_values(KeyValues* values);

}  // namespace bosk::threads
