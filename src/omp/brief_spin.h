// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether looking again for a moment, before blocking, can be of any use.
#pragma once

namespace bosk::omp {

/// False when the process may use one CPU only: whoever is waited for cannot be running.
bool spinning_can_help();

}  // namespace bosk::omp
