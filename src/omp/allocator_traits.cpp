// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks traits, reads and writes them as text.
#include "omp/allocator_traits.h"

#include <stdio.h>

#include "base/parse.h"

namespace bosk::omp {
namespace {

using base::TextReader;

constexpr const char* kAllocators[] = {
    "omp_default_mem_alloc", "omp_large_cap_mem_alloc", "omp_const_mem_alloc",
    "omp_high_bw_mem_alloc", "omp_low_lat_mem_alloc",   "omp_cgroup_mem_alloc",
    "omp_pteam_mem_alloc",   "omp_thread_mem_alloc",
};
constexpr const char* kSpaces[] = {
    "omp_default_mem_space", "omp_large_cap_mem_space", "omp_const_mem_space",
    "omp_high_bw_mem_space", "omp_low_lat_mem_space",
};
/// By TraitKey, from kSyncHint on.
constexpr const char* kKeys[] = {
    "sync_hint", "alignment", "access", "pool_size", "fallback", "fb_data", "pinned", "partition",
};

struct Word {
  TraitKey key;
  const char* text;
  uintptr_t value;
};
/// Two words for a value: the first is shown.
constexpr Word kWords[] = {
    {kSyncHint, "contended", kContended},
    {kSyncHint, "uncontended", kContended + 1},
    {kSyncHint, "serialized", kContended + 2},
    {kSyncHint, "sequential", kContended + 2},
    {kSyncHint, "private", kPrivate},
    {kAccess, "all", kAll},
    {kAccess, "thread", kAll + 1},
    {kAccess, "pteam", kAll + 2},
    {kAccess, "cgroup", kCgroup},
    {kFallback, "default_mem_fb", kDefaultMemFallback},
    {kFallback, "null_fb", kNullFallback},
    {kFallback, "abort_fb", kAbortFallback},
    {kFallback, "allocator_fb", kAllocatorFallback},
    {kPinned, "true", kTrue},
    {kPinned, "false", kFalse},
    {kPartition, "environment", kEnvironment},
    {kPartition, "nearest", kNearest},
    {kPartition, "blocked", kBlocked},
    {kPartition, "interleaved", kInterleaved},
};

bool is_power_of_two(uintptr_t value) { return value != 0 && (value & (value - 1)) == 0; }

/// One of `words` and the rest of the text: its position, or -1.
template <size_t n>
int take_one_of(TextReader* reader, const char* const (&words)[n]) {
  for (size_t i = 0; i < n; i++) {
    if (reader->take_word(words[i])) return static_cast<int>(i);
  }
  return -1;
}

bool take_value(TextReader* reader, TraitKey key, uintptr_t* value) {
  if (key == kAlignment || key == kPoolSize) {
    uint64_t number;
    if (!reader->take_unsigned(&number)) return false;
    *value = number;
    return true;
  }
  if (key == kFallbackData) {
    const int which = take_one_of(reader, kAllocators);
    *value = static_cast<uintptr_t>(which) + 1;
    return which >= 0;
  }
  for (const Word& word : kWords) {
    if (word.key != key || !reader->take_word(word.text)) continue;
    *value = word.value;
    return true;
  }
  return false;
}

bool take_trait(TextReader* reader, AllocatorTraits* to) {
  const int which = take_one_of(reader, kKeys);
  if (which < 0 || !reader->take('=')) return false;
  const auto key = static_cast<TraitKey>(kSyncHint + which);
  uintptr_t value;
  return take_value(reader, key, &value) && apply_trait({key, value}, to);
}

uintptr_t value_of(const AllocatorTraits& traits, TraitKey key) {
  switch (key) {
    case kSyncHint:
      return traits.sync_hint;
    case kAlignment:
      return traits.alignment;
    case kAccess:
      return traits.access;
    case kPoolSize:
      return traits.pool_size;
    case kFallback:
      return traits.fallback;
    case kFallbackData:
      return traits.fallback_allocator;
    case kPinned:
      return traits.pinned ? kTrue : kFalse;
    case kPartition:
      return traits.partition;
  }
  return 0;
}

/// `value`, or `otherwise` for the trait's default, if it is from `least` to `most`.
bool choose(uintptr_t value, uintptr_t least, uintptr_t most, TraitValue otherwise, uint8_t* to) {
  if (value == kDefaultValue) value = otherwise;
  if (value < least || value > most) return false;
  *to = static_cast<uint8_t>(value);
  return true;
}

bool apply_value(int32_t key, uintptr_t value, AllocatorTraits* to) {
  uint8_t yes;
  switch (key) {
    case kSyncHint:
      return choose(value, kContended, kPrivate, kContended, &to->sync_hint);
    case kAccess:
      return choose(value, kAll, kCgroup, kAll, &to->access);
    case kFallback:
      return choose(value, kDefaultMemFallback, kAllocatorFallback, kDefaultMemFallback,
                    &to->fallback);
    case kPartition:
      return choose(value, kEnvironment, kInterleaved, kEnvironment, &to->partition);
    case kPinned:
      if (!choose(value, kFalse, kTrue, kFalse, &yes)) return false;
      to->pinned = yes == kTrue;
      return true;
    case kAlignment:
      if (value == kDefaultValue) value = 1;
      if (!is_power_of_two(value)) return false;
      to->alignment = value;
      return true;
    case kPoolSize:
      to->pool_size = value;  // the default is SIZE_MAX itself: no limit
      return true;
    case kFallbackData:
      to->fallback_allocator = value == kDefaultValue ? kNullAllocator : value;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool apply_trait(const AllocatorTrait& trait, AllocatorTraits* to) {
  if (!apply_value(trait.key, trait.value, to)) return false;
  to->given = static_cast<uint16_t>(to->given | 1u << trait.key);
  return true;
}

bool traits_fit(const AllocatorTraits& traits) {
  return traits.fallback != kAllocatorFallback || traits.fallback_allocator != kNullAllocator;
}

bool parse_allocator(const char* text, AllocatorSetting* setting) {
  TextReader reader(text);
  AllocatorSetting read;
  const int predefined = take_one_of(&reader, kAllocators);
  if (predefined >= 0) {
    if (!reader.at_end()) return false;
    read.predefined = static_cast<AllocatorHandle>(predefined) + 1;
    *setting = read;
    return true;
  }
  const int space = take_one_of(&reader, kSpaces);
  if (space < 0) return false;
  read.predefined = kNullAllocator;
  read.traits.space = static_cast<MemorySpace>(space);
  if (reader.take(':')) {
    do {
      if (!take_trait(&reader, &read.traits)) return false;
    } while (reader.take(','));
  }
  if (!reader.at_end() || !traits_fit(read.traits)) return false;
  *setting = read;
  return true;
}

const char* allocator_name(AllocatorHandle allocator) {
  return allocator >= 1 && allocator <= kLastPredefined ? kAllocators[allocator - 1] : nullptr;
}

void format_allocator(const AllocatorSetting& setting, char (&text)[kAllocatorText]) {
  if (setting.predefined != kNullAllocator) {
    snprintf(text, sizeof text, "%s", allocator_name(setting.predefined));
    return;
  }
  // All traits at their longest take less than 250 characters.
  auto at = static_cast<size_t>(snprintf(text, sizeof text, "%s", kSpaces[setting.traits.space]));
  char separator = ':';
  for (int32_t key = kSyncHint; key <= kPartition; key++) {
    if ((setting.traits.given >> key & 1) == 0) continue;
    const uintptr_t value = value_of(setting.traits, static_cast<TraitKey>(key));
    char number[24];
    snprintf(number, sizeof number, "%zu", static_cast<size_t>(value));
    const char* shown = key == kFallbackData ? allocator_name(value) : number;
    for (const Word& word : kWords) {
      if (word.key != key || word.value != value) continue;
      shown = word.text;
      break;
    }
    at += static_cast<size_t>(snprintf(text + at, sizeof text - at, "%c%s=%s", separator,
                                       kKeys[key - kSyncHint], shown != nullptr ? shown : number));
    separator = ',';
  }
}

}  // namespace bosk::omp
