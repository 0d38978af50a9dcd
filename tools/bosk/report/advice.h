// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a user could change, and what that would gain, from the figures of one process. docs/report.md says when each is given.
#pragma once

#include <string>
#include <vector>

#include "bosk/report/process_report.h"

namespace bosk::tools {

/// Names in the JSON report, too: kinds are added, never renamed.
enum class AdviceKind {
  kImbalance,
  kBarrier,
  kSmallRegions,
  kSerial,
  kLocks,
  kYields,
  kPolling,
  kBlocked,
  kOtherProcesses,
  kNestedBlas,
  kKernelThreads,
  kActiveWait,
  kPassiveWait,
  kHugePages,
  kPageFaults,
  kMemoryOnOneNode,
};

const char* advice_name(AdviceKind kind);

struct Advice {
  AdviceKind kind = AdviceKind::kImbalance;
  /// Part of the CPUs' time that is lost by it.
  double lost = 0;
  std::string
      cause;  ///< a phrase: "threads that wait for the slowest one in the region at solve.c:42"
  std::string remedy;  ///< a sentence without a full stop
};

/// The most worth first; nothing below one part in twenty.
std::vector<Advice> advice_for(const ProcessReport& report);

}  // namespace bosk::tools
