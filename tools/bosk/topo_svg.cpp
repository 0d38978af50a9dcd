// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk topo --svg`: the machine as nested boxes.
//
// Sizes are found from the PUs up: a domain tries every number of columns for its children and keeps
// the one nearest to the shape of a screen. Colours are tints of a colour-blind safe palette, and never
// the only sign: every box has its name, kinds of cores have patterns, memory has its own shape.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "topo_views.h"

namespace bosk::tools {
namespace {

using topology::Domain;
using topology::Kind;
using topology::Machine;
using topology::NumaNode;

constexpr double kAspect = 1.6;
constexpr double kFont = 10;
constexpr double kGlyph = 0.63;  // of the font size: the widest that sans-serif fonts come to
constexpr double kHeader = 15;
constexpr double kStrip = 14;  // a NUMA node's memory
constexpr double kPad = 5;
constexpr double kMargin = 14;
constexpr double kLeastWidth = 560;

struct Style {
  const char* fill;
  const char* stroke;
};

Style style_of(Kind kind) {
  switch (kind) {
    case Kind::kMachine:
      return {"#f6f6f6", "#555555"};
    case Kind::kPackage:
      return {"#d9eaf6", "#0072b2"};
    case Kind::kNode:
      return {"#fdf1d8", "#c98500"};
    case Kind::kDie:
      return {"#e6e4f5", "#5d55a5"};
    case Kind::kL3:
      return {"#d8f0e8", "#00805d"};
    case Kind::kL2:
      return {"#faf6cf", "#988c00"};
    case Kind::kCore:
      return {"#f6e4ee", "#a8487f"};
    case Kind::kPu:
      return {"#ffffff", "#333333"};
    case Kind::kGroup:
      return {"#ececec", "#777777"};
  }
  return {"#ffffff", "#000000"};
}

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML has no way to say the other control characters.
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

double text_width(const std::string& text, double font) {
  const auto glyphs =
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
  return static_cast<double>(glyphs) * font * kGlyph;
}

struct Box {
  double x = 0, y = 0, w = 0, h = 0;
};

class SvgView {
 public:
  explicit SvgView(const Machine& machine)
      : m_(machine), boxes_(machine.n_domains), columns_(machine.n_domains) {
    const std::vector<uint32_t> cpus = os_cpus(m_, m_.root());
    for (uint32_t pu = 0; pu < m_.n_pus; pu++) renumbered_ = renumbered_ || cpus[pu] != pu;
    // Few PUs get large boxes, so that a small machine is not a stamp on an empty page.
    const uint32_t n = m_.n_pus;
    pu_font_ = n > 256 ? 8 : n > 64 ? 9.5 : 11;
    const uint32_t largest = std::max(n, m_.n_os_cpus);
    const double digits = largest > 1000 ? 4 : largest > 100 ? 3 : 2;
    const double least = n > 256 ? 18 : n > 64 ? 26 : n > 16 ? 34 : 52;
    pu_width_ = std::max(digits * pu_font_ * kGlyph + 6, least);
    pu_height_ = n > 256 ? 14 : n > 64 ? 18 : n > 16 ? 24 : 32;
    if (renumbered_) pu_height_ = std::max(pu_height_, 25.0);
    for (const Domain& d : m_.domains()) {
      uint32_t& index = largest_index_[static_cast<unsigned>(d.kind)];
      index = std::max(index, d.index);
    }
  }

  std::string run() {
    for (uint32_t id = m_.n_domains; id-- > 0;) measure(m_.domain_array[id]);
    const double width = std::max(boxes_[0].w, kLeastWidth) + 2 * kMargin;
    double y = kMargin + 16;
    const std::string head = "machine: " + shape_in_words(m_);
    text(kMargin, y, "title", fit(head, width - 2 * kMargin, 14));
    for (const std::string& line : {subtitle(), origin()}) {
      y += 15;
      text(kMargin, y, "note", fit(line, width - 2 * kMargin, kFont));
    }
    y += 10;
    boxes_[0].x = kMargin;
    boxes_[0].y = y;
    for (const Domain& d : m_.domains()) {
      place_children(d);
      draw(d);
    }
    y += boxes_[0].h + 20;
    y = legend(y, width);
    y = distances(y);
    return document(width, y + kMargin, head);
  }

 private:
  // Sizes and places.

  std::string label(const Domain& d) const {
    if (d.kind == Kind::kMachine) return "machine";
    return fmt::format("{} {}", kind_label(d.kind), d.index);
  }

  std::string memory_label(const NumaNode& node) const {
    std::string out = fmt::format("node {}: {}", node.os_index,
                                  node.assumed ? "memory not told" : bytes_label(node.bytes));
    if (node.subtype[0] != '\0') out += fmt::format(" {}", node.subtype);
    return out;
  }

  double top_of(const Domain& d) const {
    if (d.is_pu()) return pu_height_;
    return kHeader;
  }

  void measure(const Domain& d) {
    Box& box = boxes_[d.id];
    if (d.is_pu()) {
      box.w = pu_width_;
      box.h = pu_height_;
    } else {
      // As wide as the largest number needs, so that boxes of a kind line up.
      const std::string longest =
          fmt::format("{} {}", kind_label(d.kind), largest_index_[static_cast<unsigned>(d.kind)]);
      grid(d, std::max(text_width(longest, kFont) + 2 * kPad, memory_width(d)), &box);
      box.h += kHeader;
    }
    box.h += kStrip * d.n_nodes;
    if (d.is_pu() && d.n_nodes != 0) {
      box.w = std::max(box.w, memory_width(d));
      box.h += kPad;
    }
  }

  double memory_width(const Domain& d) const {
    double width = 0;
    for (const NumaNode& node : m_.nodes_of(d)) {
      width = std::max(width, text_width(memory_label(node), 9) + 2 * kPad + 6);
    }
    return width;
  }

  /// Chooses the columns and leaves the size of all children, with a margin around them, in `box`.
  void grid(const Domain& d, double least_width, Box* box) {
    double best = INFINITY;
    for (uint32_t columns = 1; columns <= d.n_children; columns++) {
      Box size = size_with(d, columns);
      size.w = std::max(size.w, least_width);
      const double aspect = size.w / size.h / kAspect;
      const uint32_t rows = (d.n_children + columns - 1) / columns;
      const double holes = static_cast<double>(rows * columns - d.n_children) / d.n_children;
      const double cost = std::max(aspect, 1 / aspect) * (1 + 8 * holes);
      if (cost < best) {
        best = cost;
        columns_[d.id] = columns;
        box->w = size.w;
        box->h = size.h;
      }
    }
  }

  Box size_with(const Domain& d, uint32_t columns) const {
    Box size;
    const auto all = d.children();
    for (size_t i = 0; i < all.size(); i += columns) {
      double w = kPad, h = 0;
      for (size_t j = i; j < std::min<size_t>(i + columns, all.size()); j++) {
        w += boxes_[all[j].id].w + kPad;
        h = std::max(h, boxes_[all[j].id].h);
      }
      size.w = std::max(size.w, w);
      size.h += h + kPad;
    }
    return size;
  }

  /// Rows from the top; siblings of a row get its height, so that they line up.
  void place_children(const Domain& d) {
    if (d.is_pu()) return;
    const Box& box = boxes_[d.id];
    const auto all = d.children();
    const uint32_t columns = columns_[d.id];
    double y = box.y + top_of(d) + kStrip * d.n_nodes;
    for (size_t i = 0; i < all.size(); i += columns) {
      double x = box.x + kPad, h = 0;
      const size_t end = std::min<size_t>(i + columns, all.size());
      for (size_t j = i; j < end; j++) h = std::max(h, boxes_[all[j].id].h);
      for (size_t j = i; j < end; j++) {
        Box& child = boxes_[all[j].id];
        child.x = x;
        child.y = y;
        if (!all[j].is_pu()) child.h = h;
        x += child.w + kPad;
      }
      y += h + kPad;
    }
  }

  // Drawing.

  void text(double x, double y, const char* type, const std::string& what) {
    body_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", type, x, y,
                         escape(what));
  }

  /// Cuts what does not fit.
  static std::string fit(std::string what, double width, double font) {
    if (text_width(what, font) <= width) return what;
    while (!what.empty() && text_width(what, font) + font > width) {
      while (!what.empty() && (what.back() & 0xc0) == 0x80) what.pop_back();
      if (!what.empty()) what.pop_back();
    }
    return what + "…";
  }

  void draw(const Domain& d) {
    const Box& box = boxes_[d.id];
    body_ += fmt::format("<g><title>{}</title>\n", escape(tip(d)));
    const std::string pattern =
        d.is_pu() && m_.n_cpu_kinds > 1 ? fmt::format(" c{}", d.cpu_kind % 4) : "";
    body_ += fmt::format(
        "<rect class=\"{}{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "rx=\"{}\"/>\n",
        topology::kind_name(d.kind), pattern, box.x, box.y, box.w, box.h, d.is_pu() ? 2 : 4);
    if (d.is_pu()) {
      draw_pu(d, box);
    } else {
      const std::string also = folded_kinds(d);
      const double room = box.w - 2 * kPad;
      std::string name = label(d);
      const std::string longer = fmt::format("{} (= {})", name, also);
      if (!also.empty() && text_width(longer, kFont) <= room) name = longer;
      text(box.x + kPad, box.y + 11, "name", name);
    }
    double y = box.y + top_of(d);
    for (const NumaNode& node : m_.nodes_of(d)) {
      body_ += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
          node.has_pus ? "memory" : "memory far", box.x + kPad, y, box.w - 2 * kPad, kStrip - 3);
      text(box.x + kPad + 3, y + 8.5, node.has_pus ? "bytes" : "bytes far", memory_label(node));
      y += kStrip;
    }
    body_ += "</g>\n";
  }

  void draw_pu(const Domain& d, const Box& box) {
    const double middle = box.x + box.w / 2;
    const double centre = box.y + pu_height_ / 2;
    text(middle, centre + (renumbered_ ? -1.5 : pu_font_ * 0.36), "number",
         std::to_string(d.first_pu));
    if (renumbered_) text(middle, centre + 8.5, "cpu", std::to_string(d.os_index));
  }

  std::string tip(const Domain& d) const {
    std::string out = label(d);
    const std::string also = folded_kinds(d);
    if (!also.empty()) out += fmt::format(" (= {})", also);
    if (d.is_pu()) return out + fmt::format(", Linux CPU {}", d.os_index);
    out += fmt::format(", PU {}-{}, Linux CPUs {}", d.first_pu, d.last_pu,
                       number_list(os_cpus(m_, d)));
    if (d.total_bytes != 0) out += ", memory " + bytes_label(d.total_bytes);
    return out;
  }

  std::string subtitle() const {
    std::string out = fmt::format("{} {}, {} NUMA {}", m_.n_pus, kind_label(Kind::kPu, m_.n_pus),
                                  m_.n_nodes, m_.n_nodes == 1 ? "node" : "nodes");
    if (m_.root().total_bytes != topology::kUnknownBytes) {
      out += ", " + bytes_label(m_.root().total_bytes);
    }
    if (m_.n_excluded != 0)
      out += fmt::format(", {} PUs forbidden by the affinity mask", m_.n_excluded);
    return out;
  }

  std::string origin() const { return fmt::format("{}, read by {}", m_.source, m_.reader); }

  /// Swatches with words, wrapped at the width of the picture. Returns the next free y.
  double legend(double y, double width) {
    double x = kMargin;
    const auto entry = [&](const std::string& type, const std::string& what, double swatch) {
      const double needed = swatch + 6 + text_width(what, kFont) + 16;
      if (x + needed > width - kMargin && x > kMargin) {
        x = kMargin;
        y += 18;
      }
      body_ += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"11\" rx=\"2\"/>\n",
          type, x, y - 9, swatch);
      text(x + swatch + 6, y, "note", what);
      x += needed;
    };
    for (const topology::Level& level : m_.levels()) {
      uint32_t n = 0;
      uint16_t kinds = 0;
      for (const Domain& d : m_.domains()) {
        if (d.kind != level.kind) continue;
        kinds = n == 0 ? d.kinds : kinds & d.kinds;
        n++;
      }
      if (n == 0) continue;
      std::string what = fmt::format("{} {}", n, kind_label(level.kind, n));
      Domain common{};
      common.kind = level.kind;
      common.kinds = kinds;
      const std::string also = folded_kinds(common);
      if (!also.empty()) what += fmt::format(" (= {})", also);
      if (level.kind == Kind::kPu && renumbered_) what += ", Linux CPU number below";
      entry(topology::kind_name(level.kind), what, 14);
    }
    for (uint32_t k = 0; m_.n_cpu_kinds > 1 && k < m_.n_cpu_kinds; k++) {
      const topology::CpuKind& kind = m_.cpu_kind_array[k];
      std::string what = fmt::format("kind {}", k);
      if (kind.core_type[0] != '\0') what += fmt::format(", {}", kind.core_type);
      if (kind.efficiency == 0) what += ", most frugal";
      entry(fmt::format("pu c{}", k % 4), what, 14);
    }
    bool far = false;
    for (const NumaNode& node : m_.nodes()) far = far || !node.has_pus;
    entry("memory", "memory of a NUMA node", 14);
    if (far) entry("memory far", "memory without PUs of its own", 14);
    return y + 14;
  }

  double distances(double y) {
    const uint32_t n = m_.n_nodes;
    if (n < 2) return y;
    y += 14;
    if (m_.distances_assumed && n > kLargestTable) {
      text(kMargin, y, "note", "distances between NUMA nodes: not told by the system");
      return y;
    }
    const std::string note =
        m_.distances_assumed ? " (not told by the system: assumed)" : " (10: local)";
    text(kMargin, y, "name", "distances between NUMA nodes, from row to column" + note);
    y += 8;
    uint32_t largest = topology::kLocalDistance + 1;
    for (uint32_t i = 0; i < n * n; i++) largest = std::max(largest, m_.distance_array[i]);
    const bool numbers = n <= kLargestTable;
    const double w = numbers ? 30 : std::max(3.0, std::min(8.0, 400.0 / n));
    const double h = numbers ? 16 : w;
    const double left = kMargin + 30, top = y + (numbers ? 14 : 2);
    for (uint32_t i = 0; numbers && i < n; i++) {
      const std::string os = std::to_string(m_.node_array[i].os_index);
      text(left + (i + 0.5) * w, top - 4, "cpu", os);
      text(left - 14, top + i * h + 11, "cpu", os);
    }
    for (uint32_t i = 0; i < n; i++) {
      for (uint32_t j = 0; j < n;) {
        const uint32_t value = m_.node_distance(i, j);
        uint32_t end = j + 1;
        while (!numbers && end < n && m_.node_distance(i, end) == value) end++;
        // One hue, from light to dark: readable for every eye and on paper.
        const double part =
            value <= topology::kLocalDistance
                ? 0
                : double(value - topology::kLocalDistance) / (largest - topology::kLocalDistance);
        const int grey = static_cast<int>(250 - 100 * part);
        body_ += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
            "fill=\"#{:02x}{:02x}{:02x}\"{}/>\n",
            left + j * w, top + i * h, w * (end - j), h, grey, grey, std::min(255, grey + 5),
            numbers ? " stroke=\"#888888\" stroke-width=\"0.5\"" : "");
        if (numbers)
          text(left + (j + 0.5) * w, top + i * h + 11.5, "number", std::to_string(value));
        j = end;
      }
    }
    if (!numbers) {
      body_ += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
          "stroke=\"#888888\"/>\n",
          left, top, w * n, h * n);
      y = top + h * n + 14;
      text(left, y, "note",
           fmt::format("light: {}, dark: {}; logical node numbers 0 to {}",
                       topology::kLocalDistance, largest, n - 1));
      return y;
    }
    return top + h * n;
  }

  std::string document(double width, double height, const std::string& head) const {
    std::string css;
    for (unsigned k = 0; k < topology::kKinds; k++) {
      const Kind kind = static_cast<Kind>(k);
      const Style style = style_of(kind);
      css += fmt::format(".{}{{fill:{};stroke:{};stroke-width:{}{}}}\n", topology::kind_name(kind),
                         style.fill, style.stroke, kind == Kind::kPu ? 0.7 : 1,
                         kind == Kind::kGroup ? ";stroke-dasharray:4 2" : "");
    }
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n"
        "<title>{2}</title>\n<desc>{3}</desc>\n"
        "<defs>\n"
        "<pattern id=\"p0\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
        "<rect width=\"5\" height=\"5\" fill=\"#ffffff\"/>"
        "<path d=\"M0 5L5 0\" stroke=\"#bbbbbb\" stroke-width=\"0.8\"/></pattern>\n"
        "<pattern id=\"p2\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
        "<rect width=\"5\" height=\"5\" fill=\"#ffffff\"/>"
        "<circle cx=\"2.5\" cy=\"2.5\" r=\"0.8\" fill=\"#aaaaaa\"/></pattern>\n"
        "<pattern id=\"p3\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
        "<rect width=\"5\" height=\"5\" fill=\"#ffffff\"/>"
        "<path d=\"M0 2.5H5\" stroke=\"#bbbbbb\" stroke-width=\"0.8\"/></pattern>\n"
        "</defs>\n"
        "<style>\n"
        "svg{{background:#ffffff}}\n"
        "text{{font-family:'DejaVu Sans',Verdana,Arial,sans-serif;fill:#111111}}\n"
        ".title{{font-size:14px;font-weight:bold}}\n"
        ".name{{font-size:{4}px}}\n.note{{font-size:{4}px;fill:#333333}}\n"
        ".number{{font-size:{5}px;text-anchor:middle}}\n"
        ".cpu{{font-size:7.5px;text-anchor:middle;fill:#444444}}\n"
        "{6}"
        ".c0{{fill:url(#p0)}}\n.c2{{fill:url(#p2)}}\n.c3{{fill:url(#p3)}}\n"
        ".memory{{fill:#3d3d3d;stroke:#3d3d3d}}\n"
        ".memory.far{{fill:#ffffff;stroke-dasharray:3 2}}\n"
        ".bytes{{font-size:9px;fill:#ffffff}}\n.bytes.far{{fill:#111111}}\n"
        // Paper: no tints, which printers turn into mud; strokes and words carry the picture.
        "@media print{{rect{{fill-opacity:0.35}}.memory{{fill-opacity:1}}"
        "text{{fill:#000000}}.bytes{{fill:#ffffff}}.bytes.far{{fill:#000000}}}}\n"
        "</style>\n"
        "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n"
        "{7}</svg>\n",
        width, height, escape(head), escape(subtitle() + "; " + origin()), kFont, pu_font_, css,
        body_);
  }

  const Machine& m_;
  std::vector<Box> boxes_;
  std::vector<uint32_t> columns_;
  std::string body_;
  uint32_t largest_index_[topology::kKinds] = {};
  double pu_font_ = 9.5;
  double pu_width_ = 24;
  double pu_height_ = 18;
  bool renumbered_ = false;
};

}  // namespace

std::string topo_svg(const Machine& machine) { return SvgView(machine).run(); }

}  // namespace bosk::tools
