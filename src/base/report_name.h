// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of reports: one file for each process or rank.
#pragma once

#include <stddef.h>

namespace bosk::base {

/// The number that mpirun, srun or the like gave this process; null: none did.
const char* mpi_rank();

/// `pattern` with %p for the process's number, %r for its rank (0 without MPI), %h for the host and %% for %. Any other % stays. False: it does not fit.
bool expand_report_name(const char* pattern, int process, char* name, size_t size);

}  // namespace bosk::base
