// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk topo` as text.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topo_views.h"

namespace bosk::tools {
namespace {

using topology::Domain;
using topology::Kind;
using topology::Level;
using topology::Machine;
using topology::NumaNode;

std::string range(uint32_t first, uint32_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

/// A column is as wide as what people see, not as its bytes.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

class TreeText {
 public:
  explicit TreeText(const Machine& machine) : machine_(machine), shape_(shapes(machine)) {}

  std::string run() {
    const Domain& root = machine_.root();
    const std::string also = folded_kinds(root);
    add(also.empty() ? "machine" : fmt::format("machine (= {})", also),
        fmt::format("PU {}", range(0, root.last_pu)));
    children(root, "", false);
    size_t width = 0;
    for (const auto& line : lines_) width = std::max(width, width_of(line.first));
    std::string out;
    for (const auto& [left, right] : lines_) {
      out += left;
      if (!right.empty()) out += std::string(width + 3 - width_of(left), ' ') + right;
      out += '\n';
    }
    return out;
  }

 private:
  void add(const std::string& left, const std::string& right) { lines_.emplace_back(left, right); }

  /// One line per run of like siblings. `inside_many`: the parent stands for several, so that numbers
  /// would be those of the first of them only.
  void children(const Domain& parent, const std::string& indent, bool inside_many) {
    const auto all = parent.children();
    for (size_t i = 0; i < all.size();) {
      size_t end = i + 1;
      while (end < all.size() && shape_[all[end].id] == shape_[all[i].id]) end++;
      const bool last = end == all.size();
      describe(all.subspan(i, end - i), indent + (last ? "└─ " : "├─ "), inside_many);
      children(all[i], indent + (last ? "   " : "│  "), inside_many || end - i > 1);
      i = end;
    }
  }

  void describe(std::span<const Domain> like, const std::string& indent, bool inside_many) {
    const Domain& first = like.front();
    const uint64_t n = like.size();
    std::string left = indent;
    if (inside_many) {
      left += fmt::format("{} {}", n, kind_label(first.kind, n));
    } else {
      left +=
          fmt::format("{} {}", kind_label(first.kind, n), range(first.index, like.back().index));
    }
    const std::string also = folded_kinds(first);
    if (!also.empty()) left += fmt::format(" (= {})", also);
    const bool kind_changes =
        machine_.n_cpu_kinds > 1 && first.cpu_kind >= 0 && first.parent->cpu_kind != first.cpu_kind;
    if (kind_changes) left += fmt::format(" [kind {}]", first.cpu_kind);
    std::string right;
    if (inside_many) {
      if (!first.is_pu()) right = fmt::format("{} PUs{}", first.n_pus(), n > 1 ? " each" : "");
    } else {
      right = "PU " + range(first.first_pu, first.last_pu);
      if (first.is_pu()) {
        right = "PU " + range(first.first_pu, like.back().last_pu);
      } else if (n <= 4) {
        for (size_t i = 1; i < n; i++) right += " | " + range(like[i].first_pu, like[i].last_pu);
      } else {
        right += fmt::format(" | {} | … | {}", range(like[1].first_pu, like[1].last_pu),
                             range(like.back().first_pu, like.back().last_pu));
      }
    }
    add(left, right);
  }

  const Machine& machine_;
  std::vector<uint32_t> shape_;
  std::vector<std::pair<std::string, std::string>> lines_;
};

std::string head(const Machine& m) {
  const bool one_level = m.root().height == 1;
  std::string out = "machine: " + shape_in_words(m);
  if (!one_level && out.find("not all alike") == std::string::npos) {
    out += fmt::format(" = {} PUs", m.n_pus);
  }
  out += fmt::format("; {} NUMA {}", m.n_nodes, m.n_nodes == 1 ? "node" : "nodes");
  if (m.root().total_bytes != topology::kUnknownBytes) {
    out += ", " + bytes_label(m.root().total_bytes);
  }
  out += fmt::format("\nsource:  {}, read by {}", m.source, m.reader);
  if (m.n_excluded != 0) {
    out += fmt::format("; {} of {} PUs: the affinity mask forbids the others", m.n_pus,
                       m.n_pus + m.n_excluded);
  }
  return out + "\n";
}

std::string cpus(const Machine& m) {
  const std::vector<uint32_t> numbers = os_cpus(m, m.root());
  bool same = true;
  for (uint32_t pu = 0; pu < m.n_pus; pu++) same = same && numbers[pu] == pu;
  if (same) return "";
  std::string list = number_list(numbers);
  if (list.size() > 160) list = list.substr(0, list.rfind(',', 160)) + ",… (all: --json)";
  return fmt::format("Linux CPUs in PU order: {}\n", list);
}

/// What a folded level is: the kinds of the domains that stand for it.
std::string stand_ins(const Machine& m, const Level& level) {
  std::string out;
  for (unsigned k = 0; k < topology::kKinds; k++) {
    const Kind kind = static_cast<Kind>(k);
    for (uint32_t i = 0; i < level.n_domains; i++) {
      if (m.domain_array[level.domains[i]].kind != kind || kind == level.kind) continue;
      out += (out.empty() ? "" : ", ") + kind_label(kind);
      break;
    }
  }
  return out;
}

std::string levels(const Machine& m) {
  std::string out = "levels: ";
  for (const Level& level : m.levels()) {
    if (&level != m.level_array) out += " · ";
    out += fmt::format("{} {}", level.n_domains, kind_label(level.kind, level.n_domains));
    const std::string others = stand_ins(m, level);
    if (!others.empty()) out += fmt::format(" ({} {})", level.kept ? "or" : "=", others);
  }
  return out + "\n";
}

std::string kinds(const Machine& m) {
  std::string out;
  for (uint32_t k = 0; m.n_cpu_kinds > 1 && k < m.n_cpu_kinds; k++) {
    const topology::CpuKind& kind = m.cpu_kind_array[k];
    out += fmt::format("kind {}:  {} {}", k, kind.n_pus, kind_label(Kind::kPu, kind.n_pus));
    if (kind.core_type[0] != '\0') out += fmt::format(", {}", kind.core_type);
    if (kind.max_mhz != 0) out += fmt::format(", up to {} MHz", kind.max_mhz);
    if (kind.efficiency >= 0)
      out += fmt::format(", efficiency rank {} (0: most frugal)", kind.efficiency);
    out += "\n";
  }
  return out;
}

/// A domain named node is left out: its number counts domains, not Linux's nodes.
std::string where(const Machine& m, const NumaNode& node) {
  const Domain& d = m.domain_array[node.domain];
  if (d.kind == Kind::kMachine) return "machine";
  const std::string pus = "PU " + range(d.first_pu, d.last_pu);
  if (d.kind == Kind::kNode || d.kind == Kind::kPu) return pus;
  return fmt::format("{} {}, {}", kind_label(d.kind), d.index, pus);
}

/// Runs of nodes that differ only in their numbers share a line.
std::string memory(const Machine& m) {
  std::string out = "memory:\n";
  const auto like = [&](const NumaNode& a, const NumaNode& b) {
    const Domain& x = m.domain_array[a.domain];
    const Domain& y = m.domain_array[b.domain];
    return a.bytes == b.bytes && a.has_pus && b.has_pus && x.kind == y.kind && x.id != y.id &&
           x.n_pus() == y.n_pus() && b.os_index == a.os_index + 1 &&
           std::string(a.subtype) == b.subtype;
  };
  for (uint32_t i = 0; i < m.n_nodes;) {
    const NumaNode& node = m.node_array[i];
    uint32_t end = i + 1;
    while (end < m.n_nodes && like(m.node_array[end - 1], m.node_array[end])) end++;
    if (end - i < 5) end = i + 1;
    const NumaNode& last = m.node_array[end - 1];
    out += fmt::format("  node {:<7} {:>12}{}", range(node.os_index, last.os_index),
                       node.assumed ? "not told" : bytes_label(node.bytes),
                       end - i > 1 ? " each" : "");
    if (node.subtype[0] != '\0') out += fmt::format(" {}", node.subtype);
    out += fmt::format("  {}", where(m, node));
    if (end - i > 1) out += fmt::format(" … {}", where(m, last));
    if (!node.has_pus) out += ", memory only";
    out += "\n";
    i = end;
  }
  return out;
}

std::string distances(const Machine& m) {
  if (m.n_nodes < 2) return "";
  const std::string note = m.distances_assumed ? " (not told by the system: assumed)" : "";
  if (m.n_nodes > kLargestTable) {
    std::map<uint32_t, uint64_t> pairs;
    for (uint32_t i = 0; i < m.n_nodes; i++) {
      for (uint32_t j = 0; j < m.n_nodes; j++) pairs[m.node_distance(i, j)]++;
    }
    std::string out = fmt::format("distances{}: ", note);
    bool first = true;
    for (const auto& [value, count] : pairs) {
      out += fmt::format("{}{} between {} pairs", first ? "" : ", ", value, count);
      first = false;
    }
    return out + " (all: --json)\n";
  }
  std::string out = fmt::format("distances{}:\n  from\\to", note);
  for (uint32_t j = 0; j < m.n_nodes; j++) out += fmt::format(" {:>5}", m.node_array[j].os_index);
  out += "\n";
  for (uint32_t i = 0; i < m.n_nodes; i++) {
    out += fmt::format("  {:>7}", m.node_array[i].os_index);
    for (uint32_t j = 0; j < m.n_nodes; j++) out += fmt::format(" {:>5}", m.node_distance(i, j));
    out += "\n";
  }
  return out;
}

}  // namespace

std::string topo_text(const Machine& machine) {
  return head(machine) + "\n" + TreeText(machine).run() + "\n" + cpus(machine) + levels(machine) +
         kinds(machine) + memory(machine) + distances(machine);
}

}  // namespace bosk::tools
