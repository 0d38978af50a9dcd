// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What has changed between two reports.
#pragma once

#include <string>
#include <vector>

#include "bosk/report/process_report.h"

namespace bosk::tools {

/// All processes of a report in sum: shares and regions by what they are called; from the first to the last, `elapsed` is the longest.
ProcessReport sum_of(const std::vector<ProcessReport>& reports);

/// A sentence, then CPU time by what became of it, then the regions that have changed most.
std::string report_difference(const ProcessReport& before, const ProcessReport& after,
                              const std::string& before_name, const std::string& after_name);

}  // namespace bosk::tools
