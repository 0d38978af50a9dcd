// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Knows files by device and inode, so by whatever name.
#include "bosk/compare/libraries.h"

#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace bosk::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libgomp.so.1";

/// False also if one of them is not there.
bool same_file(const fs::path& one, const fs::path& other) {
  std::error_code error;
  return fs::equivalent(one, other, error);
}

/// The parts of a list, with what separates each from the next behind it.
template <typename Keep>
std::string filtered(const std::string& list, const char* separators, Keep keep) {
  std::string result;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find_first_of(separators, at), list.size());
    const std::string part = list.substr(at, end - at);
    if (keep(part)) {
      if (!result.empty()) result += ':';
      result += part;
    }
    at = end + 1;
  }
  return result;
}

/// A name without a folder is looked for in LD_LIBRARY_PATH.
bool preloads_bosk(const std::string& entry, const std::string& library_path,
                   const std::string& library) {
  if (entry.find('/') != std::string::npos) return is_bosk_library(entry, library);
  bool found = false;
  filtered(library_path, ":;", [&](const std::string& folder) {
    found |= is_bosk_library(fs::path(folder) / entry, library);
    return true;
  });
  return found;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

bool is_bosk_library(const std::string& path, const std::string& library) {
  // It is installed under two names, the second of which is ours alone.
  return same_file(path, library) || same_file(path, fs::path(path).parent_path() / "libbosk.so");
}

Variables without_bosk(const std::string& library) {
  Variables changed;
  const std::string preload = variable("LD_PRELOAD");
  const std::string folders = variable("LD_LIBRARY_PATH");
  const std::string other_preload = filtered(preload, ": ", [&](const std::string& entry) {
    return !entry.empty() && !preloads_bosk(entry, folders, library);
  });
  // An empty entry is the present folder.
  const std::string other_folders = filtered(folders, ":;", [&](const std::string& folder) {
    return !is_bosk_library(fs::path(folder) / kName, library);
  });
  if (other_preload != preload) changed.emplace_back("LD_PRELOAD", other_preload);
  if (other_folders != folders) changed.emplace_back("LD_LIBRARY_PATH", other_folders);
  return changed;
}

std::vector<std::string> listing_command(const std::string& program) {
  std::string loader;
  // The first object is the tool itself.
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* to) {
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          if (object->dlpi_phdr[i].p_type != PT_INTERP) continue;
          *static_cast<std::string*>(to) =
              reinterpret_cast<const char*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        }
        return 1;
      },
      &loader);
  if (loader.empty()) return {};
  return {loader, "--list", program};
}

std::string bosk_in_listing(const std::string& listing, const std::string& library) {
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    // "	libgomp.so.1 => /path/libgomp.so.1 (0x00007f…)"
    const size_t arrow = line.find(" => /");
    const size_t address = line.rfind(" (0x");
    if (line.find(kName) == std::string::npos || arrow == std::string::npos ||
        address == std::string::npos)
      continue;
    const std::string path = line.substr(arrow + 4, address - arrow - 4);
    if (is_bosk_library(path, library)) return path;
  }
  return "";
}

}  // namespace bosk::tools
