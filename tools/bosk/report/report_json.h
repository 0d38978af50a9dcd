// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The report as JSON: docs/report.schema.json.
#pragma once

#include <string>
#include <vector>

#include "bosk/report/process_report.h"

namespace bosk::tools {

constexpr int kReportVersion = 1;

std::string report_json(const std::vector<ProcessReport>& reports);

}  // namespace bosk::tools
