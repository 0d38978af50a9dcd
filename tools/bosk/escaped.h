// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text of others on a terminal: names, paths, what programs print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bosk::tools {

/// The text with what a terminal could obey, and what is not UTF-8, written as C writes it: \n, \x1b. A
/// backslash is doubled, so that nothing stands for two texts.
std::string escaped(std::string_view text);

/// How many characters of UTF-8 these are. (As wide as that for all but East Asian text.)
size_t width_of_text(std::string_view text);

/// The first `most` characters; the last of them is an ellipsis if there were more.
std::string shortened(const std::string& text, size_t most);

}  // namespace bosk::tools
