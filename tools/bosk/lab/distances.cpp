// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Distances between nodes: by the name of a network, or from a file.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "bosk/lab/error.h"
#include "bosk/lab/shape.h"

namespace bosk::tools::lab {
namespace {

using Matrix = std::vector<std::vector<unsigned>>;

// ACPI's SLIT: 10 is local, 255 means "cannot be reached".
constexpr unsigned kLocal = 10;
constexpr unsigned kHop = 10;
constexpr unsigned kMost = 254;

Matrix by_hops(unsigned count, const std::function<unsigned(unsigned, unsigned)>& hops) {
  Matrix matrix(count, std::vector<unsigned>(count, kLocal));
  for (unsigned from = 0; from < count; ++from) {
    for (unsigned to = 0; to < count; ++to) {
      matrix[from][to] = std::min(kLocal + kHop * hops(from, to), kMost);
    }
  }
  return matrix;
}

unsigned gap(unsigned a, unsigned b) { return a > b ? a - b : b - a; }

/// Rows of the grid that is nearest to a square.
unsigned mesh_rows(unsigned count) {
  unsigned rows = static_cast<unsigned>(std::sqrt(static_cast<double>(count)));
  while (count % rows != 0) --rows;
  return rows;
}

Matrix read_file(const std::string& path, unsigned count) {
  std::ifstream file(path);
  if (!file) {
    throw LabError(
        kUsage,
        fmt::format("--distances {}: {}; it is a file, or one of flat, line, ring, mesh, cube",
                    path, std::strerror(errno)));
  }
  const auto fail = [&](size_t line, const std::string& what) {
    throw LabError(kUsage, fmt::format("--distances {}: line {}: {}", path, line, what));
  };
  Matrix matrix;
  std::string text;
  for (size_t line = 1; std::getline(file, text); ++line) {
    text.erase(std::min(text.find('#'), text.size()));
    std::replace(text.begin(), text.end(), ',', ' ');
    std::istringstream words(text);
    std::vector<unsigned> row;
    for (std::string word; words >> word;) {
      const size_t column = row.size();
      if (word.size() > 3 || word.find_first_not_of("0123456789") != std::string::npos) {
        fail(line, fmt::format("{} is not a number from 10 to 254", word));
      }
      const unsigned value = static_cast<unsigned>(std::strtoul(word.c_str(), nullptr, 10));
      if (column == matrix.size() && value != kLocal) {
        fail(line, fmt::format("a node's distance to itself is 10, not {}", value));
      }
      if (column != matrix.size() && (value <= kLocal || value > kMost)) {
        fail(line, fmt::format("{} is not a distance from 11 to 254", value));
      }
      row.push_back(value);
    }
    if (row.empty()) continue;
    if (row.size() != count) {
      fail(line, fmt::format("{} numbers for {} nodes", row.size(), count));
    }
    if (matrix.size() == count) fail(line, fmt::format("more lines than the {} nodes", count));
    matrix.push_back(std::move(row));
  }
  if (matrix.size() != count) {
    throw LabError(
        kUsage, fmt::format("--distances {}: {} lines for {} nodes", path, matrix.size(), count));
  }
  return matrix;
}

}  // namespace

Matrix distances_from(const std::string& name_or_file, unsigned count) {
  const std::string& name = name_or_file;
  if (name == "flat")
    return by_hops(count, [](unsigned a, unsigned b) { return a == b ? 0u : 1u; });
  if (name == "line") return by_hops(count, gap);
  if (name == "ring") {
    return by_hops(count,
                   [=](unsigned a, unsigned b) { return std::min(gap(a, b), count - gap(a, b)); });
  }
  if (name == "mesh") {
    const unsigned columns = count / mesh_rows(count);
    return by_hops(count, [=](unsigned a, unsigned b) {
      return gap(a / columns, b / columns) + gap(a % columns, b % columns);
    });
  }
  if (name == "cube") {
    if (!std::has_single_bit(count)) {
      throw LabError(kUsage, fmt::format("--distances cube: {} nodes are no power of two", count));
    }
    return by_hops(
        count, [](unsigned a, unsigned b) { return static_cast<unsigned>(std::popcount(a ^ b)); });
  }
  return read_file(name_or_file, count);
}

}  // namespace bosk::tools::lab
