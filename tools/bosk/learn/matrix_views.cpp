// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/learn/matrix_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bosk/escaped.h"

namespace bosk::tools {
namespace {

constexpr size_t kMostColumns = 32;
/// Squares of a picture; more could not be told apart.
constexpr size_t kMostSquares = 256;

/// The matrix in the order of threads, with so many neighbours taken together that no more than `most` are left.
struct Grid {
  std::vector<uint32_t> order;
  size_t together = 1;
  size_t size = 0;
  std::vector<double> cells;  ///< size × size: means over the pairs
  double most = 0;

  Grid(const affinity::Learner& learner, size_t most_cells) : order(threads_in_order(learner)) {
    together = std::max<size_t>(1, (order.size() + most_cells - 1) / most_cells);
    size = (order.size() + together - 1) / together;
    cells.assign(size * size, 0);
    std::vector<uint32_t> pairs(size * size, 0);
    for (size_t a = 0; a < order.size(); ++a)
      for (size_t b = 0; b < order.size(); ++b) {
        if (a == b) continue;
        const size_t cell = a / together * size + b / together;
        cells[cell] += learner.matrix().at(order[a], order[b]);
        ++pairs[cell];
      }
    for (size_t cell = 0; cell < cells.size(); ++cell)
      if (pairs[cell] != 0) most = std::max(most, cells[cell] /= pairs[cell]);
  }
  double shade(size_t a, size_t b) const {
    return most == 0 ? 0 : std::sqrt(cells[a * size + b] / most);
  }
  std::string name(const affinity::Learner& learner, size_t at) const {
    const affinity::SeenThread& first = learner.threads()[order[at * together]];
    const std::string cpu = first.cpu == affinity::kNoCpu ? "?" : fmt::format("{}", first.cpu);
    return together == 1 ? fmt::format("{} on CPU {}", first.number, cpu)
                         : fmt::format("{} from CPU {}",
                                       std::min(together, order.size() - at * together), cpu);
  }
};

char digit(double shade) {
  if (shade <= 0) return '.';
  return static_cast<char>('0' + std::min(9, static_cast<int>(shade * 10)));
}

/// From white to a dark blue, also for eyes that see no colours.
std::string colour(double shade) {
  const auto mix = [&](double from, double to) {
    return static_cast<int>(std::lround(from + (to - from) * shade));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(247, 8), mix(251, 48), mix(255, 107));
}

std::string as_xml(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '&')
      safe += "&amp;";
    else
      safe += c;
  }
  return safe;
}

}  // namespace

std::vector<uint32_t> threads_in_order(const affinity::Learner& learner) {
  std::vector<uint32_t> order(learner.matrix().threads());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](uint32_t thread) {
    return std::ranges::all_of(learner.matrix().row(thread), [](uint32_t n) { return n == 0; });
  });
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    const auto key = [&](uint32_t t) { return std::pair(learner.threads()[t].cpu, t); };
    return key(a) < key(b);
  });
  return order;
}

std::string matrix_text(const affinity::Learner& learner) {
  const Grid grid(learner, kMostColumns);
  std::string text;
  for (size_t a = 0; a < grid.size; ++a) {
    text += fmt::format("{:>20}  ", grid.name(learner, a));
    for (size_t b = 0; b < grid.size; ++b) {
      const bool is_same = a == b && grid.together == 1;
      text += is_same ? " \\" : fmt::format(" {}", digit(grid.shade(a, b)));
    }
    text += '\n';
  }
  return text;
}

std::string matrix_csv(const affinity::Learner& learner) {
  const std::vector<uint32_t> order = threads_in_order(learner);
  std::string text = "thread,cpu,accesses";
  for (const uint32_t thread : order) text += fmt::format(",{}", learner.threads()[thread].number);
  text += '\n';
  for (const uint32_t a : order) {
    const affinity::SeenThread& seen = learner.threads()[a];
    text +=
        fmt::format("{},{},{}", seen.number,
                    seen.cpu == affinity::kNoCpu ? -1 : static_cast<int>(seen.cpu), seen.accesses);
    for (const uint32_t b : order) text += fmt::format(",{}", learner.matrix().at(a, b));
    text += '\n';
  }
  return text;
}

std::string matrix_svg(const affinity::Learner& learner, const std::string& title) {
  const Grid grid(learner, kMostSquares);
  const double side =
      grid.size == 0 ? 0 : std::clamp(640.0 / static_cast<double>(grid.size), 2.0, 40.0);
  const bool has_names = grid.size <= kMostColumns;
  const double left = has_names ? 150 : 20;
  const double top = 60;
  const double width = left + side * static_cast<double>(grid.size) + 20;
  const double height = top + side * static_cast<double>(grid.size) + 40;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"10\" y=\"20\" font-size=\"14\">{}</text>\n"
      "<text x=\"10\" y=\"40\">darker: these two share more; threads in the order of their CPUs{}</text>\n",
      std::max(width, 420.0), height, as_xml(escaped(title)),
      grid.together > 1 ? fmt::format(", {} to a square", grid.together) : "");
  for (size_t a = 0; a < grid.size; ++a) {
    const double y = top + side * static_cast<double>(a);
    if (has_names)
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                         left - 6, y + side / 2 + 4, as_xml(grid.name(learner, a)));
    for (size_t b = 0; b < grid.size; ++b) {
      const bool is_same = a == b && grid.together == 1;
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">"
          "<title>{} and {}: {:.0f}</title></rect>\n",
          left + side * static_cast<double>(b), y, side, side,
          is_same ? "#dddddd" : colour(grid.shade(a, b)), as_xml(grid.name(learner, a)),
          as_xml(grid.name(learner, b)), grid.cells[a * grid.size + b]);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace bosk::tools
