// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// omp_get_wtime and omp_get_wtick.
#include <time.h>

#include "abi/gomp/export.h"

namespace {

double seconds(const timespec& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

}  // namespace

BOSK_EXPORT double omp_get_wtime() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return seconds(now);
}

BOSK_EXPORT double omp_get_wtick() {
  timespec step;
  clock_getres(CLOCK_MONOTONIC, &step);
  return seconds(step);
}

BOSK_EXPORT_ALIAS(omp_get_wtime) double omp_get_wtime_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_wtick) double omp_get_wtick_() noexcept;
