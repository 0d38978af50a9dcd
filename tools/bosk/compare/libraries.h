// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which libgomp a program gets: keeps ours out of the runs that are to be on another.
#pragma once

#include <string>
#include <vector>

#include "bosk/run_environment.h"

namespace bosk::tools {

/// Is this file our library: `library` itself, or one that was installed elsewhere?
bool is_bosk_library(const std::string& path, const std::string& library);

/// LD_PRELOAD and LD_LIBRARY_PATH without what leads to our library; only those that change.
Variables without_bosk(const std::string& library);

/// What lists the objects that a program loads, without running it: the loader of this tool.
std::vector<std::string> listing_command(const std::string& program);

/// The file of our library in what that command printed, because the program names its folder; "": it is not there.
std::string bosk_in_listing(const std::string& listing, const std::string& library);

}  // namespace bosk::tools
