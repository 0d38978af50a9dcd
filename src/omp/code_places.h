// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where code came from: the file that an address was loaded from, and how far behind the beginning of what is loaded. Read from
// /proc/self/maps, not asked of the loader, whose lock a thread may hold that waits for something else.
#pragma once

#include <stdint.h>

#include "base/mapped_array.h"
#include "omp/region_counts.h"

namespace bosk::omp {

struct CodePlace {
  const void* function = nullptr;
  const char* file = nullptr;
  uint64_t offset = 0;
};

/// What has been found is kept. Constant-initialised; one thread at a time.
class CodePlaces {
 public:
  /// Those of the regions' functions that were not looked for before, in one pass.
  void look_for(const base::MappedArray<RegionLine>& regions);
  /// Null: not known. Of functions that were looked for.
  const CodePlace* find(const void* function) const;

 private:
  const char* keep(const char* file);

  base::MappedArray<CodePlace> places_;  ///< a null file: in none
  base::MappedArray<const char*> files_;
};

}  // namespace bosk::omp
