// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packages, bzImages and modules taken apart.
#include "bosk/lab/kernel_package.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bosk/lab/cache.h"
#include "bosk/lab/command.h"
#include "bosk/lab/error.h"

namespace bosk::tools::lab {
namespace {

namespace fs = std::filesystem;

// What the guest's first process needs before it sees any file of the host.
const std::vector<std::string> kWanted = {"virtio_pci", "virtio_console", "9pnet_virtio", "9p",
                                          "overlay"};
// Where these lie, and what they depend on.
const std::vector<std::string> kModuleFolders = {
    "drivers/virtio", "drivers/char", "net/9p", "fs/9p", "fs/netfs", "fs/fscache", "fs/overlayfs"};

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) throw LabError(kFailure, fmt::format("{} cannot be read", path.string()));
  return content.str();
}

/// virtio_ring.ko → virtio_ring; the kernel takes - and _ for one.
std::string module_name(const fs::path& file) {
  std::string name = file.filename().string();
  name.erase(std::min(name.find(".ko"), name.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// The names in a module's "depends=" note.
std::vector<std::string> needed_by(const std::string& module) {
  static const std::string kNote("\0depends=", 9);
  const size_t at = module.find(kNote);
  if (at == std::string::npos) return {};
  std::istringstream names(std::string(module.c_str() + at + kNote.size()));
  std::vector<std::string> result;
  for (std::string name; std::getline(names, name, ',');) result.push_back(module_name(name));
  return result;
}

struct Compression {
  std::string start;
  std::vector<std::string> command;
  const char* package;
};

const std::vector<Compression>& compressions() {
  static const std::vector<Compression> all = {{std::string("\xFD"
                                                            "7zXZ"),
                                                {"xz", "-dc", "--single-stream"},
                                                "xz-utils"},
                                               {"\x28\xB5\x2F\xFD", {"zstd", "-dcq"}, "zstd"},
                                               {"\x1F\x8B", {"gzip", "-dcq"}, "gzip"},
                                               {"\x02\x21\x4C\x18", {"lz4", "-dcq"}, "lz4"}};
  return all;
}

uint32_t little_endian(const std::string& data, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(data[at + i]);
  return value;
}

/// The compressed kernel inside of a bzImage (Documentation/arch/x86/boot.rst); empty: it is none.
std::string payload_of(const std::string& image) {
  constexpr size_t kSetupSectors = 0x1f1, kMagic = 0x202, kOffset = 0x248, kLength = 0x24c;
  if (image.size() < 0x1000 || image.compare(kMagic, 4, "HdrS") != 0) return "";
  const size_t sectors = static_cast<unsigned char>(image[kSetupSectors]);
  const size_t start = ((sectors == 0 ? 4 : sectors) + 1) * 512 + little_endian(image, kOffset);
  const size_t length = little_endian(image, kLength);
  if (length < 4 || start > image.size() || length > image.size() - start) return "";
  return image.substr(start, length);
}

bool is_elf(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  char start[4] = {};
  stream.read(start, sizeof start);
  return std::memcmp(start, "\177ELF", sizeof start) == 0;
}

/// True: FOLDER/vmlinux is there.
bool take_out_kernel(const std::string& payload, const fs::path& folder) {
  for (const Compression& one : compressions()) {
    if (payload.rfind(one.start, 0) != 0) continue;
    if (!have_command(one.command[0])) {
      fmt::print(stderr,
                 "bosk: without {} the guest must unpack its kernel itself, in 3 s each time: "
                 "apt-get install {}\n",
                 one.command[0], one.package);
      return false;
    }
    const fs::path packed = folder / "payload";
    write_file(packed, payload);
    CommandOptions options;
    options.in = packed;
    options.out = folder / "vmlinux";
    // What follows the payload's end, its unpacked size, makes some of these programs complain.
    const CommandResult result = run_command(one.command, options);
    fs::remove(packed);
    std::error_code error;
    const uint64_t size = fs::file_size(options.out, error);
    if (!error && size == little_endian(payload, payload.size() - 4) && is_elf(options.out))
      return true;
    fs::remove(options.out, error);
    const std::string hint = disk_hint(folder);
    if (hint.empty()) return false;
    throw LabError(kFailure, fmt::format("the kernel cannot be unpacked: {}{}",
                                         telling_line(result.output), hint));
  }
  return false;
}

}  // namespace

fs::path image_in(const fs::path& folder) {
  const fs::path unpacked = folder / "vmlinux";
  return fs::exists(unpacked) ? unpacked : folder / "vmlinuz";
}

void unpack_kernel_image(const fs::path& image, const fs::path& folder) {
  const std::string content = read_file(image);
  if (!take_out_kernel(payload_of(content), folder)) write_file(folder / "vmlinuz", content);
}

void collect_modules(const fs::path& tree, const fs::path& folder) {
  std::map<std::string, fs::path> found;
  std::error_code error;
  for (const std::string& below : kModuleFolders) {
    for (const auto& entry : fs::recursive_directory_iterator(tree / "kernel" / below, error)) {
      if (entry.is_regular_file()) found[module_name(entry.path())] = entry.path();
    }
  }
  std::set<std::string> built_in;
  std::ifstream list(tree / "modules.builtin");
  for (std::string line; std::getline(list, line);) built_in.insert(module_name(line));

  fs::create_directory(folder / "modules");
  std::string order;
  std::set<std::string> done;
  const std::function<void(const std::string&)> add = [&](const std::string& name) {
    if (built_in.count(name) != 0 || !done.insert(name).second) return;
    const auto at = found.find(name);
    if (at == found.end()) {
      throw LabError(kFailure,
                     fmt::format("the kernel has no module {} below {}", name, tree.string()));
    }
    std::string content = read_file(at->second);
    for (const Compression& one : compressions()) {
      if (content.rfind(one.start, 0) != 0) continue;
      CommandOptions options;
      options.in = at->second;
      options.out = folder / "module";
      const CommandResult result = run_command(one.command, options);
      if (result.status != 0) {
        throw LabError(kFailure, fmt::format("{} cannot be unpacked ({}: {})", at->second.string(),
                                             one.command[0], telling_line(result.output)));
      }
      content = read_file(options.out);
      fs::remove(options.out);
    }
    for (const std::string& needed : needed_by(content)) add(needed);
    write_file(folder / "modules" / (name + ".ko"), content);
    order += name + ".ko\n";
  };
  for (const std::string& name : kWanted) add(name);
  write_file(folder / "modules" / "LIST", order);
}

void unpack_kernel_package(const fs::path& package, const fs::path& folder) {
  const fs::path scratch = folder / "scratch";
  fs::create_directory(scratch);
  // Packages of Debian 13 have usr/lib where those of 12 have lib.
  std::string unpack =
      "dpkg-deb --fsys-tarfile \"$1\" | tar -x -C \"$2\" --wildcards './boot/vmlinuz-*'"
      " '*lib/modules/*/modules.builtin'";
  for (const std::string& below : kModuleFolders) {
    unpack += fmt::format(" '*lib/modules/*/kernel/{}/*'", below);
  }
  // A folder that this kernel does not have is no failure; what is missing shows below.
  const CommandResult result =
      run_command({"sh", "-c", unpack, "sh", package.string(), scratch.string()});
  fs::path image;
  fs::path tree;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(scratch / "boot", error)) image = entry.path();
  for (const char* lib : {"lib", "usr/lib"}) {
    for (const auto& entry : fs::directory_iterator(scratch / lib / "modules", error)) {
      tree = entry.path();
    }
  }
  const bool full = result.output.find("No space left") != std::string::npos;
  if (image.empty() || tree.empty() || full) {
    throw LabError(kFailure, fmt::format("{} cannot be unpacked as a linux-image package: {}{}",
                                         package.filename().string(), telling_line(result.output),
                                         disk_hint(folder)));
  }
  unpack_kernel_image(image, folder);
  collect_modules(tree, folder);
  fs::remove_all(scratch);
}

}  // namespace bosk::tools::lab
