// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Command line of `bosk topo`.
#include "topo.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "topo_costs.h"
#include "topo_views.h"
#include "topology/source.h"

namespace bosk::tools {
namespace {

struct TopoOptions {
  std::string xml;
  std::string synthetic;
  std::string svg;
  std::string reader;
  bool json = false;
  bool all = false;
  bool costs = false;
  CostsWanted costs_wanted;
};

[[noreturn]] void fail(int status, const std::string& line) {
  fmt::print(stderr, "bosk: {}\n", line);
  throw CLI::RuntimeError(status);
}

void write_all(std::FILE* file, const std::string& text, const std::string& name) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0) {
    fail(1, fmt::format("cannot write {}: {}", name, std::strerror(errno)));
  }
}

void write_svg(const std::string& text, const std::string& path) {
  if (path == "-") return write_all(stdout, text, "standard output");
  const auto close = [](std::FILE* file) { std::fclose(file); };
  std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "w"), close);
  if (file == nullptr) fail(1, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  write_all(file.get(), text, path);
}

topology::MachineSource source_of(const TopoOptions& options, const CLI::App& command) {
  topology::MachineSource source;
  if (command.count("--xml") != 0) {
    source.from = topology::MachineSource::From::kXmlFile;
    source.text = options.xml.c_str();
  } else if (command.count("--synthetic") != 0) {
    source.from = topology::MachineSource::From::kSynthetic;
    source.text = options.synthetic.c_str();
  } else {
    source = topology::machine_source_from_environment();
  }
  source.restrict_to_process = !options.all;
  const std::map<std::string, topology::Reader> readers = {{"auto", topology::Reader::kAuto},
                                                           {"hwloc", topology::Reader::kHwloc},
                                                           {"sysfs", topology::Reader::kSysfs},
                                                           {"flat", topology::Reader::kFlat}};
  if (command.count("--reader") != 0) source.reader = readers.at(options.reader);
  return source;
}

void run_topo(const TopoOptions& options, const CLI::App& command) {
  const bool costs = options.costs || options.costs_wanted.measure;
  if (costs && options.svg == "-") {
    fail(2, "--costs and --svg - both want standard output: name a file for --svg");
  }
  if (options.costs_wanted.quick && !costs) fail(2, "--quick is for --costs and --measure");
  if (options.json && options.svg == "-") {
    fail(2, "--json and --svg - both want standard output: name a file for --svg");
  }
  topology::Error error;
  const auto release = [](topology::Machine* machine) { topology::free_machine(machine); };
  const std::unique_ptr<topology::Machine, decltype(release)> machine(
      topology::load_machine(source_of(options, command), &error), release);
  if (machine == nullptr) fail(1, error.text);

  if (!options.svg.empty()) write_svg(topo_svg(*machine), options.svg);
  if (costs) {
    const memory::CostTable* table = costs_of(*machine, options.costs_wanted);
    if (table == nullptr) {
      fail(1, fmt::format("{} has too many NUMA nodes for a table of costs (at most {})",
                          machine->source, memory::kMostCostNodes));
    }
    write_all(stdout,
              options.json ? topo_json(*machine, costs_json(*machine, *table))
                           : costs_text(*machine, *table),
              "standard output");
  } else if (options.json) {
    write_all(stdout, topo_json(*machine), "standard output");
  } else if (options.svg.empty()) {
    write_all(stdout, topo_text(*machine), "standard output");
  }
}

}  // namespace

void add_topo_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("topo", "Show the machine: text, JSON or SVG");
  auto options = std::make_shared<TopoOptions>();
  CLI::Option* xml = command->add_option(
      "--xml", options->xml, "Read the machine from an XML file that hwloc wrote (lstopo x.xml)");
  command
      ->add_option("--synthetic", options->synthetic,
                   "Invent the machine: \"node:4 core:4 pu:1\", or hwloc's own synthetic syntax")
      ->excludes(xml);
  command->add_flag("--json", options->json, "Everything, for programs");
  command->add_option("--svg", options->svg, "Draw nested boxes into FILE (-: standard output)")
      ->type_name("FILE");
  command->add_flag("--all", options->all,
                    "All PUs of this machine, also those that the affinity mask forbids");
  command->add_flag(
      "--costs", options->costs,
      "What it costs to reach and to move memory: measured the first time, then kept");
  command->add_flag("--measure", options->costs_wanted.measure,
                    "As --costs, and measure again although there are figures");
  command->add_flag("--quick", options->costs_wanted.quick,
                    "Measure with short samples: rough figures in seconds");
  command->add_option("--reader", options->reader, "Who reads this machine: auto hwloc sysfs flat")
      ->check(CLI::IsMember({"auto", "hwloc", "sysfs", "flat"}));
  xml->type_name("FILE");
  command->callback([options, command] { run_topo(*options, *command); });
}

}  // namespace bosk::tools
