// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cache entries are folders that appear by a rename, under a lock: whole, or not at all.
#include "bosk/lab/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bosk/lab/command.h"
#include "bosk/lab/error.h"

namespace bosk::tools::lab {
namespace {

namespace fs = std::filesystem;

// A kernel with its package beside it while that is unpacked.
constexpr uint64_t kNeeded = uint64_t{300} << 20;

/// Held while an entry is made. The kernel lets go of it however the process ends.
class Lock {
 public:
  Lock(const fs::path& path, const std::string& name)
      : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) {
      const int error = errno;
      throw LabError(kFailure, fmt::format("{}: {}{}", path.string(), std::strerror(error),
                                           disk_hint(path.parent_path())));
    }
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    fmt::print(stderr, "bosk: waiting for another bosk that prepares {}\n", name);
    while (flock(descriptor_, LOCK_EX) != 0) {
      if (errno != EINTR) {
        throw LabError(kFailure, fmt::format("{}: {}", path.string(), std::strerror(errno)));
      }
    }
  }
  ~Lock() { close(descriptor_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_;
};

/// The folder that is being filled; gone with its owner unless it has been given its name.
class Draft {
 public:
  explicit Draft(const fs::path& path) : path_(path) {
    std::error_code error;
    fs::remove_all(path_, error);  // of one who was killed
    if (!fs::create_directory(path_, error)) {
      throw LabError(kFailure, fmt::format("{}: {}{}", path_.string(), error.message(),
                                           disk_hint(path_.parent_path())));
    }
  }
  ~Draft() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void become(const fs::path& name) const {
    // Power may fail after the rename is on the disk and before the files are.
    const int folder = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      syncfs(folder);
      close(folder);
    }
    std::error_code error;
    fs::rename(path_, name, error);
    if (error && !fs::exists(name)) {
      throw LabError(kFailure, fmt::format("{}: {}", name.string(), error.message()));
    }
  }

 private:
  fs::path path_;
};

}  // namespace

fs::path cache_folder() {
  const char* base = std::getenv("XDG_CACHE_HOME");
  fs::path folder;
  if (base != nullptr && base[0] == '/') {  // the specification: relative ones are ignored
    folder = base;
  } else {
    const char* home = std::getenv("HOME");
    if (home == nullptr || home[0] != '/') {
      throw LabError(kFailure,
                     "neither XDG_CACHE_HOME nor HOME is set: where shall the kernel be kept?");
    }
    folder = fs::path(home) / ".cache";
  }
  folder = folder / "bosk" / "lab";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw LabError(kFailure,
                   fmt::format("the cache {} cannot be made: {} (XDG_CACHE_HOME chooses another)",
                               folder.string(), error.message()));
  }
  return folder;
}

fs::path cached(const std::string& name, const std::function<std::string(const fs::path&)>& make) {
  const fs::path folder = cache_folder();
  if (fs::is_directory(folder / name)) return folder / name;
  const Lock lock(folder / ("." + name + ".lock"), name);
  if (fs::is_directory(folder / name)) return folder / name;
  const StopOnSignals cleaning_up;
  const fs::path draft_path = folder / ("." + name + ".draft");
  const Draft draft(draft_path);
  const std::string final_name = make(draft_path);
  draft.become(folder / final_name);
  return folder / final_name;
}

void write_file(const fs::path& path, const std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  bool good = file != nullptr;
  if (good) {
    good = std::fwrite(content.data(), 1, content.size(), file) == content.size();
    good = std::fclose(file) == 0 && good;
  }
  if (!good) {
    const int error = errno;
    throw LabError(kFailure, fmt::format("{} cannot be written: {}{}", path.string(),
                                         std::strerror(error), disk_hint(path.parent_path())));
  }
}

std::string disk_hint(const fs::path& folder) {
  struct statvfs disk;
  if (statvfs(folder.c_str(), &disk) != 0) return "";
  const uint64_t left = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (left >= kNeeded) return "";
  return fmt::format(
      "; there are {} MiB left there, and {} are needed (XDG_CACHE_HOME chooses another place)",
      left >> 20, kNeeded >> 20);
}

}  // namespace bosk::tools::lab
