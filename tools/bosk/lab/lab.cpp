// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Command line of `bosk lab`.
#include "bosk/lab/lab.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "bosk/lab/command.h"
#include "bosk/lab/environment.h"
#include "bosk/lab/error.h"
#include "bosk/lab/initramfs.h"
#include "bosk/lab/kernel.h"
#include "bosk/lab/like.h"
#include "bosk/lab/locality.h"
#include "bosk/lab/session.h"
#include "bosk/lab/shape.h"
#include "bosk/run.h"

namespace bosk::tools {
namespace {

namespace fs = std::filesystem;
using namespace lab;

struct LabOptions {
  ShapeWords shape;
  std::string like;
  std::string kernel = "auto";
  std::string append;
  std::string output;
  std::string locality;
  std::string caches;
  std::vector<std::string> environment;
  double timeout = 0;
  bool shell = false;
  bool root = false;
  bool verbose = false;
};

constexpr const char* kQemu = "qemu-system-x86_64";

/// lib/bosk/lab-init beside the tool's bin/: so it lies in the build folder and where it is installed.
fs::path init_beside_tool() {
  std::error_code error;
  const fs::path tool = fs::read_symlink("/proc/self/exe", error);
  if (error) throw LabError(kFailure, fmt::format("/proc/self/exe: {}", error.message()));
  const fs::path init = tool.parent_path().parent_path() / "lib" / "bosk" / "lab-init";
  if (access(init.c_str(), R_OK) != 0) {
    throw LabError(kFailure, fmt::format("{}: {}; build or install it beside the tool",
                                         init.string(), std::strerror(errno)));
  }
  return init;
}

fs::path working_directory() {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (error) throw LabError(kFailure, fmt::format("the working directory: {}", error.message()));
  return here;
}

/// Makes the folder if need be. The guest has it at the same path.
WritableFolder output_folder(const std::string& name) {
  std::error_code error;
  fs::create_directories(name, error);
  const fs::path folder = error ? fs::path() : fs::canonical(name, error);
  if (error || access(folder.c_str(), W_OK | X_OK) != 0) {
    throw LabError(kFailure,
                   fmt::format("--output {}: {}", name,
                               error ? error.message() : std::string(std::strerror(errno))));
  }
  if (folder == "/")
    throw LabError(kUsage, "--output /: the guest's root stays its own; name a folder");
  return {"output", folder.string()};
}

Shape wanted_shape(const LabOptions& options, const CLI::App& command) {
  if (options.like.empty()) return shape_from_words(options.shape);
  for (const char* other : {"--nodes", "--cpus-per-node", "--distances"}) {
    if (command.count(other) != 0) {
      throw LabError(kUsage, fmt::format("--like and {}: give one of them", other));
    }
  }
  // 1 GiB for each node, or what the user says: a laptop need not have the original's memory.
  return shape_like(options.like, command.count("--mem") != 0 ? options.shape.mem : "");
}

std::vector<std::string> command_of(const LabOptions& options, std::vector<std::string> words) {
  if (options.shell) {
    if (!words.empty()) throw LabError(kUsage, "--shell and a command: give one of them");
    if (isatty(STDIN_FILENO) == 0) throw LabError(kUsage, "--shell needs a terminal");
    const char* shell = std::getenv("SHELL");
    return {shell != nullptr && shell[0] == '/' ? shell : "/bin/sh"};
  }
  if (words.empty())
    throw LabError(kUsage, "no command to run: bosk lab [options] -- COMMAND [arguments]");
  // A word with a dash in this place is an option that is not known, not a program.
  if (words.front().size() > 1 && words.front()[0] == '-') {
    throw LabError(kUsage,
                   fmt::format("bosk lab has no option {} (see bosk lab --help)", words.front()));
  }
  return words;
}

/// What --locality and --caches ask for; nothing without the former.
std::unique_ptr<Locality> wanted_locality(const LabOptions& options, const CLI::App& command,
                                          const std::vector<WritableFolder>& output) {
  if (command.count("--locality") == 0) {
    if (!options.caches.empty()) throw LabError(kUsage, "--caches needs --locality");
    return nullptr;
  }
  LocalityWish wish;
  std::stringstream words(options.locality);
  for (std::string word; std::getline(words, word, ',');) wish.what.push_back(word);
  wish.caches = options.caches;
  wish.like = options.like;
  return std::make_unique<Locality>(wish, init_beside_tool().parent_path(),
                                    output.empty() ? "" : output.front().path);
}

int run_lab(const LabOptions& options, const CLI::App& command, std::vector<std::string> words) {
  if (command.count("--timeout") != 0 && !(options.timeout > 0)) {
    throw LabError(kUsage, fmt::format("--timeout {:g}: not a number of seconds", options.timeout));
  }
  Job job;
  job.command = command_of(options, std::move(words));
  job.environment = guest_environment(options.environment);
  job.directory = working_directory().string();
  job.terminal = options.shell;
  job.root = options.root;

  QemuCommand qemu;
  qemu.shape = wanted_shape(options, command);
  if (!options.output.empty()) qemu.writable.push_back(output_folder(options.output));
  if (!have_command(kQemu)) {
    throw LabError(kFailure,
                   "there is no qemu-system-x86_64: apt-get install qemu-system-x86 (it brings "
                   "its firmware, seabios)");
  }
  const fs::path init = init_beside_tool();
  const auto locality = wanted_locality(options, command, qemu.writable);
  qemu.kernel = find_kernel(options.kernel);
  qemu.initramfs = make_initramfs(init, qemu.kernel.modules);
  qemu.more_kernel_words = options.append;
  if (locality != nullptr) locality->prepare(&qemu, &job);
  if (options.verbose) {
    fmt::print(stderr, "bosk: starting {}, kernel {}\n", qemu.shape.text(), qemu.kernel.name);
  }
  SessionOptions session;
  session.timeout = options.timeout;
  session.verbose = options.verbose;
  session.orderly_end = !qemu.extra.words.empty();
  const int status = run_session(qemu, job, session);
  return locality == nullptr ? status : locality->report(status);
}

constexpr const char* kExamples = R"(Examples:
  bosk lab -- numactl -H                  a machine of 4 nodes with 4 CPUs each
  bosk lab --nodes 8 --cpus-per-node 8 -- bosk topo
  bosk lab -- bosk run --bind --report=full ./app
                                          where do my threads run, on a machine that I do not have?
  bosk lab --distances ring --mem 512M,2G,512M,512M -- ./app
  bosk lab --cpus-per-node 4,4,0 --bandwidth 100G,100G,400G --nodes 3 -- ./app
                                          the last node is fast memory without CPUs
  bosk lab --like server.xml -- ./app     a machine as lstopo saw it: lstopo server.xml
  bosk lab --output results -- ./app      what it writes to results/ stays
  bosk lab --locality --output results -- ./app
                                          which memory do my threads really use? (docs/locality.md)
  bosk lab --shell                        look around

The command sees your files, in this directory, and may write anywhere: what it writes goes with the guest,
except in the --output folder. Its output, input and exit status are yours, as if it ran here. It runs under
emulation, some 15 times slower than here, and no memory is farther than other: placement can be seen in
the lab, times cannot.
The first use fetches a kernel from Debian, about 70 MiB, into the cache ($XDG_CACHE_HOME/bosk/lab).
Status 2: an option cannot be meant; 124: time is up; 125: the lab itself failed; 126: the command cannot be
run; 127: there is no such command; 128+N: signal N ended it.)";

/// CLI11 does not know of the command that follows.
class Formatter : public CLI::Formatter {
 public:
  Formatter() { column_width(26); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: bosk lab [OPTIONS] -- COMMAND [ARGUMENTS...]\n";
  }
};

void add_machine_options(CLI::App* command, LabOptions* options) {
  const auto text = [&](const char* name, std::string* value, const char* type, const char* help) {
    command->add_option(name, *value, help)->type_name(type)->group("Machine");
  };
  text("--nodes", &options->shape.nodes, "N", "NUMA nodes; otherwise 4");
  text("--cpus-per-node", &options->shape.cpus_per_node, "N[,N...]",
       "CPUs of each node, or a number for each (0: memory only);\notherwise 4");
  text("--mem", &options->shape.mem, "SIZE[,SIZE...]",
       "Memory of each node, or a size for each (0: CPUs only);\notherwise 1G");
  text("--distances", &options->shape.distances, "NAME|FILE",
       "How far nodes are from one another: flat (20), line, ring, mesh\n"
       "or cube (10 for each step), or a file with a line of N numbers\nfor each node");
  text("--bandwidth", &options->shape.bandwidth, "SIZE[,SIZE...]",
       "What the guest is told of its memory's speed, per second: how\n"
       "programs find high-bandwidth memory. Nothing gets slower by it");
  text("--like", &options->like, "FILE",
       "A machine as hwloc saw it (lstopo FILE.xml), as far as QEMU can");
}

void add_other_options(CLI::App* command, LabOptions* options) {
  command
      ->add_option("--kernel", options->kernel,
                   "auto, debian: Debian 12's; newer: from its backports;\n"
                   "built: ours, built here once; or a kernel or linux-image\npackage by its path")
      ->type_name("WHICH")
      ->group("Guest");
  command->add_option("--append", options->append, "More words for the kernel's command line")
      ->type_name("WORDS")
      ->group("Guest");
  command->add_flag("--root", options->root, "Run the command as root, not as you")->group("Guest");
  command
      ->add_option("--env", options->environment,
                   "Give it this variable, too; OMP_*, BOSK_*, PATH and\nothers it has anyway")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false)  // one word each time, or it would take the command, too
      ->group("Command");
  command
      ->add_option(
          "--output", options->output,
          "What is written to this folder is written here, not only in\nthe guest; made if need be")
      ->type_name("FOLDER")
      ->group("Command");
  command
      ->add_flag("--locality", options->locality,
                 "Count the command's accesses by the node of the CPU and of the\n"
                 "memory. caches: what reaches memory past a model of the caches;\n"
                 "objects: by what the command names; or caches,objects")
      ->type_name("[=WHAT]")
      ->group("Locality");
  command
      ->add_option("--caches", options->caches,
                   "Size and ways of a core's and of a node's cache; otherwise those\n"
                   "of --like, or QEMU's: 512K/16,16M/16. Implies caches")
      ->type_name("CORE,NODE")
      ->group("Locality");
  command
      ->add_option("--timeout", options->timeout,
                   "End it all after so many seconds, with status 124")
      ->type_name("SECONDS")
      ->group("Command");
  command->add_flag("--shell", options->shell, "An interactive shell")->group("Command");
  command
      ->add_flag("--verbose", options->verbose, "Say what is started, and show the guest's console")
      ->group("Guest");
}

}  // namespace

void add_lab_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "lab", "Runs a command on a virtual NUMA machine, with your files (needs QEMU).");
  command->prefix_command();
  command->formatter(std::make_shared<Formatter>());
  command->footer(kExamples);
  auto options = std::make_shared<LabOptions>();
  add_machine_options(command, options.get());
  add_other_options(command, options.get());
  command->callback([command, options] {
    int status = kFailure;
    try {
      status = run_lab(*options, *command, program_words(command->remaining()));
    } catch (const LabError& error) {
      fmt::print(stderr, "bosk: {}\n", error.what());
      status = error.status;
    }
    if (status != 0) throw CLI::RuntimeError(status);
  });
}

}  // namespace bosk::tools
