// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/code_places.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "base/text_lines.h"

namespace bosk::omp {
namespace {

struct Mapping {
  uintptr_t from = 0;
  uintptr_t to = 0;
  uint64_t offset = 0;  ///< in the file
  const char* file = "";
};

/// "FROM-TO RIGHTS OFFSET DEVICE INODE   FILE", numbers in hexadecimal.
Mapping parsed(char* line) {
  Mapping mapping;
  char* at = line;
  mapping.from = strtoul(at, &at, 16);
  if (*at == '-') mapping.to = strtoul(at + 1, &at, 16);
  at += strspn(at, " ");
  at += strcspn(at, " ");
  mapping.offset = strtoul(at, &at, 16);
  if (char* file = strchr(at, '/')) mapping.file = file;
  return mapping;
}

}  // namespace

const char* CodePlaces::keep(const char* file) {
  for (uint32_t i = 0; i < files_.size(); ++i)
    if (strcmp(files_[i], file) == 0) return files_[i];
  const size_t bytes = strlen(file) + 1;
  auto* kept = static_cast<char*>(base::map_pages(bytes));
  if (kept == nullptr) return nullptr;
  memcpy(kept, file, bytes);
  return files_.push(kept) ? kept : nullptr;
}

const CodePlace* CodePlaces::find(const void* function) const {
  for (uint32_t i = 0; i < places_.size(); ++i)
    if (places_[i].function == function) return places_[i].file != nullptr ? &places_[i] : nullptr;
  return nullptr;
}

void CodePlaces::look_for(const base::MappedArray<RegionLine>& regions) {
  const uint32_t known = places_.size();
  for (uint32_t i = 0; i < regions.size(); ++i) {
    const void* function = regions[i].function;
    bool is_known = function == nullptr;
    for (uint32_t at = 0; at < known && !is_known; ++at)
      is_known = places_[at].function == function;
    if (!is_known && !places_.push({function, nullptr, 0})) return;
  }
  if (places_.size() == known) return;
  base::TextLines maps("/proc/self/maps");
  static char line[PATH_MAX + 128];
  static char first_file[PATH_MAX];
  // Objects are loaded in one piece, which begins with the mapping of the file's first page.
  uintptr_t first = 0;
  first_file[0] = '\0';
  while (maps.next(line)) {
    const Mapping mapping = parsed(line);
    if (mapping.offset == 0) {
      first = mapping.from;
      const size_t length = strnlen(mapping.file, sizeof first_file - 1);
      memcpy(first_file, mapping.file, length);
      first_file[length] = '\0';
    }
    if (*mapping.file == '\0' || strcmp(mapping.file, first_file) != 0) continue;
    for (uint32_t at = known; at < places_.size(); ++at) {
      const auto address = reinterpret_cast<uintptr_t>(places_[at].function);
      if (address < mapping.from || address >= mapping.to) continue;
      places_[at].file = keep(first_file);
      places_[at].offset = address - first;
    }
  }
}

}  // namespace bosk::omp
