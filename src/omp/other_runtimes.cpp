// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/other_runtimes.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text_lines.h"

namespace bosk::omp {

bool is_other_runtime(const char* file) {
  const char* slash = strrchr(file, '/');
  const char* name = slash != nullptr ? slash + 1 : file;
  // As distributions and wheels call them: libomp.so.5, libomp-19.so.5, libomp-f1025659.so.5, libiomp5.so.
  if (strstr(name, ".so") == nullptr) return false;
  return strncmp(name, "libomp.", 7) == 0 || strncmp(name, "libomp-", 7) == 0 ||
         strncmp(name, "libomp5", 7) == 0 || strncmp(name, "libiomp5", 8) == 0;
}

bool find_other_runtime(char* file, size_t size) {
  base::TextLines maps("/proc/self/maps");
  for (char line[PATH_MAX + 128]; maps.next(line);) {
    const char* name = strchr(line, '/');
    if (name == nullptr || !is_other_runtime(name)) continue;
    snprintf(file, size, "%s", name);
    return true;
  }
  return false;
}

}  // namespace bosk::omp
