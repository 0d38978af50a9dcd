// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is prepared once and kept: `$XDG_CACHE_HOME/bosk/lab`, or ~/.cache/bosk/lab.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace bosk::tools::lab {

/// Throws LabError if there is none and none can be made.
std::filesystem::path cache_folder();

/// The entry `name`: as it is if it is finished, else made by `make`, which gets an empty folder to fill
/// and returns the name that the entry gets (mostly `name`). Whoever else wants it meanwhile waits. If
/// `make` throws or the tool is killed, no entry appears. Throws LabError.
std::filesystem::path cached(const std::string& name,
                             const std::function<std::string(const std::filesystem::path&)>& make);

/// Writes a file as a whole; throws LabError, with a word about the disk if that is full.
void write_file(const std::filesystem::path& path, const std::string& content);

/// ", and the disk of FOLDER is full …" if that is likely to be the reason of a failure there, else "".
std::string disk_hint(const std::filesystem::path& folder);

}  // namespace bosk::tools::lab
