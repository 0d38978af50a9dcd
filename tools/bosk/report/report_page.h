// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The report as a page of text, at most 40 lines for a process.
#pragma once

#include <string>

#include "bosk/report/process_report.h"

namespace bosk::tools {

std::string report_page(const ProcessReport& report);
/// Its first sentence.
std::string report_verdict(const ProcessReport& report);

}  // namespace bosk::tools
