// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fetches, patches, configures, builds, and keeps one file of it.
#include "bosk/lab/built_kernel.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bosk/lab/cache.h"
#include "bosk/lab/command.h"
#include "bosk/lab/debian_kernel.h"
#include "bosk/lab/error.h"

namespace bosk::tools::lab {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackage = "linux-source-6.1";
constexpr const char* kVersion = "6.1.192-2";
constexpr const char* kSum = "ae95fe63d4c553f8d0e6c86cb1ab566f3894a43743eb19ab585cd97d82f26514";
constexpr const char* kSuites = "bookworm bookworm-security";
constexpr unsigned kMegabytes = 133;

/// share/bosk/kernel beside the tool's bin/: configuration and patches.
fs::path recipe() {
  const fs::path folder =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "share" / "bosk" / "kernel";
  if (access((folder / "config").c_str(), R_OK) != 0) {
    throw LabError(kFailure, fmt::format("{}: it is not there; build or install it beside the tool",
                                         (folder / "config").string()));
  }
  return folder;
}

std::vector<fs::path> patches_in(const fs::path& folder) {
  std::vector<fs::path> patches;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder / "patches", none)) {
    if (entry.path().extension() == ".patch") patches.push_back(entry.path());
  }
  std::sort(patches.begin(), patches.end());
  return patches;
}

/// Another configuration, patch or source is another kernel.
std::string entry_name(const fs::path& folder) {
  const fs::path list = cache_folder() / fmt::format(".sum.{}", getpid());
  std::string sums = kSum + sha256_of(folder / "config");
  for (const fs::path& patch : patches_in(folder)) sums += sha256_of(patch);
  write_file(list, sums);
  const std::string sum = sha256_of(list);
  fs::remove(list);
  if (sum.empty()) throw LabError(kFailure, "sha256sum (coreutils) does not run here");
  constexpr size_t kEnough = 12;
  return fmt::format("built-{}-{}", kVersion, sum.substr(0, kEnough));
}

void check_tools() {
  struct Tool {
    const char* command;
    const char* package;
  };
  constexpr Tool kTools[] = {{"gcc", "gcc"},     {"make", "make"},  {"flex", "flex"},
                             {"bison", "bison"}, {"bc", "bc"},      {"patch", "patch"},
                             {"xz", "xz-utils"}, {"ld", "binutils"}};
  std::string missing;
  for (const Tool& tool : kTools) {
    if (!have_command(tool.command)) missing += fmt::format(" {}", tool.package);
  }
  // objtool, which the build makes first.
  if (!fs::exists("/usr/include/gelf.h")) missing += " libelf-dev";
  if (!missing.empty()) {
    throw LabError(kFailure,
                   fmt::format("a kernel cannot be built here: apt-get install{}", missing));
  }
}

void must(const char* what, const std::vector<std::string>& words, CommandOptions options,
          const fs::path& folder) {
  const CommandResult result = run_command(words, options);
  if (result.status == 0) return;
  throw LabError(kFailure,
                 fmt::format("{}: {}{}", what, telling_line(result.output), disk_hint(folder)));
}

/// Kconfig drops without a word what it does not know or what lacks something else.
void check_configuration(const fs::path& wanted, const fs::path& made) {
  std::ifstream made_file(made);
  std::ostringstream made_text;
  made_text << '\n' << made_file.rdbuf();
  std::ifstream wanted_file(wanted);
  for (std::string line; std::getline(wanted_file, line);) {
    if (line.rfind("CONFIG_", 0) != 0) continue;
    if (made_text.str().find('\n' + line + '\n') == std::string::npos) {
      throw LabError(
          kFailure, fmt::format("{}: {} is not in what Kconfig made of it", wanted.string(), line));
    }
  }
}

/// A line for each tenth of the files, more or less: their number is known from the last time.
class BuildProgress {
 public:
  void look(const std::string& output) {
    constexpr size_t kFiles = 1250;
    for (; at_ < output.size(); ++at_) {
      if (output.compare(at_, 5, "  CC ") == 0) ++files_;
    }
    if (files_ / (kFiles / 10) <= shown_) return;
    shown_ = files_ / (kFiles / 10);
    fmt::print(stderr, "bosk: {} of about {} files\n", files_, kFiles);
  }

 private:
  size_t at_ = 0;
  size_t files_ = 0;
  size_t shown_ = 0;
};

void build_in(const fs::path& folder, const fs::path& recipe_folder) {
  const ArchivePackage package = {kPackage, kVersion, kSum, kPackage, kSuites};
  const Downloaded got = download_package(package, folder, kMegabytes);
  const fs::path source = folder / "source";
  fs::create_directory(source);
  fmt::print(stderr, "bosk: unpacking the kernel's source\n");
  must("the kernel's source cannot be unpacked",
       {"sh", "-c",
        "dpkg-deb --fsys-tarfile \"$1\" | tar -xO ./usr/src/linux-source-6.1.tar.xz |"
        " tar -xJ --strip-components=1 -C \"$2\"",
        "sh", got.file.string(), source.string()},
       {}, folder);
  fs::remove(got.file);
  CommandOptions inside;
  inside.directory = source;
  for (const fs::path& patch : patches_in(recipe_folder)) {
    inside.in = patch;
    must(fmt::format("{} does not apply", patch.filename().string()).c_str(),
         {"patch", "-p1", "--forward"}, inside, folder);
  }
  inside.in.clear();
  must("the kernel cannot be configured",
       {"make", "KCONFIG_ALLCONFIG=" + (recipe_folder / "config").string(), "allnoconfig"}, inside,
       folder);
  check_configuration(recipe_folder / "config", source / ".config");
  fmt::print(stderr, "bosk: building Linux {} (some minutes, once)\n", got.version);
  BuildProgress progress;
  inside.waiting = [&](const std::string& output) { progress.look(output); };
  must("the kernel cannot be built",
       {"nice", "make", fmt::format("-j{}", std::max(1u, std::thread::hardware_concurrency())),
        "vmlinux"},
       inside, folder);
  inside.waiting = nullptr;
  must("the kernel cannot be stripped",
       {"objcopy", "--strip-all", "vmlinux", (folder / "vmlinux").string()}, inside, folder);
  fs::copy_file(source / ".config", folder / "config");
  fs::remove_all(source);
  fs::remove_all(folder / "apt");
}

}  // namespace

fs::path build_kernel() {
  const fs::path recipe_folder = recipe();
  const std::string name = entry_name(recipe_folder);
  return cached(name, [&](const fs::path& folder) {
    check_tools();
    fmt::print(
        stderr,
        "bosk: fetching the source of Debian's kernel {} ({} MiB; 1.5 GiB while it is built)\n",
        kVersion, kMegabytes);
    build_in(folder, recipe_folder);
    return name;
  });
}

}  // namespace bosk::tools::lab
