// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads OMP_PLACES and GOMP_CPU_AFFINITY.
#include <stdlib.h>

#include "base/parse.h"
#include "omp/places.h"

namespace bosk::omp {
namespace {

using base::MappedArray;
using base::MessageLog;
using base::TextReader;
using topology::ProcessCpus;

constexpr const char* kInvalidPlaces = "Invalid value for environment variable OMP_PLACES";
// The misspelt word is libgomp's: scripts look for its texts.
constexpr const char* kInvalidAffinity = "Invalid value for enviroment variable GOMP_CPU_AFFINITY";
constexpr const char* kNoMemory = "Out of memory trying to allocate places list";
constexpr const char* kOutOfRange = "Logical CPU number %llu out of range";
constexpr const char* kStepOutOfRange = "Logical CPU number %llu+%lld out of range";

// ---- The form: `res` and `place` of the grammar, with numbers but without meaning.

struct Resource {
  bool exclude;
  uint64_t first;
  uint64_t length;
  int64_t stride;
};

struct Interval {
  bool exclude;
  uint64_t length;
  int64_t stride;
};

// [':' length [':' stride]]
bool take_length_and_stride(TextReader* reader, uint64_t* length, int64_t* stride) {
  *length = 1;
  *stride = 1;
  if (!reader->take(':')) return true;
  if (!reader->take_unsigned(length) || *length == 0) return false;
  return !reader->take(':') || reader->take_signed(stride);
}

bool take_resource(TextReader* reader, Resource* res) {
  res->exclude = reader->take('!');
  if (!reader->take_unsigned(&res->first)) return false;
  if (!res->exclude) return take_length_and_stride(reader, &res->length, &res->stride);
  res->length = 1;
  res->stride = 1;
  return true;
}

// ---- The meaning: one place is put together as a bit mask, then kept as ranges.

class ListBuilder {
 public:
  ListBuilder(const ProcessCpus& allowed, PlaceList* places, MessageLog* log)
      : places_(places), log_(log), limit_(cpu_number_limit(allowed)) {}
  ~ListBuilder() {
    mask_.release();
    excluded_.release();
  }
  ListBuilder(const ListBuilder&) = delete;
  ListBuilder& operator=(const ListBuilder&) = delete;

  /// Reads all of the list. False: it is of no use, and the log says why (but for the last line).
  bool build(TextReader reader) {
    do {
      if (!take_interval(&reader)) return false;
    } while (reader.take(','));
    return true;
  }

 private:
  bool out_of_memory() {
    log_->add("%s", kNoMemory);
    return false;
  }

  bool include(const Resource& res) {
    uint64_t cpu = res.first;
    for (uint64_t left = res.length;; left--) {
      if (cpu >= limit_) {
        log_->add(kOutOfRange, static_cast<unsigned long long>(cpu));
        return false;
      }
      mask_[static_cast<uint32_t>(cpu / 64)] |= uint64_t{1} << (cpu % 64);
      if (left == 1 || res.stride == 0) return true;
      const uint64_t next = cpu + static_cast<uint64_t>(res.stride);
      if ((res.stride < 0) != (next < cpu)) {
        log_->add(kStepOutOfRange, static_cast<unsigned long long>(cpu),
                  static_cast<long long>(res.stride));
        return false;
      }
      cpu = next;
    }
  }

  // Exclusions count after all additions, wherever they stand.
  bool exclude() {
    for (uint32_t i = 0; i < excluded_.size(); i++) {
      const uint64_t cpu = excluded_[i];
      if (cpu >= limit_) {
        log_->add(kOutOfRange, static_cast<unsigned long long>(cpu));
        return false;
      }
      uint64_t& word = mask_[static_cast<uint32_t>(cpu / 64)];
      const uint64_t bit = uint64_t{1} << (cpu % 64);
      if ((word & bit) == 0) {
        log_->add("Logical CPU %llu to be removed is not in the set",
                  static_cast<unsigned long long>(cpu));
        return false;
      }
      word &= ~bit;
    }
    return true;
  }

  // A place in braces or a bare number, appended to the list.
  bool take_place(TextReader* reader) {
    mask_.clear();
    excluded_.clear();
    if (!mask_.resize(limit_ / 64)) return out_of_memory();
    Resource res;
    if (reader->take('{')) {
      do {
        if (!take_resource(reader, &res)) return false;
        if (res.exclude) {
          if (!excluded_.push(res.first)) return out_of_memory();
        } else if (!include(res)) {
          return false;
        }
      } while (reader->take(','));
      if (!reader->take('}') || !exclude()) return false;
    } else {
      res = {false, 0, 1, 1};
      if (!reader->take_unsigned(&res.first) || !include(res)) return false;
    }
    if (!places_->start_place()) return out_of_memory();
    for (uint32_t word = 0; word < mask_.size(); word++) {
      for (uint64_t bits = mask_[word]; bits != 0; bits &= bits - 1) {
        const uint32_t cpu = word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
        if (!places_->add_cpu(cpu)) return out_of_memory();
      }
    }
    return true;
  }

  // The place before, moved by `stride` CPU numbers.
  bool append_moved(int64_t stride) {
    const uint32_t from = places_->count() - 1;
    if (!places_->start_place()) return out_of_memory();
    const uint32_t n_ranges = static_cast<uint32_t>(places_->ranges(from).size());
    for (uint32_t i = 0; i < n_ranges; i++) {
      const CpuRange range = places_->ranges(from)[i];  // by value: the array may move
      const int64_t last = int64_t{range.first} + range.count - 1;
      const bool below = stride < 0 && stride < -int64_t{range.first};
      const bool above = stride > 0 && stride >= int64_t{limit_} - last;
      if (below || above) {
        int64_t cpu = range.first;
        // The first CPU of the range that would leave; all of them may.
        if (above && stride < int64_t{limit_} - cpu) cpu = int64_t{limit_} - stride;
        log_->add(kStepOutOfRange, static_cast<unsigned long long>(cpu),
                  static_cast<long long>(stride));
        return false;
      }
      const uint32_t first = static_cast<uint32_t>(range.first + stride);
      if (!places_->add_range(first, range.count)) return out_of_memory();
    }
    return true;
  }

  // Takes the last place off the list, and with it the first that equals it.
  bool remove_last_and_its_like() {
    const uint32_t last = places_->count() - 1;
    for (uint32_t i = 0; i < last; i++) {
      if (!places_->same_cpus(i, last)) continue;
      places_->drop_last_place();
      places_->remove_place(i);
      return true;
    }
    log_->add("Trying to remove a non-existing place from list of places");
    return false;
  }

  bool take_interval(TextReader* reader) {
    const bool remove = reader->take('!');
    if (!take_place(reader)) return false;
    if (remove) return remove_last_and_its_like();
    uint64_t length;
    int64_t stride;
    if (!take_length_and_stride(reader, &length, &stride)) return false;
    for (; length > 1; length--) {
      if (!append_moved(stride)) return false;
    }
    return true;
  }

  PlaceList* places_;
  MessageLog* log_;
  uint32_t limit_;
  MappedArray<uint64_t> mask_;
  MappedArray<uint64_t> excluded_;
};

// The whole list has the right form, with no more places than are accepted?
bool check_form(TextReader reader) {
  uint64_t places = 0;
  do {
    const bool remove = reader.take('!');
    Resource res;
    if (reader.take('{')) {
      do {
        if (!take_resource(&reader, &res)) return false;
      } while (reader.take(','));
      if (!reader.take('}')) return false;
    } else if (!reader.take_unsigned(&res.first)) {
      return false;
    }
    uint64_t length = 1;
    int64_t stride;
    if (!remove && !take_length_and_stride(&reader, &length, &stride)) return false;
    if (length > PlaceList::kMostPlaces - places) return false;
    places += length;
  } while (reader.take(','));
  return reader.at_end();
}

// Moves what is usable of `wide` to `places`. False: nothing is.
bool keep_allowed(const PlaceList& wide, const ProcessCpus& allowed, PlaceList* places,
                  MessageLog* log) {
  for (uint32_t i = 0; i < wide.count(); i++) {
    bool started = false;
    for (const CpuRange& range : wide.ranges(i)) {
      const uint32_t end = range.first + range.count;
      for (uint32_t cpu = allowed.next(range.first); cpu < end; cpu = allowed.next(cpu + 1)) {
        if ((!started && !places->start_place()) || !places->add_cpu(cpu)) {
          log->add("%s", kNoMemory);
          return false;
        }
        started = true;
      }
    }
  }
  if (places->count() == 0) {
    log->add("None of the places contain usable logical CPUs");
    return false;
  }
  if (places->count() != wide.count()) {
    log->add(
        "Number of places reduced from %u to %u because some places didn't contain any usable "
        "logical CPUs",
        wide.count(), places->count());
  }
  return true;
}

bool take_kind(TextReader* reader, PlaceKind* kind) {
  constexpr const char* kNames[] = {"threads", "cores", "sockets", "ll_caches", "numa_domains"};
  for (int i = 0; i < 5; i++) {
    if (!reader->take_word(kNames[i])) continue;
    *kind = static_cast<PlaceKind>(i);
    return true;
  }
  return false;
}

// What follows an abstract name: ['(' n ')'] and the end.
bool take_kind_count(TextReader* reader, uint64_t* most) {
  *most = PlaceList::kMostPlaces;
  if (reader->take('(')) {
    if (!reader->take_unsigned(most) || *most == 0 || !reader->take(')')) return false;
    if (*most > PlaceList::kMostPlaces) *most = PlaceList::kMostPlaces;
  }
  return reader->at_end();
}

bool parse_abstract(PlaceKind kind, TextReader reader, const ProcessCpus& allowed,
                    const PlaceSource& source, bool syntax_only, PlaceList* places,
                    MessageLog* log) {
  uint64_t most;
  if (!take_kind_count(&reader, &most)) {
    log->add("%s", kInvalidPlaces);
    return false;
  }
  if (syntax_only) return true;
  if (source.list(source.self, kind, allowed, static_cast<uint32_t>(most), places) &&
      places->count() != 0) {
    return true;
  }
  places->release();
  log->add("Error reading core/socket topology");
  return false;
}

struct AffinityItem {
  uint64_t first;
  uint64_t last;
  uint64_t stride;
};

// As C writes them, also 0x1f and 017: so libgomp reads this variable, unlike all others.
bool take_c_number(TextReader* reader, uint64_t* value) {
  if (reader->peek() == '-') return false;
  char* end;
  *value = strtoull(reader->position(), &end, 0);
  if (end == reader->position()) return false;
  *reader = TextReader(end);
  return true;
}

// n ['-' m [':' stride]]. Blanks separate items, so none may stand before '-' and ':'.
bool take_affinity_item(TextReader* reader, AffinityItem* item) {
  if (!take_c_number(reader, &item->first) || item->first >= PlaceList::kMostPlaces) return false;
  item->last = item->first;
  item->stride = 1;
  if (*reader->position() != '-') return true;
  reader->take('-');
  if (!take_c_number(reader, &item->last) || item->last < item->first) return false;
  if (item->last >= PlaceList::kMostPlaces) return false;
  if (*reader->position() != ':') return true;
  reader->take(':');
  return take_c_number(reader, &item->stride) && item->stride != 0;
}

// `places` null: looks at the form only.
bool take_affinity_list(TextReader reader, PlaceList* places, bool* memory_left) {
  uint64_t total = 0;
  while (true) {
    AffinityItem item;
    if (!take_affinity_item(&reader, &item)) return false;
    if (item.stride > PlaceList::kMostPlaces) item.stride = PlaceList::kMostPlaces;
    total += (item.last - item.first) / item.stride + 1;
    if (total > PlaceList::kMostPlaces) return false;
    for (uint64_t cpu = item.first; places != nullptr && cpu <= item.last; cpu += item.stride) {
      if (!places->start_place() || !places->add_cpu(static_cast<uint32_t>(cpu))) {
        *memory_left = false;
        return false;
      }
    }
    const char* end = reader.position();
    if (reader.at_end()) return true;
    if (!reader.take(',') && reader.position() == end) return false;
  }
}

}  // namespace

uint32_t cpu_number_limit(const ProcessCpus& allowed) {
  uint32_t words = 1;
  for (uint32_t i = 0; i < allowed.n_words; i++) {
    if (allowed.words()[i] != 0) words = i + 1;
  }
  return words * 64;
}

bool parse_places(const char* text, const ProcessCpus& allowed, const PlaceSource& source,
                  bool syntax_only, PlaceList* places, MessageLog* log) {
  TextReader reader(text);
  PlaceKind kind;
  if (take_kind(&reader, &kind)) {
    return parse_abstract(kind, reader, allowed, source, syntax_only, places, log);
  }
  // The form first: a list that is malformed further on is not complained about in parts.
  const bool well_formed = check_form(reader);
  if (well_formed && syntax_only) return true;
  PlaceList wide;
  bool good = well_formed && ListBuilder(allowed, &wide, log).build(reader);
  if (good && wide.count() == 0) {
    log->add("All places have been removed");
    good = false;
  }
  good = good && keep_allowed(wide, allowed, places, log);
  wide.release();
  if (!good) {
    places->release();
    log->add("%s", kInvalidPlaces);
  }
  return good;
}

bool parse_cpu_affinity(const char* text, const ProcessCpus& allowed, bool syntax_only,
                        PlaceList* places, MessageLog* log) {
  bool memory_left = true;
  if (!take_affinity_list(TextReader(text), nullptr, &memory_left)) {
    log->add("%s", kInvalidAffinity);
    return false;
  }
  if (syntax_only) return true;
  PlaceList wide;
  bool good = take_affinity_list(TextReader(text), &wide, &memory_left);
  if (!memory_left) log->add("%s", kNoMemory);
  good = good && keep_allowed(wide, allowed, places, log);
  wide.release();
  if (!good) places->release();
  return good;
}

bool default_places(const ProcessCpus& allowed, const PlaceSource& source, PlaceList* places) {
  if (source.list(source.self, PlaceKind::kThreads, allowed, PlaceList::kMostPlaces, places) &&
      places->count() != 0) {
    return true;
  }
  places->release();
  for (uint32_t cpu = allowed.next(0); cpu != ProcessCpus::kNoCpu; cpu = allowed.next(cpu + 1)) {
    if (!places->start_place() || !places->add_cpu(cpu)) return false;
  }
  return true;
}

}  // namespace bosk::omp
