// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The matrix of sharing as text, CSV and SVG; threads in the order of the CPUs that they were seen on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affinity/learner.h"

namespace bosk::tools {

/// Those that have shared something, by CPU, then as they were first seen. Numbers of the learner's.
std::vector<uint32_t> threads_in_order(const affinity::Learner& learner);

/// A digit for each pair: sharing as tenths of the most that any pair shares, on a scale of square roots; '.': none. Of more than 32 threads neighbours
/// are taken together.
std::string matrix_text(const affinity::Learner& learner);
/// A line a thread: its number in the kernel, its CPU, its accesses, and events of sharing with each thread, in the order of the lines.
std::string matrix_csv(const affinity::Learner& learner);
/// A picture that needs nothing else.
std::string matrix_svg(const affinity::Learner& learner, const std::string& title);

}  // namespace bosk::tools
