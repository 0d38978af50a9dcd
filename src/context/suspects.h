// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an import says of the object that has it, and which objects are not judged by theirs: the lists of observers.cpp, argued in
// docs/design/identity.md.
#pragma once

#include <stdint.h>

namespace bosk::context {

constexpr uint16_t kIdentity = 1;
constexpr uint16_t kKernelThread = 2;
/// Texts of libc that it keeps for each thread, where a guest's are not put elsewhere (abi/libc/texts.cpp).
constexpr uint16_t kTexts = 4;
constexpr uint16_t kFloatFlags = 8;  ///< those of x87, too
// What threads_are_addressed() asks for.
constexpr uint16_t kAddressed = 16;
constexpr uint16_t kAddressedByProgram = 32;  ///< libraries import it for threads of their own
constexpr uint16_t kExplicitThreads = 64;
/// Of libraries that get ours (abi/libc/acting_calls.cpp) it counts when it is called so that it matters.
constexpr uint16_t kByCall = 128;
/// Waits, and questions what is set for the thread: ours is better, libc's is no harm.
constexpr uint16_t kBetterOurs = 256;

/// What an import of this name can do; 0: nothing of interest.
uint16_t observed_by(const char* symbol);

/// By the file's name: a run-time of a language, or what bosk itself brings in, which compare nobody's copies.
bool is_runtime(const char* object);
/// A library that acts on kernel threads only to set up those of its own, that merely passes such calls on (whoever asks it to is judged
/// by its own imports), or that does none of it in a member.
bool is_own_affair(const char* object);

}  // namespace bosk::context
