// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/learn/learn_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "affinity/learner.h"
#include "affinity/recording.h"
#include "bosk/escaped.h"
#include "bosk/learn/learn_json.h"
#include "bosk/learn/learn_page.h"
#include "bosk/learn/matrix_views.h"
#include "bosk/write_text.h"
#include "topology/source.h"

namespace bosk::tools {
namespace {

constexpr int kUsage = 2;

struct LearnOptions {
  std::vector<std::string> files;
  std::string csv;
  std::string svg;
  std::string json;
  std::string topology_xml;
  std::string synthetic;
};

using MachinePointer = std::unique_ptr<topology::Machine, void (*)(topology::Machine*)>;

[[noreturn]] void fail(const std::string& line) {
  fmt::print(stderr, "bosk: {}\n", line);
  throw CLI::RuntimeError(kUsage);
}

void write_to(const std::string& name, const std::string& text) {
  if (const int error = write_text(name, text); error != 0)
    fail(fmt::format("{}: {}", escaped(name), std::strerror(error)));
}

MachinePointer machine_for(const LearnOptions& options) {
  topology::MachineSource source;
  if (!options.topology_xml.empty()) {
    source.from = topology::MachineSource::From::kXmlFile;
    source.text = options.topology_xml.c_str();
  } else if (!options.synthetic.empty()) {
    source.from = topology::MachineSource::From::kSynthetic;
    source.text = options.synthetic.c_str();
  } else {
    source = topology::machine_source_from_environment();
  }
  source.restrict_to_process = false;
  topology::Error error;
  MachinePointer machine(topology::load_machine(source, &error), topology::free_machine);
  if (!machine) fail(error.text);
  return machine;
}

struct Read {
  affinity::RecordingHead head;
  uint64_t first_ns = UINT64_MAX;
  uint64_t last_ns = 0;
};

/// Of several files the accesses are those of one program: ranks of a run, or several runs of it.
Read read_all(const LearnOptions& options, std::unique_ptr<affinity::Learner>* learner) {
  Read read;
  for (const std::string& name : options.files) {
    const affinity::RecordingHead head = affinity::read_recording_head(name);
    if (!*learner) {
      read.head = head;
      *learner = std::make_unique<affinity::Learner>(head.nodes);
    } else if (!(head.nodes == read.head.nodes)) {
      fail(fmt::format("{} and {} were recorded on different machines: show them one by one",
                       escaped(options.files.front()), escaped(name)));
    }
    const affinity::RecordingCounts counts = affinity::read_recording(
        name, {[&](const affinity::Access& access) {
                 read.first_ns = std::min(read.first_ns, access.time_ns);
                 read.last_ns = std::max(read.last_ns, access.time_ns);
                 (*learner)->add(access);
               },
               [&](uint32_t thread) { (*learner)->thread_ended(thread); }});
    if (counts.bad != 0)
      fmt::print(stderr, "bosk: {}: {} damaged records were left out, {} read\n", escaped(name),
                 counts.bad, counts.good);
    if (counts.is_cut_off)
      fmt::print(stderr, "bosk: {}: it ends within a record (was bosk killed?); {} read\n",
                 escaped(name), counts.good);
  }
  return read;
}

void run_learn(const LearnOptions& options) {
  std::unique_ptr<affinity::Learner> learner;
  Read read;
  try {
    read = read_all(options, &learner);
  } catch (const affinity::RecordingError& error) {
    fail(error.what());
  }
  const MachinePointer machine = machine_for(options);
  const bool is_that_machine = !options.topology_xml.empty() || !options.synthetic.empty() ||
                               affinity::nodes_of(*machine) == read.head.nodes;
  if (!options.csv.empty()) write_to(options.csv, matrix_csv(*learner));
  if (!options.svg.empty())
    write_to(options.svg, matrix_svg(*learner, "sharing in " + read.head.program));
  Learnt learnt;
  learnt.program = fmt::format("{} ({}, {})", read.head.program, read.head.host, read.head.date);
  learnt.source = read.head.source;
  learnt.blind = read.head.blind;
  if (read.last_ns > read.first_ns)
    learnt.seconds = static_cast<double>(read.last_ns - read.first_ns) / 1e9;
  const topology::Machine* those = is_that_machine ? machine.get() : nullptr;
  if (const int error = write_json(options.json, learn_json(learnt, learner.get(), those));
      error != 0)
    fail(fmt::format("{}: {}", escaped(options.json), std::strerror(error)));
  if (options.csv == "-" || options.svg == "-" || options.json == "-") return;
  fmt::print("{}", learn_page(learnt, learner.get(), those));
}

}  // namespace

void add_learn_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "learn",
      "Shows what was learnt of a program: who shares with whom, and what that could gain.");
  command->footer(R"(Examples:
  bosk run --learn=observe --record r ./app   writes a recording of which threads use which memory
  bosk learn r                                who shares with whom, and where threads had better run
  bosk learn r --csv -                        the matrix, for other programs
  bosk learn r --svg matrix.svg               and as a picture
  bosk learn r --json learnt.json             all that the page says, for programs
  bosk learn r --synthetic "node:4 core:8"    what would be gained on such a machine)");
  auto options = std::make_shared<LearnOptions>();
  command->add_option("FILES", options->files, "Of bosk run --learn=observe --record FILE")
      ->required();
  command->add_option("--csv", options->csv, "The matrix into FILE (-: standard output)")
      ->type_name("FILE");
  command
      ->add_option("--svg", options->svg, "The matrix as a picture into FILE (-: standard output)")
      ->type_name("FILE");
  command
      ->add_option("--json", options->json,
                   "All that the page says, for programs, into FILE (-: standard output)")
      ->type_name("FILE");
  CLI::Option* xml =
      command->add_option("--topology-xml", options->topology_xml,
                          "The machine to map to, as hwloc wrote it, instead of this one");
  xml->type_name("FILE");
  command
      ->add_option("--synthetic", options->synthetic,
                   "An invented machine to map to, such as \"node:4 core:4 pu:1\"")
      ->type_name("TEXT")
      ->excludes(xml);
  command->callback([options] { run_learn(*options); });
}

}  // namespace bosk::tools
