// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/report/report_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bosk/report/report_difference.h"
#include "bosk/report/report_file.h"
#include "bosk/report/report_page.h"

namespace bosk::tools {
namespace {

constexpr int kUsage = 2;

std::vector<ProcessReport> read_or_end(const std::string& name) {
  try {
    return read_report_file(name);
  } catch (const ReportFileError& error) {
    fmt::print(stderr, "bosk: {}\n", error.what());
    throw CLI::RuntimeError(kUsage);
  }
}

void show(const std::string& name) {
  const std::vector<ProcessReport> reports = read_or_end(name);
  for (const ProcessReport& report : reports)
    fmt::print("{}{}", &report == reports.data() ? "" : "\n", report_page(report));
}

}  // namespace

void add_report_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("report", "Shows and compares reports of bosk run --report FILE.json.");
  command->require_subcommand(1);
  command->footer(R"(Examples:
  bosk run --report before.json ./app     writes one
  bosk report show before.json            the same page as bosk run --report - prints
  bosk report diff before.json after.json what has changed: times, and which regions)");

  auto shown = std::make_shared<std::string>();
  CLI::App* showing = command->add_subcommand("show", "The page of a report");
  showing->add_option("FILE", *shown, "Of bosk run --report FILE.json")->required();
  showing->callback([shown] { show(*shown); });

  auto compared = std::make_shared<std::vector<std::string>>();
  CLI::App* difference = command->add_subcommand("diff", "What has changed between two reports");
  difference->add_option("FILES", *compared, "Before, and after")->required()->expected(2);
  difference->callback([compared] {
    const ProcessReport before = sum_of(read_or_end((*compared)[0]));
    const ProcessReport after = sum_of(read_or_end((*compared)[1]));
    fmt::print("{}", report_difference(before, after, (*compared)[0], (*compared)[1]));
  });
}

}  // namespace bosk::tools
