// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The abstract names of OMP_PLACES from /sys: they are wanted when the environment is read, before
// hwloc may be used (it allocates).
#pragma once

#include "omp/places.h"

namespace bosk::omp {

/// A source that reads `root`/cpu and `root`/node; `root` must outlive it.
PlaceSource sysfs_place_source(const char* root = "/sys/devices/system");

}  // namespace bosk::omp
