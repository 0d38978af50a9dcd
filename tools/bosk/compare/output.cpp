// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares outputs of any size in little memory.
#include "bosk/compare/output.h"

#include <algorithm>
#include <utility>

#include "bosk/escaped.h"

namespace bosk::tools {
namespace {

constexpr size_t kPiece = size_t{1} << 16;
constexpr size_t kShownOfLine = 60;
/// What precedes the first differing byte where the front of a line is cut. Each takes up to four places (\x1b),
/// and that byte is to be seen.
constexpr uint64_t kShownBefore = 12;
constexpr size_t kShownOfErrors = 160;

/// A place in an output: in a line, and where that begins.
struct Place {
  uint64_t offset = 0;
  uint64_t line_start = 0;
};

/// Both places are at the beginning of lines of the same number, which is kept up. False: they do not differ from there on.
bool find_difference(const MemoryFile& first, const MemoryFile& second, Place* of_first,
                     Place* of_second, uint64_t* line) {
  for (;;) {
    const std::string a = first.text_at(of_first->offset, kPiece);
    const std::string b = second.text_at(of_second->offset, kPiece);
    const size_t both = std::min(a.size(), b.size());
    const auto differs =
        std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(both), b.begin());
    const auto same = static_cast<size_t>(differs.first - a.begin());
    for (size_t i = 0; i < same; ++i) {
      if (a[i] != '\n') continue;
      ++*line;
      of_first->line_start = of_first->offset + i + 1;
      of_second->line_start = of_second->offset + i + 1;
    }
    of_first->offset += same;
    of_second->offset += same;
    if (same < both || a.size() != b.size()) return true;
    if (both == 0) return false;
  }
}

/// To the next line. False: there is none.
bool leave_line(const MemoryFile& file, Place* place) {
  for (;;) {
    const std::string text = file.text_at(place->offset, kPiece);
    if (text.empty()) return false;
    const size_t end = text.find('\n');
    place->offset += end == std::string::npos ? text.size() : end + 1;
    if (end == std::string::npos) continue;
    place->line_start = place->offset;
    return place->offset < file.size();
  }
}

std::string line_at(const MemoryFile& file, const Place& place) {
  if (place.line_start >= file.size()) return "no such line";
  uint64_t start = place.line_start;
  std::string before;
  if (place.offset - start > kShownBefore) {
    start = place.offset - kShownBefore;
    before = "…";
  }
  // Four bytes a character at most, and one character more, so that a cut is seen.
  std::string text = file.text_at(start, 4 * (kShownOfLine + 1));
  // The cut may be inside a character: what is left of it is left out.
  const bool cut = !before.empty();
  size_t whole = 0;
  while (cut && whole < 3 && whole < text.size() && (text[whole] & 0xc0) == 0x80) ++whole;
  text = text.substr(whole, text.find('\n', whole) - whole);
  return "\"" + shortened(before + escaped(text), kShownOfLine) + "\"";
}

}  // namespace

Differences differences(const MemoryFile& first, const MemoryFile& second) {
  Differences found;
  Place of_first;
  Place of_second;
  uint64_t line = 1;
  while (find_difference(first, second, &of_first, &of_second, &line)) {
    Difference difference{line, line_at(first, of_first), line_at(second, of_second)};
    // What differs is not seen in them: one output ends where the other has a newline.
    if (difference.first == difference.second) {
      std::string& shorter = first.size() < second.size() ? difference.first : difference.second;
      shorter += ", and no newline";
    }
    found.lines.push_back(std::move(difference));
    const bool first_goes_on = leave_line(first, &of_first);
    const bool second_goes_on = leave_line(second, &of_second);
    found.has_more = first_goes_on != second_goes_on || found.lines.size() == Differences::kMost;
    if (found.has_more || !first_goes_on) break;
    ++line;
  }
  return found;
}

std::vector<std::string> last_lines(const MemoryFile& file, size_t most) {
  const uint64_t size = file.size();
  const uint64_t start = size > kPiece ? size - kPiece : 0;
  std::string text = file.text_at(start, kPiece);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < most) {
    const size_t before = text.rfind('\n');
    const size_t line = before == std::string::npos ? 0 : before + 1;
    lines.push_back(shortened(escaped(text.substr(line)), kShownOfErrors));
    text.resize(line == 0 ? 0 : before);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace bosk::tools
