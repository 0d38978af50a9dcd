// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words to shapes, and what is possible.
#include "bosk/lab/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "bosk/lab/error.h"

namespace bosk::tools::lab {
namespace {

// Linux without interrupt remapping reaches CPUs by 8 bits, and QEMU's q35 has no more than 288.
constexpr unsigned kMostCpus = 255;
// The smaller of what our own kernel has (NODES_SHIFT 6) and QEMU (128).
constexpr unsigned kMostNodes = 64;
constexpr uint64_t kMib = uint64_t{1} << 20;
// Linux drops nodes of less than 4 MiB; below this its own tables may not find room.
constexpr uint64_t kLeastNode = 64 * kMib;
// Kernel, its tables and the initial file system are loaded into the first node.
constexpr uint64_t kLeastFirstNode = 256 * kMib;

std::optional<uint64_t> parse_number(const std::string& text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (size_t comma = text.find(','); comma != std::string::npos; comma = text.find(',', at)) {
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  parts.push_back(text.substr(at));
  return parts;
}

/// One word for all nodes, or one for each.
std::vector<std::string> for_each_node(const std::string& text, size_t count,
                                       const std::string& option) {
  std::vector<std::string> parts = split(text);
  if (parts.size() == 1) parts.resize(count, parts[0]);
  if (parts.size() != count) {
    throw LabError(
        kUsage, fmt::format("{} {}: {} values for {} nodes; give one for all, or one each", option,
                            text, parts.size(), count));
  }
  return parts;
}

unsigned parse_count(const std::string& text, const std::string& option, unsigned most) {
  const std::optional<uint64_t> value = parse_number(text);
  if (!value) throw LabError(kUsage, fmt::format("{} {}: not a number", option, text));
  if (*value > most) {
    throw LabError(kUsage, fmt::format("{} {}: there can be {} at most", option, text, most));
  }
  return static_cast<unsigned>(*value);
}

bool same(const std::vector<std::string>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const auto& part) { return part == parts[0]; });
}

}  // namespace

uint64_t parse_bytes(const std::string& text, const std::string& option) {
  const size_t end = text.find_first_not_of("0123456789");
  const std::optional<uint64_t> value = parse_number(text.substr(0, end));
  const std::string unit = end == std::string::npos ? "M" : text.substr(end);
  uint64_t factor = 0;
  if (unit == "M" || unit == "m" || unit == "MiB" || unit == "MB") factor = kMib;
  if (unit == "G" || unit == "g" || unit == "GiB" || unit == "GB") factor = kMib << 10;
  if (!value || factor == 0) {
    throw LabError(kUsage, fmt::format("{} {}: not a size such as 1G or 512M", option, text));
  }
  if (*value > (uint64_t{1} << 40) / factor) {
    throw LabError(kUsage, fmt::format("{} {}: more than a terabyte", option, text));
  }
  return *value * factor;
}

uint64_t Shape::bytes() const {
  return std::accumulate(nodes.begin(), nodes.end(), uint64_t{0},
                         [](uint64_t sum, const NodeShape& node) { return sum + node.bytes; });
}

std::string Shape::text() const {
  std::vector<std::string> cpu_words;
  std::vector<std::string> memory_words;
  for (const NodeShape& node : nodes) {
    cpu_words.push_back(std::to_string(node.cpus));
    memory_words.push_back(node.bytes % (kMib << 10) == 0
                               ? fmt::format("{} GiB", node.bytes / (kMib << 10))
                               : fmt::format("{} MiB", node.bytes / kMib));
  }
  return fmt::format("{} node{} with {} CPU{} and {}", nodes.size(), nodes.size() == 1 ? "" : "s",
                     same(cpu_words) ? cpu_words[0] : fmt::format("{}", fmt::join(cpu_words, ", ")),
                     same(cpu_words) && nodes[0].cpus == 1 ? "" : "s",
                     same(memory_words) ? memory_words[0] + (nodes.size() > 1 ? " each" : "")
                                        : fmt::format("{}", fmt::join(memory_words, ", ")));
}

void set_memory(const std::string& words, Shape* shape) {
  const auto sizes = for_each_node(words, shape->nodes.size(), "--mem");
  for (size_t i = 0; i < sizes.size(); ++i) shape->nodes[i].bytes = parse_bytes(sizes[i], "--mem");
}

Shape shape_from_words(const ShapeWords& words) {
  Shape shape;
  const unsigned count = parse_count(words.nodes, "--nodes", kMostNodes);
  if (count == 0) throw LabError(kUsage, "--nodes 0: a machine has at least one node");
  shape.nodes.resize(count);
  const std::vector<std::string> cpus =
      for_each_node(words.cpus_per_node, count, "--cpus-per-node");
  set_memory(words.mem, &shape);
  unsigned next_cpu = 0;
  unsigned cores = 0;
  for (unsigned i = 0; i < count; ++i) {
    NodeShape& node = shape.nodes[i];
    node.first_cpu = next_cpu;
    node.cpus = parse_count(cpus[i], "--cpus-per-node", kMostCpus);
    next_cpu += node.cpus;
    cores = std::gcd(cores, node.cpus);
  }
  if (next_cpu == 0) throw LabError(kUsage, "--cpus-per-node 0: a machine has at least one CPU");
  if (!words.bandwidth.empty()) {
    const auto bandwidths = for_each_node(words.bandwidth, count, "--bandwidth");
    for (unsigned i = 0; i < count; ++i) {
      shape.nodes[i].bandwidth_mib = parse_bytes(bandwidths[i], "--bandwidth") / kMib;
    }
  }
  // QEMU's packages are all alike, and no package should lie on two nodes: the largest that fit all.
  shape.cores = cores;
  shape.packages = next_cpu / cores;
  shape.distances = distances_from(words.distances, count);
  check_shape(shape);
  return shape;
}

void check_shape(const Shape& shape) {
  if (shape.cpus() > kMostCpus) {
    throw LabError(kUsage,
                   fmt::format("{} CPUs: the lab can have {} at most", shape.cpus(), kMostCpus));
  }
  if (shape.nodes.size() > kMostNodes) {
    throw LabError(kUsage, fmt::format("{} nodes: the lab can have {} at most", shape.nodes.size(),
                                       kMostNodes));
  }
  if (shape.nodes[0].bytes < kLeastFirstNode) {
    throw LabError(kUsage,
                   fmt::format("node 0 needs {} MiB of memory at least: the kernel is loaded there",
                               kLeastFirstNode / kMib));
  }
  for (size_t i = 0; i < shape.nodes.size(); ++i) {
    const NodeShape& node = shape.nodes[i];
    if (node.bytes == 0 && node.cpus == 0) {
      throw LabError(kUsage, fmt::format("node {} has neither CPUs nor memory", i));
    }
    if (node.bytes != 0 && node.bytes < kLeastNode) {
      throw LabError(kUsage, fmt::format("node {} needs {} MiB of memory at least, or none at all",
                                         i, kLeastNode / kMib));
    }
  }
  if (shape.nodes[0].cpus == 0) {
    throw LabError(kUsage, "node 0 needs a CPU: it is the one that starts the machine");
  }
}

}  // namespace bosk::tools::lab
