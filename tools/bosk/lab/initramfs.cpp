// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes cpio's "newc" format, and keeps it in memory.
#include "bosk/lab/initramfs.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "bosk/lab/error.h"
#include "bosk/lab/memory_file.h"

namespace bosk::tools::lab {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) throw LabError(kFailure, fmt::format("{} cannot be read", path.string()));
  return content.str();
}

/// Documentation/driver-api/early-userspace/buffer-format.rst
class Archive {
 public:
  void add(const std::string& name, unsigned mode, const std::string& content = "",
           unsigned device_major = 0, unsigned device_minor = 0) {
    constexpr unsigned kLinks = 1;
    text_ += fmt::format(
        "070701{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
        ++number_, mode, 0, 0, kLinks, 0, content.size(), 0, 0, device_major, device_minor,
        name.size() + 1, 0);
    text_ += name;
    text_ += '\0';
    pad();
    text_ += content;
    pad();
  }
  std::string finish() {
    add("TRAILER!!!", 0);
    return std::move(text_);
  }

 private:
  void pad() { text_.resize((text_.size() + 3) / 4 * 4, '\0'); }
  std::string text_;
  unsigned number_ = 0;
};

}  // namespace

std::string make_initramfs(const std::filesystem::path& init,
                           const std::filesystem::path& modules) {
  Archive archive;
  constexpr unsigned kFolder = S_IFDIR | 0755;
  constexpr unsigned kProgram = S_IFREG | 0755;
  archive.add("dev", kFolder);
  // The kernel opens it for the first process before that could mount /dev.
  archive.add("dev/console", S_IFCHR | 0600, "", 5, 1);
  archive.add("init", kProgram, read_file(init));
  if (!modules.empty()) {
    archive.add("modules", kFolder);
    const std::string list = read_file(modules / "LIST");
    archive.add("modules/LIST", S_IFREG | 0644, list);
    std::istringstream names(list);
    for (std::string name; std::getline(names, name);) {
      archive.add("modules/" + name, S_IFREG | 0644, read_file(modules / name));
    }
  }
  return archive.finish();
}

MemoryFile::MemoryFile(const std::string& name, const std::string& content)
    : descriptor_(memfd_create(name.c_str(), 0)) {
  size_t at = 0;
  while (descriptor_ >= 0 && at < content.size()) {
    const ssize_t written = write(descriptor_, content.data() + at, content.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    at += static_cast<size_t>(written);
  }
  if (descriptor_ < 0 || at < content.size()) {
    throw LabError(kFailure, fmt::format("no memory for {}: {}", name, std::strerror(errno)));
  }
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

}  // namespace bosk::tools::lab
