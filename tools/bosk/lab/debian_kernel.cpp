// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pinned packages, checked sums, and what happens when the archive has moved on.
#include "bosk/lab/debian_kernel.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "bosk/lab/cache.h"
#include "bosk/lab/command.h"
#include "bosk/lab/error.h"
#include "bosk/lab/kernel_package.h"

namespace bosk::tools::lab {

namespace fs = std::filesystem;

// Tried with tests/lab. To move on: apt-cache show PACKAGE, boot, change these.
const DebianKernel kStableKernel = {
    "debian",
    "linux-image-6.1.0-56-amd64",
    "6.1.192-2",
    "a86e2049672f52354c4536a089203b6c82639420424d31c91cf31a181fd4d8f1",
    "bookworm bookworm-security",
    68};
const DebianKernel kNewerKernel = {
    "newer",
    "linux-image-6.12.95+deb12-amd64",
    "6.12.95-1~bpo12+1",
    "5e524b782be67cb0d6a2e7b51816a2ac519e573ef7324b9a63a4124365653ecc",
    "bookworm-backports",
    102};

namespace {

constexpr const char* kKeys = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// apt, told to know `suites` of Debian and nothing of this machine's own lists.
class PrivateApt {
 public:
  PrivateApt(const fs::path& folder, const std::string& suites) : folder_(folder) {
    for (const char* below : {"parts", "lists/partial", "cache/archives/partial"}) {
      fs::create_directories(folder_ / below);
    }
    std::string sources;
    std::istringstream words(suites);
    for (std::string suite; words >> suite;) {
      const bool security = suite.find("-security") != std::string::npos;
      sources += fmt::format("deb [signed-by={}] http://deb.debian.org/debian{} {} main\n", kKeys,
                             security ? "-security" : "", suite);
    }
    write_file(folder_ / "sources.list", sources);
  }

  std::vector<std::string> options() const {
    return {"-o", "Dir::Etc::SourceList=" + (folder_ / "sources.list").string(),
            "-o", "Dir::Etc::SourceParts=" + (folder_ / "parts").string(),
            "-o", "Dir::State::Lists=" + (folder_ / "lists").string(),
            "-o", "Dir::Cache=" + (folder_ / "cache").string(),
            "-o", "APT::Architecture=amd64",
            "-o", "APT::Default-Release="};
  }

 private:
  fs::path folder_;
};

std::vector<std::string> apt(const std::string& tool, const std::vector<std::string>& options,
                             const std::vector<std::string>& words) {
  std::vector<std::string> command = {
      tool, "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=2"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

fs::path package_in(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".deb") return entry.path();
  }
  return {};
}

/// How far a download is, on a line of its own that a terminal overwrites.
class Progress {
 public:
  Progress(fs::path folder, unsigned megabytes) : folder_(std::move(folder)), total_(megabytes) {}
  ~Progress() {
    if (shown_ && isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
  }
  void show() {
    const auto now = std::chrono::steady_clock::now();
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (now - last_ < std::chrono::seconds(terminal ? 0 : 5)) return;
    uint64_t bytes = 0;
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(folder_, error)) {
      if (entry.is_regular_file(error)) bytes += entry.file_size(error);
    }
    fmt::print(stderr, "{}bosk: {} of about {} MiB{}", terminal ? "\r" : "", bytes >> 20, total_,
               terminal ? "" : "\n");
    last_ = now;
    shown_ = true;
  }

 private:
  fs::path folder_;
  unsigned total_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

CommandResult download(const std::vector<std::string>& options, const std::string& what,
                       const fs::path& folder, unsigned megabytes) {
  Progress progress(folder, megabytes);
  CommandOptions how;
  how.directory = folder;
  how.waiting = [&](const std::string&) { progress.show(); };
  return run_command(apt("apt-get", options, {"download", what}), how);
}

/// The newest package of the series: what the fallback is, or depends on.
std::string newest(const std::vector<std::string>& options, const ArchivePackage& package) {
  const CommandResult shown =
      run_command(apt("apt-cache", options, {"--no-all-versions", "show", package.fallback}));
  const std::string prefix = package.name.substr(0, package.name.find_first_of("0123456789"));
  std::istringstream lines(shown.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("Depends: ", 0) != 0) continue;
    std::istringstream words(line.substr(9));
    std::string name;
    words >> name;
    if (name.rfind(prefix, 0) == 0) return name.substr(0, name.find_first_of(",:"));
  }
  return package.fallback;
}

[[noreturn]] void cannot_fetch(const ArchivePackage& package, const std::string& output,
                               const fs::path& folder) {
  throw LabError(kFailure, fmt::format("{} cannot be fetched from Debian: {}{}", package.name,
                                       telling_line(output), disk_hint(folder)));
}

}  // namespace

Downloaded download_package(const ArchivePackage& package, const fs::path& folder,
                            unsigned megabytes) {
  if (!have_command("apt-get") || !have_command("dpkg-deb")) {
    throw LabError(
        kFailure,
        "there is no apt here to fetch a kernel with: --kernel FILE takes a kernel, or a "
        "linux-image package that you fetched from packages.debian.org");
  }
  const std::string pinned = package.name + "=" + package.version;
  // This machine's own lists will mostly do; they may be old, or of another release.
  CommandResult result = download({}, pinned, folder, megabytes);
  bool is_pinned = true;
  if (result.status != 0) {
    const PrivateApt own(folder / "apt", package.suites);
    result = run_command(apt("apt-get", own.options(), {"update"}));
    if (result.status != 0) cannot_fetch(package, result.output, folder);
    result = download(own.options(), pinned, folder, megabytes);
    if (result.status != 0) {
      is_pinned = false;
      result = download(own.options(), newest(own.options(), package), folder, megabytes);
    }
  }
  const fs::path file = package_in(folder);
  if (result.status != 0 || file.empty()) cannot_fetch(package, result.output, folder);
  if (is_pinned) {
    const std::string sum = sha256_of(file);
    if (sum != package.sha256) {
      throw LabError(kFailure, fmt::format("{}: SHA-256 is {}, not {}: it is not used",
                                           file.filename().string(), sum, package.sha256));
    }
    return {file, package.version};
  }
  // apt has checked its sum against the archive's signed list.
  const CommandResult version = run_command({"dpkg-deb", "-f", file.string(), "Version"});
  const std::string text = version.output.substr(0, version.output.find('\n'));
  fmt::print(
      stderr,
      "bosk: Debian no longer has {} {}: taking {}, of the same series and signed by Debian\n",
      package.name, package.version, text);
  return {file, text};
}

namespace {

/// In the folder of a kernel that was taken because the archive had dropped another: that one's version.
constexpr const char* kInsteadOf = "instead-of";

/// One that was taken in this one's stead: no use in asking the archive again.
std::optional<fs::path> stand_in(const DebianKernel& kernel) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cache_folder(), error)) {
    std::ifstream file(entry.path() / kInsteadOf);
    std::string version;
    if (file >> version && version == kernel.version) return entry.path();
  }
  return std::nullopt;
}

}  // namespace

fs::path fetch_kernel(const DebianKernel& kernel) {
  const std::string name = fmt::format("{}-{}", kernel.label, kernel.version);
  const fs::path pinned = cache_folder() / name;
  if (fs::is_directory(pinned)) return pinned;
  if (const auto other = stand_in(kernel)) return *other;

  return cached(name, [&](const fs::path& folder) {
    fmt::print(stderr, "bosk: fetching Debian's kernel {} ({} MiB, once; it is not installed)\n",
               kernel.version, kernel.megabytes);
    const ArchivePackage package = {kernel.package, kernel.version, kernel.sha256,
                                    "linux-image-amd64", kernel.suites};
    const Downloaded got = download_package(package, folder, kernel.megabytes);
    unpack_kernel_package(got.file, folder);
    fs::remove_all(folder / "apt");
    fs::remove(got.file);
    if (got.version != kernel.version) write_file(folder / kInsteadOf, kernel.version);
    fmt::print(stderr, "bosk: the kernel is in {}\n", cache_folder().string());
    return fmt::format("{}-{}", kernel.label, got.version);
  });
}

}  // namespace bosk::tools::lab
