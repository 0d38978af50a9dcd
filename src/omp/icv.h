// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Internal control variables (OpenMP 5.2 §2): of a data environment, and of the process.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::topology {
struct ProcessCpus;
}

namespace bosk::omp {

class PlaceList;

/// Loop schedule kinds, numbered as omp_sched_t; kMonotonic is or'ed in.
enum Schedule : uint32_t {
  kScheduleStatic = 1,
  kScheduleDynamic = 2,
  kScheduleGuided = 3,
  kScheduleAuto = 4,
  kScheduleMonotonic = 0x80000000u,
};

/// omp_proc_bind_t.
enum class Bind : uint8_t { kFalse = 0, kTrue = 1, kPrimary = 2, kClose = 3, kSpread = 4 };

constexpr int kSupportedActiveLevels = 255;

/// The ICVs of one data environment. Every implicit and explicit task has its own copy, made when
/// it is created; plain data, copied with `=`. 24 bytes.
struct DataIcvs {
  uint32_t nthreads;          ///< nthreads-var: entry of the list for the next parallel region
  uint32_t thread_limit;      ///< thread-limit-var; UINT32_MAX: none
  uint32_t run_sched;         ///< run-sched-var: Schedule, perhaps with kScheduleMonotonic
  int32_t run_sched_chunk;    ///< its chunk; 0: default
  int32_t default_device;     ///< default-device-var
  uint8_t max_active_levels;  ///< max-active-levels-var
  bool dynamic;               ///< dyn-var
  Bind bind;                  ///< bind-var: entry of the list for the next parallel region
  uint8_t allocator = 0;      ///< def-allocator-var, as omp/default_allocator.h numbers them
};

enum class WaitPolicy : uint8_t { kUnset, kActive, kPassive };
enum class TargetOffload : uint8_t { kDefault, kMandatory, kDisabled };
enum class DisplayEnv : uint8_t { kFalse, kTrue, kVerbose };

/// A list per nesting level, as OMP_NUM_THREADS and OMP_PROC_BIND give it. `count` 0: not given.
template <typename T>
struct LevelList {
  T* at = nullptr;
  uint32_t count = 0;
};

/// What the environment said, once per process. Read-only after process_icvs() has loaded it.
struct ProcessIcvs {
  DataIcvs initial;              ///< for every initial thread
  LevelList<uint32_t> nthreads;  ///< OMP_NUM_THREADS, outermost level first; icvs_for_level()
  LevelList<Bind> bind;          ///< OMP_PROC_BIND
  size_t stack_size;             ///< OMP_STACKSIZE in bytes; 0: not given (RLIMIT_STACK decides)
  uint64_t spin_count;           ///< GOMP_SPINCOUNT; UINT64_MAX: infinite
  bool spin_count_given;
  WaitPolicy wait_policy;
  TargetOffload target_offload;
  bool cancellation;
  bool display_affinity;
  int32_t max_task_priority;
  uint32_t num_teams;                 ///< 0: unset
  uint32_t teams_thread_limit;        ///< 0: unset
  uintptr_t default_allocator;        ///< OMP_ALLOCATOR: an omp_allocator_handle_t
  const char* allocator_text = "";    ///< the same, as OMP_DISPLAY_ENV shows it
  int32_t debug;                      ///< GOMP_DEBUG
  DisplayEnv display_env;             ///< OMP_DISPLAY_ENV
  uint32_t available_cpus;            ///< omp_get_num_procs(): CPUs of the mask at the first call
  const topology::ProcessCpus* cpus;  ///< that mask; never null
  const PlaceList* all_cpus;          ///< one place that holds all of it: %A of an unbound thread
  const PlaceList* places;            ///< never null; empty unless binding is on
  const char* affinity_format;        ///< OMP_AFFINITY_FORMAT, or the default
};

static_assert(sizeof(DataIcvs) == 24);

// ---- What the omp_set_* and omp_get_* routines do to the ICVs of the calling task.

inline void set_num_threads(DataIcvs* icvs, int n) {
  icvs->nthreads = n > 0 ? static_cast<uint32_t>(n) : 1;
}

inline void set_max_active_levels(DataIcvs* icvs, int levels) {
  if (levels < 0) return;
  icvs->max_active_levels =
      static_cast<uint8_t>(levels < kSupportedActiveLevels ? levels : kSupportedActiveLevels);
}

/// omp_set_nested, as libgomp 12 maps it to levels: on means all that are supported, off at most
/// one.
inline void set_nested(DataIcvs* icvs, bool on) {
  if (on) {
    icvs->max_active_levels = kSupportedActiveLevels;
  } else if (icvs->max_active_levels > 1) {
    icvs->max_active_levels = 1;
  }
}

inline bool nested(const DataIcvs& icvs, uint32_t active_level) {
  return icvs.max_active_levels > 1 && icvs.max_active_levels > active_level;
}

/// `kind` is an omp_sched_t, perhaps with kScheduleMonotonic. An unknown kind changes nothing; a
/// chunk below 1 is the kind's default; auto has no chunk and leaves the one that is there.
inline void set_schedule(DataIcvs* icvs, uint32_t kind, int chunk) {
  const uint32_t bare = kind & ~kScheduleMonotonic;
  if (bare < kScheduleStatic || bare > kScheduleAuto) return;
  icvs->run_sched = kind;
  if (bare == kScheduleAuto) return;
  icvs->run_sched_chunk = chunk >= 1 ? chunk : bare == kScheduleStatic ? 0 : 1;
}

/// omp_invalid_device of GCC's omp.h.
constexpr int32_t kInvalidDevice = -4;

/// Any other negative number is the host (as in libgomp 12), which is number 0.
inline void set_default_device(DataIcvs* icvs, int device) {
  icvs->default_device = device > 0 || device == kInvalidDevice ? device : 0;
}

/// For routines that return int: UINT32_MAX and the like become INT_MAX.
inline int clamped_int(uint32_t value) {
  return value > static_cast<uint32_t>(INT32_MAX) ? INT32_MAX : static_cast<int>(value);
}

// ---- What a parallel region does to them.

/// The ICVs of the implicit tasks of a region at nesting level `level` (1: outermost), opened by a
/// task that has `opener`: the next entries of the lists; past the end of a list the opener's own
/// value.
inline DataIcvs icvs_for_level(const DataIcvs& opener, uint32_t level, const ProcessIcvs& process) {
  DataIcvs icvs = opener;
  if (level < process.nthreads.count) icvs.nthreads = process.nthreads.at[level];
  if (opener.bind != Bind::kFalse && level < process.bind.count) icvs.bind = process.bind.at[level];
  return icvs;
}

struct TeamRequest {
  uint32_t num_threads_clause;  ///< 0: no clause
  uint32_t sections;            ///< of a `parallel sections`; 0: another construct
  uint32_t active_level;        ///< active regions around the construct
  uint32_t threads_busy;  ///< threads of the contention group that are in use, the opener's too
};

/// How many threads dyn-var leaves: CPUs that are available and asked for, less the load of the
/// machine; at least 1. Reads the load average.
uint32_t dynamic_thread_limit(uint32_t nthreads, uint32_t available_cpus);
/// The same for a known load.
uint32_t dynamic_thread_limit_at(uint32_t nthreads, uint32_t available_cpus, double load);

/// The size of the team for a region, at least 1 (OpenMP 5.2 §10.1.1, with libgomp's choices).
inline uint32_t resolve_team_size(const TeamRequest& request, const DataIcvs& icvs,
                                  const ProcessIcvs& process) {
  if (request.num_threads_clause == 1 || request.active_level >= icvs.max_active_levels) return 1;
  uint32_t n = request.num_threads_clause != 0 ? request.num_threads_clause : icvs.nthreads;
  if (icvs.dynamic) {
    const uint32_t most = dynamic_thread_limit(icvs.nthreads, process.available_cpus);
    if (n > most) n = most;
    if (request.sections != 0 && n > request.sections) n = request.sections;
  }
  if (icvs.thread_limit != UINT32_MAX) {
    const uint32_t busy = request.threads_busy != 0 ? request.threads_busy : 1;
    // The opener is counted as busy and as a member.
    const uint32_t left = icvs.thread_limit >= busy ? icvs.thread_limit - busy + 1 : 1;
    if (n > left) n = left;
  }
  return n != 0 ? n : 1;
}

}  // namespace bosk::omp
