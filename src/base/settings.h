// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk's own environment variables (BOSK_*); those of OpenMP are in omp/environment.h.
#pragma once

#include <stdint.h>

#include "base/load_setting.h"
#include "base/publish_once.h"
#include "base/relation_setting.h"

namespace bosk::base {

enum class IdentityChoice : uint8_t { kAuto, kStrict, kRelaxed, kKernelThread };

/// Loads are measured where nobody has told any: where it matters, everywhere, or never.
enum class LearnLoad : uint8_t { kAuto, kOn, kOff };
/// Do workers have homes on the machine? Auto: where it has several caches or memory nodes.
enum class HomesChoice : uint8_t { kAuto, kOff, kOn };

/// One policy of BOSK_POLICY: `name[:argument][@level]`. Empty text: not given. What the words mean
/// is for the policies to say; here they are only well-formed.
struct PolicyClause {
  static constexpr uint32_t kWordMax = 31;
  static constexpr uint32_t kArgumentMax = 255;
  static constexpr uint32_t kPathMax = 4095;
  char name[kWordMax + 1];
  char argument[kArgumentMax + 1];  ///< of a policy that is built in: kWordMax at most
  char level[kWordMax + 1];
  const char* plugin;  ///< the file that the policy is in; null: it is built in, `name` says which
};

struct PolicyList {
  static constexpr uint32_t kMost = 8;
  PolicyClause clause[kMost];
  uint32_t count;  ///< 0: not given
};

struct Settings {
  PolicyList policy;            ///< BOSK_POLICY
  uint32_t preempt_period_us;   ///< BOSK_PREEMPT_PERIOD in microseconds; 0: preemption is off
  uint32_t redistribute_us;     ///< BOSK_REDISTRIBUTE in microseconds; 0: never
  uint32_t workers;             ///< BOSK_WORKERS; 0: not given (one per CPU of the affinity mask)
  IdentityChoice identity;      ///< BOSK_IDENTITY
  HomesChoice homes;            ///< BOSK_WORKER_HOMES
  bool selftest_fail_identity;  ///< BOSK_SELFTEST=fail-identity
  bool selftest_move_teams;     ///< BOSK_SELFTEST=move-teams
  const char* report;           ///< BOSK_REPORT: a file, "-" (standard error), or null
  const char* report_data;      ///< BOSK_REPORT_DATA: a folder (omp/report_data.h), or null
  const char* topology_xml;     ///< BOSK_TOPOLOGY_XML, or null
  const char* synthetic;        ///< BOSK_SYNTHETIC, or null
  LoadList loads;               ///< BOSK_LOAD
  RelationList relations;       ///< BOSK_RELATION
  bool team_size_by_load;       ///< BOSK_TEAM_SIZE=load
  LearnLoad learn_load;         ///< BOSK_LEARN_LOAD
};

constexpr uint32_t kDefaultPreemptPeriodUs = 10'000;
constexpr uint32_t kLeastPreemptPeriodUs = 100;
constexpr uint32_t kMostPreemptPeriodUs = 10'000'000;
constexpr uint32_t kMostWorkers = 65'536;

namespace detail {
extern PublishOnce<Settings> published_settings;
const Settings& load_settings();
}  // namespace detail

/// What the environment says, read at the first call. May be called at any time by anyone; the
/// first call maps memory, the later ones are one load.
inline const Settings& settings() {
  const Settings* known = detail::published_settings.get();
  return BOSK_LIKELY(known != nullptr) ? *known : detail::load_settings();
}

// The parsers; each leaves its result alone and returns false if the text is malformed.

/// `policy {',' policy}`, policy = `name[:argument][@level]`, words of letters, digits, '-' and
/// '_'. A name with a slash, or that ends in ".so", is a file; it and its argument may hold any
/// character, those that end them (',' '@', in a name also ':') behind a backslash.
bool parse_policy_list(const char* text, PolicyList* list);
/// Gives back what the list keeps of its own.
void release_policy_list(PolicyList* list);
/// `off`, `0`, or a number with us, ms or s (none: ms) from 100us to 10s.
bool parse_period(const char* text, uint32_t* microseconds);
bool parse_identity(const char* text, IdentityChoice* choice);
bool parse_homes(const char* text, HomesChoice* choice);

}  // namespace bosk::base
