// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/report_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

namespace bosk::base {

const char* mpi_rank() {
  // Open MPI, PMIx, MPICH and Intel MPI, MVAPICH, Slurm.
  constexpr const char* kNames[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                    "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};
  for (const char* name : kNames) {
    const char* rank = getenv(name);
    // It becomes part of a file's name: digits only.
    if (rank != nullptr && *rank != '\0' && rank[strspn(rank, "0123456789")] == '\0') return rank;
  }
  return nullptr;
}

bool expand_report_name(const char* pattern, int process, char* name, size_t size) {
  char number[16];
  snprintf(number, sizeof number, "%d", process);
  const char* rank = mpi_rank();
  utsname host;
  if (uname(&host) != 0) strcpy(host.nodename, "unknown");
  size_t used = 0;
  for (const char* at = pattern; *at != '\0'; ++at) {
    const char one[2] = {*at, '\0'};
    const char* piece = one;
    if (*at == '%' && strchr("prh%", at[1]) != nullptr && at[1] != '\0') {
      ++at;
      if (*at == 'p') piece = number;
      if (*at == 'r') piece = rank != nullptr ? rank : "0";
      if (*at == 'h') piece = host.nodename;
    }
    const size_t length = strlen(piece);
    if (used + length >= size) return false;
    memcpy(name + used, piece, length);
    used += length;
  }
  if (used >= size) return false;
  name[used] = '\0';
  return true;
}

}  // namespace bosk::base
