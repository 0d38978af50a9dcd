// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenMP runtimes that bosk does not stand for, in the process: Clang's and Intel's. Their regions are not in the report.
#pragma once

#include <stddef.h>

namespace bosk::omp {

/// The file of one that is loaded; false: there is none. Any thread.
bool find_other_runtime(char* file, size_t size);
/// Is the file, by its name, such a runtime? The `name` of a mapping.
bool is_other_runtime(const char* file);

}  // namespace bosk::omp
