// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the JSON of report_json.h again.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "bosk/report/process_report.h"

namespace bosk::tools {

/// One line that names the file and what is wrong with it.
struct ReportFileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws ReportFileError.
std::vector<ProcessReport> read_report_file(const std::string& name);
/// The same of its text; `name` for what is said of it.
std::vector<ProcessReport> parse_report_file(const std::string& text, const std::string& name);

}  // namespace bosk::tools
