// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The grammar of the single variables.
#include "base/parse.h"
#include "omp/environment.h"

namespace bosk::omp {
namespace {

using base::TextReader;

bool take_modifier(TextReader* reader, const char* word) {
  TextReader ahead = *reader;
  if (!ahead.take_word(word) || !ahead.take(':')) return false;
  *reader = ahead;
  return true;
}

bool take_schedule_kind(TextReader* reader, uint32_t* kind) {
  constexpr const char* kWords[] = {"static", "dynamic", "guided", "auto"};
  for (uint32_t i = 0; i < 4; i++) {
    if (!reader->take_word(kWords[i])) continue;
    *kind = kScheduleStatic + i;
    return true;
  }
  return false;
}

bool take_bind(TextReader* reader, Bind* bind) {
  if (reader->take_word("primary") || reader->take_word("master")) {
    *bind = Bind::kPrimary;
  } else if (reader->take_word("close")) {
    *bind = Bind::kClose;
  } else if (reader->take_word("spread")) {
    *bind = Bind::kSpread;
  } else {
    return false;
  }
  return true;
}

}  // namespace

ScheduleParse parse_schedule(const char* text, uint32_t* schedule, int32_t* chunk) {
  TextReader reader(text);
  const bool monotonic = take_modifier(&reader, "monotonic");
  const bool nonmonotonic = !monotonic && take_modifier(&reader, "nonmonotonic");
  uint32_t kind;
  if (!take_schedule_kind(&reader, &kind)) return ScheduleParse::kUnknownKind;
  uint64_t size = kind == kScheduleStatic ? 0 : 1;
  if (reader.take(',')) {
    if (!reader.take_unsigned(&size) || !reader.at_end() || size > INT32_MAX) {
      return ScheduleParse::kBadChunk;
    }
    if (size == 0 && kind != kScheduleStatic) size = 1;
  } else if (!reader.at_end()) {
    return ScheduleParse::kUnknownKind;
  }
  // Static is monotonic unless it is said not to be.
  const bool marked = monotonic || (kind == kScheduleStatic && !nonmonotonic);
  *schedule = kind | (marked ? static_cast<uint32_t>(kScheduleMonotonic) : 0);
  *chunk = static_cast<int32_t>(size);
  return ScheduleParse::kOk;
}

bool parse_thread_list(const char* text, base::MappedArray<uint32_t>* list) {
  TextReader reader(text);
  list->clear();
  do {
    uint64_t n;
    if (!reader.take_unsigned(&n) || n == 0 || n > INT32_MAX) return false;
    if (list->size() < kMostListed && !list->push(static_cast<uint32_t>(n))) return false;
  } while (reader.take(','));
  return reader.at_end();
}

bool parse_bind_list(const char* text, base::MappedArray<Bind>* list) {
  list->clear();
  bool on;
  if (base::parse_choice(text, "true", "false", &on)) {
    return list->push(on ? Bind::kTrue : Bind::kFalse);
  }
  TextReader reader(text);
  do {
    Bind bind;
    if (!take_bind(&reader, &bind)) return false;
    if (list->size() < kMostListed && !list->push(bind)) return false;
  } while (reader.take(','));
  return reader.at_end();
}

bool parse_stack_size(const char* text, uint64_t* bytes) {
  TextReader reader(text);
  uint64_t size;
  if (!reader.take_unsigned(&size)) return false;
  unsigned shift = 10;
  switch (base::to_lower(reader.peek())) {
    case 'b':
      shift = 0;
      break;
    case 'm':
      shift = 20;
      break;
    case 'g':
      shift = 30;
      break;
    default:
      break;
  }
  if (base::is_word_char(reader.peek())) {
    const char unit = reader.peek();
    if (shift == 10 && base::to_lower(unit) != 'k') return false;
    reader.take(unit);
  }
  if (!reader.at_end() || size > UINT64_MAX >> shift) return false;
  *bytes = size << shift;
  return true;
}

bool parse_spin_count(const char* text, uint64_t* count) {
  const char* const words[] = {"infinite", "infinity"};
  if (base::parse_word(text, words, 2) >= 0) {
    *count = UINT64_MAX;
    return true;
  }
  TextReader reader(text);
  uint64_t spins, unit = 1;
  if (!reader.take_unsigned(&spins)) return false;
  const char letter = base::to_lower(reader.peek());
  switch (letter) {
    case 'k':
      unit = 1'000;
      break;
    case 'm':
      unit = 1'000'000;
      break;
    case 'g':
      unit = 1'000'000'000;
      break;
    case 't':
      unit = 1'000'000'000'000;
      break;
    default:
      break;
  }
  if (unit != 1) reader.take(reader.peek());
  if (!reader.at_end()) return false;
  if (__builtin_mul_overflow(spins, unit, &spins)) spins = UINT64_MAX;
  *count = spins;
  return true;
}

bool parse_wait_policy(const char* text, WaitPolicy* policy) {
  bool active;
  if (!base::parse_choice(text, "active", "passive", &active)) return false;
  *policy = active ? WaitPolicy::kActive : WaitPolicy::kPassive;
  return true;
}

bool parse_target_offload(const char* text, TargetOffload* value) {
  const char* const words[] = {"default", "mandatory", "disabled"};
  const int which = base::parse_word(text, words, 3);
  if (which < 0) return false;
  *value = static_cast<TargetOffload>(which);
  return true;
}

bool parse_display_env(const char* text, DisplayEnv* value) {
  const char* const words[] = {"false", "true", "verbose"};
  const int which = base::parse_word(text, words, 3);
  if (which < 0) return false;
  *value = static_cast<DisplayEnv>(which);
  return true;
}

}  // namespace bosk::omp
