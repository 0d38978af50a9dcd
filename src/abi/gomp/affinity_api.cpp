// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// omp_* routines of places and affinity, C and Fortran.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi/gomp/export.h"
#include "base/message.h"
#include "omp/routines.h"
#include "omp/thread_place.h"

using namespace bosk::omp;

namespace {

const PlaceList& places() { return *process_icvs().places; }

int place_cpus(int64_t place) {
  if (place < 0 || place >= places().count()) return 0;
  return static_cast<int>(places().n_cpus(static_cast<uint32_t>(place)));
}

template <typename Integer>
void place_cpu_numbers(int64_t place, Integer* numbers) {
  if (place < 0 || place >= places().count()) return;
  for (const CpuRange& range : places().ranges(static_cast<uint32_t>(place))) {
    for (uint32_t i = 0; i < range.count; ++i) {
      const uint32_t number = range.first + i;
      *numbers++ = static_cast<Integer>(number);
    }
  }
}

template <typename Integer>
void partition_places(Integer* numbers) {
  const MemberPlace here = current_place();
  for (uint32_t i = 0; i < here.partition_count; ++i) {
    const uint32_t number = here.partition_first + i;
    numbers[i] = static_cast<Integer>(number);
  }
}

void display(const char* format) {
  AffinityValues values;
  char host[kHostMax];
  fill_thread_values(&values, host);
  display_affinity(affinity_format_or(format), values);
}

size_t capture(const char* format, char* buffer, size_t size) {
  AffinityValues values;
  char host[kHostMax];
  fill_thread_values(&values, host);
  return expand_affinity_format(affinity_format_or(format), values, buffer, size);
}

/// A Fortran CHARACTER as a C string. Formats are short; a long one goes to the heap.
class CString {
 public:
  CString(const char* text, size_t length) {
    if (length >= sizeof fixed_) {
      text_ = static_cast<char*>(malloc(length + 1));
      if (text_ == nullptr)
        bosk::base::gomp_fatal("Out of memory allocating %zu bytes", length + 1);
    }
    memcpy(text_, text, length);
    text_[length] = '\0';
  }
  ~CString() {
    if (text_ != fixed_) free(text_);
  }
  CString(const CString&) = delete;
  CString& operator=(const CString&) = delete;
  const char* text() const { return text_; }

 private:
  char fixed_[256];
  char* text_ = fixed_;
};

/// Fortran's strings have no NUL and are filled up with blanks.
void fill_with_blanks(char* buffer, size_t room, size_t length) {
  if (length < room) memset(buffer + length, ' ', room - length);
}

}  // namespace

BOSK_EXPORT int omp_get_num_places() { return clamped_int(places().count()); }
BOSK_EXPORT int omp_get_place_num() {
  const MemberPlace here = current_place();
  return here.partition_count == 0 ? -1 : static_cast<int>(here.place);
}
BOSK_EXPORT int omp_get_partition_num_places() {
  return clamped_int(current_place().partition_count);
}
BOSK_EXPORT_ALIAS(omp_get_num_places) int omp_get_num_places_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_place_num) int omp_get_place_num_() noexcept;
BOSK_EXPORT_ALIAS(omp_get_partition_num_places) int omp_get_partition_num_places_() noexcept;

BOSK_EXPORT int omp_get_place_num_procs(int place) { return place_cpus(place); }
BOSK_EXPORT int omp_get_place_num_procs_(const int32_t* place) { return place_cpus(*place); }
BOSK_EXPORT int omp_get_place_num_procs_8_(const int64_t* place) { return place_cpus(*place); }

BOSK_EXPORT void omp_get_place_proc_ids(int place, int* ids) { place_cpu_numbers(place, ids); }
BOSK_EXPORT void omp_get_place_proc_ids_(const int32_t* place, int32_t* ids) {
  place_cpu_numbers(*place, ids);
}
BOSK_EXPORT void omp_get_place_proc_ids_8_(const int64_t* place, int64_t* ids) {
  place_cpu_numbers(*place, ids);
}

BOSK_EXPORT void omp_get_partition_place_nums(int* numbers) { partition_places(numbers); }
BOSK_EXPORT void omp_get_partition_place_nums_(int32_t* numbers) { partition_places(numbers); }
BOSK_EXPORT void omp_get_partition_place_nums_8_(int64_t* numbers) { partition_places(numbers); }

BOSK_EXPORT void omp_set_affinity_format(const char* format) {
  set_affinity_format(format, strlen(format));
}
BOSK_EXPORT void omp_set_affinity_format_(const char* format, size_t length) {
  set_affinity_format(format, length);
}

BOSK_EXPORT size_t omp_get_affinity_format(char* buffer, size_t size) {
  return get_affinity_format(buffer, size);
}
BOSK_EXPORT int32_t omp_get_affinity_format_(char* buffer, size_t room) {
  const char* format = affinity_format();
  const size_t length = strlen(format);
  memcpy(buffer, format, length < room ? length : room);
  fill_with_blanks(buffer, room, length);
  return static_cast<int32_t>(length);
}

BOSK_EXPORT void omp_display_affinity(const char* format) { display(format); }
BOSK_EXPORT void omp_display_affinity_(const char* format, size_t length) {
  display(CString(format, length).text());
}

BOSK_EXPORT size_t omp_capture_affinity(char* buffer, size_t size, const char* format) {
  return capture(format, buffer, size);
}
BOSK_EXPORT int32_t omp_capture_affinity_(char* buffer, const char* format, size_t room,
                                          size_t format_length) {
  const CString wanted(format, format_length);
  const size_t length = capture(wanted.text(), buffer, room);
  // The text ends with a NUL where Fortran wants a character more: that one is made again alone.
  if (length >= room && room != 0) {
    char* whole = static_cast<char*>(malloc(length + 1));
    if (whole == nullptr) bosk::base::gomp_fatal("Out of memory allocating %zu bytes", length + 1);
    capture(wanted.text(), whole, length + 1);
    memcpy(buffer, whole, room);
    free(whole);
  }
  fill_with_blanks(buffer, room, length);
  return static_cast<int32_t>(length);
}
