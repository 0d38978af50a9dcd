// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Texts that libc keeps for each thread, of members that have no thread to themselves.
//
// strerror() and its like answer with the address of a buffer of the calling thread. Ghosts that share an identity would
// write over one another's, and over the one that their opener has read the address of. So what such a guest asks for
// is put where only this member of this team writes: here. Memory: once asked for, it stays with the team's record,
// and serves the member of the same number in later regions, as a thread's buffer does.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::omp {

struct Team;
struct GuestTexts;

enum class Text : uint8_t { kError, kSignal, kAddress };
constexpr size_t kTextKinds = 3;
constexpr size_t kTextBytes = 160;  ///< longer ones are cut; libc has none in any language

/// Where the calling thread's text goes, kTextBytes long; null: it is not a guest under the identity that it runs
/// under, and libc's buffer is its own; or memory is out. Preemption is on.
char* guest_text(Text kind);

void free_guest_texts(Team* team);

}  // namespace bosk::omp
