// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the parts of the report are written with.
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include "omp/report.h"

namespace bosk::omp {

class Text {
 public:
  explicit Text(base::MappedArray<char>* to) : to_(to) {}

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char piece[512];
    int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length >= static_cast<int>(sizeof piece)) length = sizeof piece - 1;
    for (int i = 0; i < length; ++i) good_ &= to_->push(piece[i]);
  }
  bool good() const { return good_; }

 private:
  base::MappedArray<char>* to_;
  bool good_ = true;
};

/// What is behind a word of which there are `n`.
inline const char* plural(uint64_t n) { return n == 1 ? "" : "s"; }

/// Where the CPUs' time went, in sum and by region.
void add_times(Text* text, const ReportData& data);
/// Bubbles and threads that were moved while the program ran, time slices and phases (docs/evolution.md).
void add_evolution(Text* text, const ReportData& data);
/// What was decided about memory: how often what, what came of it, the numbers of the last time, and who watches.
void add_memory_decisions(Text* text, const ReportData& data);
/// How often it was asked whether threads are near their memory, and what came of it.
void add_memory_looks(Text* text, const ReportData& data);
/// What became of pages that were marked (docs/next-touch.md).
void add_next_touch(Text* text, const ReportData& data);

}  // namespace bosk::omp
