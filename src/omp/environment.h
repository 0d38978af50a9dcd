// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMP_* and GOMP_*: read once per process, whenever the first entry point is called.
#pragma once

#include <stdint.h>

#include "base/message_log.h"
#include "base/publish_once.h"
#include "omp/icv.h"

namespace bosk::omp {

namespace detail {
extern base::PublishOnce<ProcessIcvs> published_icvs;
const ProcessIcvs& load_process_icvs();
}  // namespace detail

/// What the environment said. The first call reads it, tells what was malformed (libgomp's texts;
/// the default stays) and shows it if OMP_DISPLAY_ENV asks; it takes the affinity mask of the
/// calling thread as the process's, so it must come before anything is bound. Nobody waits for
/// anybody; no malloc unless the mask has more than 1,024 CPUs. Later calls are one load.
inline const ProcessIcvs& process_icvs() {
  const ProcessIcvs* known = detail::published_icvs.get();
  return BOSK_LIKELY(known != nullptr) ? *known : detail::load_process_icvs();
}

/// nteams-var and teams-thread-limit-var: of the process, as in libgomp 12. 0: not set.
uint32_t num_teams_icv();
uint32_t teams_thread_limit_icv();
/// omp_set_num_teams, omp_set_teams_thread_limit: negative values change nothing.
void set_num_teams_icv(int n);
void set_teams_thread_limit_icv(int n);

// ---- The grammar of each variable. False (or another kind than kOk): malformed, nothing was
// changed.

enum class ScheduleParse : uint8_t { kOk, kUnknownKind, kBadChunk };

/// `[monotonic:|nonmonotonic:]static|dynamic|guided|auto[,chunk]`.
ScheduleParse parse_schedule(const char* text, uint32_t* schedule, int32_t* chunk);
/// `n {',' n}`, each from 1 to INT_MAX. Levels beyond kMostListed are read but not kept: nesting
/// ends before. On success `list` holds at least one number.
constexpr uint32_t kMostListed = kSupportedActiveLevels + 1;
bool parse_thread_list(const char* text, base::MappedArray<uint32_t>* list);
/// `true`, `false`, or a list of primary, master, close, spread.
bool parse_bind_list(const char* text, base::MappedArray<Bind>* list);
/// `n[B|K|M|G]`, K if there is no unit.
bool parse_stack_size(const char* text, uint64_t* bytes);
/// `n[k|M|G|T]` with decimal multipliers (too large means infinite), or `infinite`, `infinity`.
bool parse_spin_count(const char* text, uint64_t* count);
bool parse_wait_policy(const char* text, WaitPolicy* policy);
bool parse_target_offload(const char* text, TargetOffload* value);
bool parse_display_env(const char* text, DisplayEnv* value);

/// The spin count that wait policy and GOMP_SPINCOUNT amount to.
constexpr uint64_t kSpinsUnset = 300'000;
constexpr uint64_t kSpinsActive = 30'000'000'000;

}  // namespace bosk::omp
