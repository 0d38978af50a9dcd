// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk: the command line tool. Each sub-command has a file of its own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "lab/lab.h"
#include "learn/attach_command.h"
#include "learn/learn_command.h"
#include "report/report_command.h"
#include "run.h"
#if __has_include("topo.h")
#include "topo.h"
#define BOSK_HAVE_TOPO
#endif

namespace {

constexpr int kUsage = 2;      // a command line that cannot be meant
constexpr int kFailure = 125;  // the tool itself, as env(1) and timeout(1) have it

int run_tool(int argc, char** argv) {
  CLI::App app{
      "bosk runs OpenMP programs as bubbles of user-level threads on the tree of the machine.",
      "bosk"};
  app.set_version_flag("--version", "bosk " BOSK_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(26);
  app.footer("`bosk COMMAND --help` explains a command, with examples.");
  bosk::tools::add_run_command(app);
#ifdef BOSK_HAVE_TOPO
  bosk::tools::add_topo_command(app);
#endif
  bosk::tools::add_lab_command(app);
  bosk::tools::add_report_command(app);
  bosk::tools::add_learn_command(app);
  bosk::tools::add_attach_command(app);
  if (argc == 1) {
    fmt::print("{}", app.help());
    return kUsage;
  }
  // CLI11 takes the words from the last to the first.
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words[0] == "run" || words[0] == "lab") bosk::tools::hide_separators(&words);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // whoever threw it has said why
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const auto chosen = app.get_subcommands();
    if (!chosen.empty()) {
      fmt::print(stderr, "bosk: {} (see bosk {} --help)\n", error.what(), chosen[0]->get_name());
    } else if (argv[1][0] != '-') {
      fmt::print(stderr, "bosk: there is no command {} (see bosk --help)\n", argv[1]);
    } else {
      fmt::print(stderr, "bosk: {} (see bosk --help)\n", error.what());
    }
    return kUsage;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_tool(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bosk: {}\n", error.what());
    return kFailure;
  }
}
