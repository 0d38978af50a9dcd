// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMP_AFFINITY_FORMAT: where a thread runs, as text (OpenMP 5.2 §18.8).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <span>

#include "omp/places.h"

namespace bosk::omp {

inline constexpr char kDefaultAffinityFormat[] = "level %L thread %i affinity %A";

/// What the fields of a format stand for.
struct AffinityValues {
  int64_t team_num = 0;            ///< %t
  int64_t num_teams = 1;           ///< %T
  int64_t nesting_level = 0;       ///< %L
  int64_t thread_num = 0;          ///< %n
  int64_t num_threads = 1;         ///< %N
  int64_t ancestor_tnum = -1;      ///< %a
  int64_t process_id = 0;          ///< %P
  uint64_t native_thread_id = 0;   ///< %i
  const char* host = "";           ///< %H
  std::span<const CpuRange> cpus;  ///< %A
};

/// What is wrong with a format; the texts are libgomp's.
struct AffinityFormatError {
  enum Kind : uint8_t { kNone, kZeroWithoutDot, kNoSize, kLongName, kUnterminated, kType };
  Kind kind = kNone;
  const char* at = nullptr;  ///< the name or the character it is about
  uint32_t length = 0;       ///< of the name
};

/// Expands `format` (NUL-terminated) into `buffer`: at most size - 1 characters and a NUL; with
/// size 0 nothing is written. The result is the length of the whole text. Stops at the first error.
size_t expand_affinity_format(const char* format, const AffinityValues& values, char* buffer,
                              size_t size, AffinityFormatError* error);

/// As above; an error ends the program with libgomp's line.
size_t expand_affinity_format(const char* format, const AffinityValues& values, char* buffer,
                              size_t size);

/// Writes the expanded format and a newline to standard error in one go.
void display_affinity(const char* format, const AffinityValues& values);

/// The host's and the process's parts of the values: `host` must have room for kHostMax characters.
constexpr size_t kHostMax = 256;
void fill_process_values(AffinityValues* values, char* host);

/// affinity-format-var. Never null, and what it returns stays valid for good.
const char* affinity_format();
/// omp_set_affinity_format; `format` need not be NUL-terminated (Fortran). Every different format
/// is kept once for good, so that readers need no lock; without memory the format stays what it
/// was.
void set_affinity_format(const char* format, size_t length);
/// The format a display or capture routine means: null and "" stand for affinity-format-var.
inline const char* affinity_format_or(const char* format) {
  return format == nullptr || format[0] == '\0' ? affinity_format() : format;
}
/// Copies affinity-format-var as omp_get_affinity_format does; returns its whole length.
size_t get_affinity_format(char* buffer, size_t size);

}  // namespace bosk::omp
