// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/setting_names.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace bosk::base {
namespace {

constexpr char kPrefix[] = "BOSK_";
constexpr size_t kPrefixLength = sizeof kPrefix - 1;

/// All that the library and the tool read, without the prefix. A test looks for the others in the documents.
constexpr const char* kSettings[] = {
    "COUNTERS",
    "IDENTITY",
    "LEARN",
    "LEARN_EVENTS",
    "LEARN_LOAD",
    "LEARN_OVERHEAD",
    "LOAD",
    "MEMORY_MOVES",
    "MEMORY_WATCH",
    "NEXT_TOUCH",
    "OBSERVER",
    "POLICY",
    "PREEMPT_PERIOD",
    "REDISTRIBUTE",
    "RELATION",
    "REPORT",
    "REPORT_DATA",
    "SELFTEST",
    "SYNTHETIC",
    "TEAM_SIZE",
    "TOPOLOGY_READER",
    "TOPOLOGY_THISSYSTEM",
    "TOPOLOGY_XML",
    "WORKERS",
    "WORKER_HOMES",
};
constexpr size_t kLongestName = 40;

/// Insertions, deletions and changes of a letter that make the one of the other.
size_t distance(const char* a, const char* b) {
  const size_t width = strlen(b);
  size_t row[kLongestName + 1];
  for (size_t j = 0; j <= width; ++j) row[j] = j;
  for (size_t i = 1; a[i - 1] != '\0'; ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= width; ++j) {
      const size_t changed = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[width];
}

/// Of a name without the prefix.
const char* nearest(const char* name) {
  if (strlen(name) > kLongestName) return nullptr;
  const char* best = nullptr;
  size_t least = 3;
  for (const char* setting : kSettings) {
    const size_t length = strlen(setting);
    // Of a short name two letters are too much of it; a word left out at the end is none too many.
    const bool begun = strlen(name) >= 4 && strncmp(name, setting, strlen(name)) == 0;
    const size_t apart = begun ? 1 : distance(name, setting);
    if (apart < least && 3 * apart <= length) {
      best = setting;
      least = apart;
    }
  }
  return best;
}

bool is_known(const char* name) {
  for (const char* setting : kSettings)
    if (strcmp(name, setting) == 0) return true;
  return false;
}

}  // namespace

const char* nearest_setting(const char* name) {
  return strncmp(name, kPrefix, kPrefixLength) == 0 ? nearest(name + kPrefixLength) : nullptr;
}

void note_unknown_settings(MessageLog* log) {
  if (environ == nullptr) return;
  for (char** at = environ; *at != nullptr; ++at) {
    if (strncmp(*at, kPrefix, kPrefixLength) != 0) continue;
    char name[kPrefixLength + kLongestName + 1];
    const size_t length = strcspn(*at, "=");
    if (length >= sizeof name) continue;
    memcpy(name, *at, length);
    name[length] = '\0';
    const char* rest = name + kPrefixLength;
    // A setuid program takes no orders, and so finds no fault with them.
    if (is_known(rest) || secure_getenv(name) == nullptr) continue;
    if (const char* meant = nearest(rest))
      log->add("there is no variable %s; did you mean %s%s?", name, kPrefix, meant);
  }
}

}  // namespace bosk::base
