// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenMP places: the list, OMP_PLACES and GOMP_CPU_AFFINITY, and how a team is laid over it.
#pragma once

#include <stdint.h>

#include <span>

#include "base/mapped_array.h"
#include "base/message_log.h"
#include "omp/icv.h"
#include "topology/process_cpus.h"

namespace bosk::omp {

/// CPUs first … first + count - 1.
struct CpuRange {
  uint32_t first;
  uint32_t count;
  bool operator==(const CpuRange&) const = default;
};

/// One place: CPU numbers as ascending ranges that neither overlap nor touch.
struct Place {
  uint32_t first_range;  ///< position in PlaceList::ranges
  uint32_t n_ranges;
  uint32_t n_cpus;
};

/// The places of the process in the order of the list. Ranges instead of bit masks: a place of any
/// machine is a few words, whatever its CPU numbers are. Plain data; a copy is a second name.
class PlaceList {
 public:
  /// Places and CPUs that are accepted at most; libgomp's limit too.
  static constexpr uint32_t kMostPlaces = 65'536;
  /// `{0:32768:2}:65536:0` would be 16 GiB of ranges; no machine needs that many.
  static constexpr uint32_t kMostRanges = 1u << 22;

  uint32_t count() const { return places_.size(); }
  uint32_t n_cpus(uint32_t place) const { return places_[place].n_cpus; }
  std::span<const CpuRange> ranges(uint32_t place) const {
    return {ranges_.data() + places_[place].first_range, places_[place].n_ranges};
  }
  bool contains(uint32_t place, uint32_t cpu) const;
  /// Writes the n_cpus(place) CPU numbers, ascending (omp_get_place_proc_ids).
  void cpu_numbers(uint32_t place, int* numbers) const;
  /// Sets the place's bits in a zeroed mask of n_words 64-bit words, as sched_setaffinity wants it.
  /// CPUs beyond the mask are left out.
  void fill_mask(uint32_t place, uint64_t* words, uint32_t n_words) const;

  // ---- for those who build one. False: out of memory.
  bool start_place();
  /// Adds CPUs to the place that was started last; `first` is above every CPU it has.
  bool add_range(uint32_t first, uint32_t count);
  bool add_cpu(uint32_t cpu) { return add_range(cpu, 1); }
  void drop_last_place();
  void remove_place(uint32_t place) { places_.remove(place); }
  bool same_cpus(uint32_t a, uint32_t b) const;
  void release();

 private:
  base::MappedArray<Place> places_;
  base::MappedArray<CpuRange> ranges_;
};

/// The abstract names of OMP_PLACES.
enum class PlaceKind : uint8_t { kThreads, kCores, kSockets, kLlCaches, kNumaDomains };

/// Where the abstract names come from.
struct PlaceSource {
  /// Appends at most `most` places of one kind, in the machine's order, with CPUs of `allowed` only
  /// and none that is empty. False: the machine does not tell (or memory is out).
  bool (*list)(const void* self, PlaceKind kind, const topology::ProcessCpus& allowed,
               uint32_t most, PlaceList* places);
  const void* self;
};

/// CPU numbers from this one on cannot be named in a place: the mask's last word ends there.
uint32_t cpu_number_limit(const topology::ProcessCpus& allowed);

/// Reads the value of OMP_PLACES. Only CPUs of `allowed` stay. False: the value is of no use; `log`
/// says why in libgomp's words. `syntax_only` (binding is off): looks at the form alone, `places`
/// stays empty.
bool parse_places(const char* text, const topology::ProcessCpus& allowed, const PlaceSource& source,
                  bool syntax_only, PlaceList* places, base::MessageLog* log);

/// Reads the value of GOMP_CPU_AFFINITY: one place per CPU named. As parse_places().
bool parse_cpu_affinity(const char* text, const topology::ProcessCpus& allowed, bool syntax_only,
                        PlaceList* places, base::MessageLog* log);

/// The places if binding is asked for and no list is given: one per hardware thread, those of a
/// core side by side. Never fails but for memory: without a machine, one per CPU in order of
/// number.
bool default_places(const topology::ProcessCpus& allowed, const PlaceSource& source,
                    PlaceList* places);

/// Where one member of a team goes: its place, and the part of the place list its own regions get.
struct MemberPlace {
  uint32_t place;
  uint32_t partition_first;
  uint32_t partition_count;
  bool operator==(const MemberPlace&) const = default;
};

/// How a team is laid over its opener's partition (OpenMP 5.2 §10.1.3). of(i) is closed-form, so
/// that a ghost needs no entry in any array. `place` lies in the partition; an empty partition
/// binds nobody.
class PlaceLayout {
 public:
  PlaceLayout(Bind bind, uint32_t partition_first, uint32_t partition_count, uint32_t place,
              uint32_t members);
  MemberPlace of(uint32_t member) const;

 private:
  uint32_t wrapped(uint64_t steps) const;
  MemberPlace spread(uint32_t member) const;

  Bind bind_;
  uint32_t first_;  ///< the opener's partition
  uint32_t count_;
  uint32_t place_;  ///< the opener's place
  uint32_t members_;
  uint32_t share_;  ///< members per place, or (spread over enough places) places per member
  uint32_t rest_;   ///< what the shares leave over
};

/// The binding of a region: its proc_bind clause (0: none) counts only while binding is on.
inline Bind region_bind(Bind bind_var, uint32_t clause) {
  return clause == 0 || clause > 4 || bind_var == Bind::kFalse ? bind_var
                                                               : static_cast<Bind>(clause);
}

}  // namespace bosk::omp
