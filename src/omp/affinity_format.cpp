// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expands affinity formats, and keeps affinity-format-var.
#include "omp/affinity_format.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "base/mapped_array.h"
#include "base/message.h"
#include "base/parse.h"
#include "omp/environment.h"

namespace bosk::omp {
namespace {

// Counts everything, writes what fits.
class Text {
 public:
  Text(char* buffer, size_t size) : buffer_(buffer), size_(size) {}
  void put(char c) {
    if (length_ + 1 < size_) buffer_[length_] = c;
    ++length_;
  }
  void put(const char* text, size_t length) {
    for (size_t i = 0; i < length; i++) put(text[i]);
  }
  // A width may be any number: only what fits is looped over.
  void pad(char c, uint64_t count) {
    for (; count != 0 && length_ + 1 < size_; count--) put(c);
    length_ += count;
  }
  size_t finish() {
    if (size_ != 0) buffer_[length_ < size_ ? length_ : size_ - 1] = '\0';
    return length_;
  }

 private:
  char* buffer_;
  size_t size_;
  size_t length_ = 0;
};

struct Field {
  bool zeros = false;
  bool right = false;
  uint64_t width = 0;
  char type = '\0';
};

struct Name {
  const char* name;
  char type;
};

constexpr Name kNames[] = {
    {"team_num", 't'},
    {"num_teams", 'T'},
    {"nesting_level", 'L'},
    {"thread_num", 'n'},
    {"num_threads", 'N'},
    {"ancestor_tnum", 'a'},
    {"host", 'H'},
    {"process_id", 'P'},
    {"native_thread_id", 'i'},
    {"thread_affinity", 'A'},
};

bool fail(AffinityFormatError* error, AffinityFormatError::Kind kind, const char* at,
          size_t length = 1) {
  *error = {kind, at, static_cast<uint32_t>(length)};
  return false;
}

bool take_long_name(const char** at, Field* field, AffinityFormatError* error) {
  const char* name = *at;
  const char* end = strchr(name, '}');
  if (end == nullptr) {
    return fail(error, AffinityFormatError::kUnterminated, name, strlen(name));
  }
  const size_t length = static_cast<size_t>(end - name);
  for (const Name& known : kNames) {
    if (strlen(known.name) != length || memcmp(known.name, name, length) != 0) continue;
    field->type = known.type;
    *at = end + 1;
    return true;
  }
  return fail(error, AffinityFormatError::kLongName, name, length);
}

// What follows a '%': [0][.][width]type, where 0 needs the dot and the dot a width.
bool take_field(const char** from, Field* field, AffinityFormatError* error) {
  const char* at = *from;
  if (*at == '0') {
    field->zeros = true;
    ++at;
    if (*at != '.') return fail(error, AffinityFormatError::kZeroWithoutDot, at);
  }
  if (*at == '.') {
    field->right = true;
    ++at;
    if (*at < '1' || *at > '9') return fail(error, AffinityFormatError::kNoSize, at);
  }
  if (base::is_digit(*at)) {
    base::TextReader digits(at);
    if (!digits.take_digits(&field->width)) {  // more digits than any text will have characters
      field->width = INT64_MAX;
      while (base::is_digit(*at)) ++at;
    } else {
      at = digits.position();
    }
  }
  if (*at == '{') {
    ++at;
    if (!take_long_name(&at, field, error)) return false;
  } else {
    if (*at == '\0' || strchr("tTLnNaHPiA", *at) == nullptr) {
      return fail(error, AffinityFormatError::kType, at);
    }
    field->type = *at++;
  }
  *from = at;
  return true;
}

// Strings are never cut, and zeros are for numbers only.
void put_string(Text* text, const Field& field, const char* string, size_t length) {
  const uint64_t fill = field.width > length ? field.width - length : 0;
  if (field.right) text->pad(' ', fill);
  text->put(string, length);
  if (!field.right) text->pad(' ', fill);
}

struct Digits {
  char text[24];
  size_t length = 0;
  void number(uint64_t value, unsigned base) {
    char reversed[24];
    size_t n = 0;
    do reversed[n++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (n != 0) text[length++] = reversed[--n];
  }
};

// Zeros go between the sign or the 0x and the digits.
void put_number(Text* text, const Field& field, const char* prefix, uint64_t value, unsigned base) {
  Digits digits;
  digits.number(value, base);
  const size_t length = strlen(prefix) + digits.length;
  const uint64_t fill = field.width > length ? field.width - length : 0;
  if (field.right && !field.zeros) text->pad(' ', fill);
  text->put(prefix, strlen(prefix));
  if (field.zeros) text->pad('0', fill);
  text->put(digits.text, digits.length);
  if (!field.right) text->pad(' ', fill);
}

void put_signed(Text* text, const Field& field, int64_t value) {
  const uint64_t magnitude =
      value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  put_number(text, field, value < 0 ? "-" : "", magnitude, 10);
}

size_t put_cpus(Text* text, std::span<const CpuRange> cpus) {
  Text counter(nullptr, 0);
  Text* to = text != nullptr ? text : &counter;
  bool first = true;
  for (const CpuRange& range : cpus) {
    Digits digits;
    if (!first) to->put(',');
    first = false;
    digits.number(range.first, 10);
    if (range.count > 1) {
      digits.text[digits.length++] = '-';
      digits.number(range.first + range.count - 1, 10);
    }
    to->put(digits.text, digits.length);
  }
  return counter.finish();
}

void put_field(Text* text, const Field& field, const AffinityValues& values) {
  switch (field.type) {
    case 't':
      return put_signed(text, field, values.team_num);
    case 'T':
      return put_signed(text, field, values.num_teams);
    case 'L':
      return put_signed(text, field, values.nesting_level);
    case 'n':
      return put_signed(text, field, values.thread_num);
    case 'N':
      return put_signed(text, field, values.num_threads);
    case 'a':
      return put_signed(text, field, values.ancestor_tnum);
    case 'P':
      return put_signed(text, field, values.process_id);
    case 'i':
      return put_number(text, field, "0x", values.native_thread_id, 16);
    case 'H':
      return put_string(text, field, values.host, strlen(values.host));
    default:
      break;
  }
  const size_t length = put_cpus(nullptr, values.cpus);
  const uint64_t fill = field.width > length ? field.width - length : 0;
  if (field.right) text->pad(' ', fill);
  put_cpus(text, values.cpus);
  if (!field.right) text->pad(' ', fill);
}

// affinity-format-var: the formats ever set, newest first, and the one in force.
struct KeptFormat {
  const KeptFormat* next;
  char text[1];
};
constinit std::atomic<const KeptFormat*> kept_formats{nullptr};
constinit std::atomic<const char*> format_in_force{nullptr};

const char* find_kept(const KeptFormat* from, const char* format, size_t length) {
  for (; from != nullptr; from = from->next) {
    if (strlen(from->text) == length && memcmp(from->text, format, length) == 0) return from->text;
  }
  return nullptr;
}

const char* keep_format(const char* format, size_t length) {
  // acquire: pairs with the release below, the text is seen.
  const KeptFormat* head = kept_formats.load(std::memory_order_acquire);
  if (const char* known = find_kept(head, format, length)) return known;
  const size_t bytes = sizeof(KeptFormat) + length;
  auto* made = static_cast<KeptFormat*>(base::map_pages(bytes));
  if (made == nullptr) {
    base::say("out of memory: the affinity format stays what it was");
    return nullptr;
  }
  memcpy(made->text, format, length);
  do made->next = head;
  while (!kept_formats.compare_exchange_weak(head, made, std::memory_order_release,
                                             std::memory_order_acquire));
  return made->text;
}

}  // namespace

size_t expand_affinity_format(const char* format, const AffinityValues& values, char* buffer,
                              size_t size, AffinityFormatError* error) {
  *error = {};
  Text text(buffer, size);
  for (const char* at = format; *at != '\0';) {
    if (*at != '%' || at[1] == '%') {
      at += *at == '%';
      text.put(*at++);
      continue;
    }
    ++at;
    Field field;
    if (!take_field(&at, &field, error)) break;
    put_field(&text, field, values);
  }
  return text.finish();
}

size_t expand_affinity_format(const char* format, const AffinityValues& values, char* buffer,
                              size_t size) {
  AffinityFormatError error;
  const size_t length = expand_affinity_format(format, values, buffer, size, &error);
  const int name_length = static_cast<int>(error.length < 200 ? error.length : 200);
  switch (error.kind) {
    case AffinityFormatError::kNone:
      break;
    case AffinityFormatError::kZeroWithoutDot:
      base::gomp_fatal("leading zero not followed by dot in affinity format");
    case AffinityFormatError::kNoSize:
      base::gomp_fatal("leading zero or right justification in affinity format requires size");
    case AffinityFormatError::kLongName:
      base::gomp_fatal("unsupported long type name '%.*s' in affinity format", name_length,
                       error.at);
    case AffinityFormatError::kUnterminated:
      base::gomp_fatal("unterminated long type name '%.*s' in affinity format", name_length,
                       error.at);
    case AffinityFormatError::kType:
      base::gomp_fatal("unsupported type %c in affinity format", *error.at);
  }
  return length;
}

void display_affinity(const char* format, const AffinityValues& values) {
  char line[512];
  const size_t length = expand_affinity_format(format, values, line, sizeof line);
  char* text = line;
  const size_t bytes = length + 2;
  if (bytes > sizeof line) {
    text = bytes > length ? static_cast<char*>(base::map_pages(bytes)) : nullptr;
    if (text == nullptr) {
      base::say("out of memory: an affinity line of %zu characters is left out", length);
      return;
    }
    expand_affinity_format(format, values, text, bytes);
  }
  text[length] = '\n';
  base::write_error_text(text, length + 1);
  if (text != line) base::unmap_pages(text, bytes);
}

void fill_process_values(AffinityValues* values, char* host) {
  const int saved = errno;
  if (gethostname(host, kHostMax) != 0) host[0] = '\0';
  host[kHostMax - 1] = '\0';
  errno = saved;
  values->host = host;
  values->process_id = getpid();
}

const char* affinity_format() {
  // acquire: whoever sees the pointer sees the text behind it.
  const char* set = format_in_force.load(std::memory_order_acquire);
  return set != nullptr ? set : process_icvs().affinity_format;
}

void set_affinity_format(const char* format, size_t length) {
  const char* kept = keep_format(format, length);
  if (kept != nullptr) format_in_force.store(kept, std::memory_order_release);
}

size_t get_affinity_format(char* buffer, size_t size) {
  const char* format = affinity_format();
  const size_t length = strlen(format);
  if (size != 0) {
    const size_t copied = length < size ? length : size - 1;
    memcpy(buffer, format, copied);
    buffer[copied] = '\0';
  }
  return length;
}

}  // namespace bosk::omp
