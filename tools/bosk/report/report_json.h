// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The report as JSON: docs/report.schema.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bosk/report/process_report.h"

namespace bosk::tools {

constexpr int kReportVersion = 1;

/// `learnt`: of the whole run (learn/learn_json.h); null: nothing was.
std::string report_json(const std::vector<ProcessReport>& reports,
                        const nlohmann::ordered_json& learnt);

}  // namespace bosk::tools
