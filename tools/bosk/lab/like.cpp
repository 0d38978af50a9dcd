// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// hwloc's tree as QEMU's packages × dies × cores × threads, with what does not fit said aloud.
#include "bosk/lab/like.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "bosk/lab/error.h"
#include "topology/source.h"

namespace bosk::tools::lab {
namespace {

using topology::Domain;
using topology::Kind;
using topology::Machine;

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kPerNode = uint64_t{1} << 30;  // memory of the lab's nodes, on average
constexpr uint64_t kLeast = 256 * kMib;

/// What could not be had, a line each.
class Notes {
 public:
  explicit Notes(std::string file) : file_(std::move(file)) {}
  void add(const std::string& text) const {
    fmt::print(stderr, "bosk: --like {}: {}\n", file_, text);
  }

 private:
  std::string file_;
};

/// How many PUs each domain of a level has; 0: not all the same, or there is no such level.
unsigned pus_each(const Machine& machine, Kind kind) {
  const topology::Level* level = machine.level(kind);
  if (level == nullptr) return 0;
  const unsigned first = machine.domain_array[level->domains[0]].n_pus();
  for (uint32_t i = 1; i < level->n_domains; ++i) {
    if (machine.domain_array[level->domains[i]].n_pus() != first) return 0;
  }
  return first;
}

/// The level that becomes QEMU's dies: what shares an L3 there.
unsigned pus_of_die(const Machine& machine, unsigned package, const Notes& notes) {
  unsigned die = 0;
  for (const Kind kind : {Kind::kL3, Kind::kDie}) {
    const unsigned pus = pus_each(machine, kind);
    if (pus == 0 || pus >= package || package % pus != 0) continue;
    if (die == 0) {
      die = pus;
      if (kind == Kind::kL3) notes.add("each L3 becomes a die: QEMU's L3s are those of dies");
    } else if (die != pus) {
      notes.add(fmt::format("dies of {} PUs are left out, L3s of {} kept: QEMU has one of both",
                            pus, die));
    }
  }
  return die == 0 ? package : die;
}

void copy_cores(const Machine& machine, const Notes& notes, Shape* shape) {
  unsigned package = pus_each(machine, Kind::kPackage);
  if (package == 0) {
    const topology::Level& level = *machine.level(Kind::kPackage);
    for (uint32_t i = 0; i < level.n_domains; ++i) {
      package = std::gcd(package, machine.domain_array[level.domains[i]].n_pus());
    }
    notes.add(
        fmt::format("its packages differ, QEMU's cannot: they become packages of {} PUs", package));
  }
  unsigned die = pus_of_die(machine, package, notes);
  unsigned core = pus_each(machine, Kind::kCore);
  if (core == 0 || die % core != 0) {
    notes.add("its cores differ in threads, QEMU's cannot: each PU becomes a core");
    core = 1;
  }
  if (machine.n_cpu_kinds > 1) notes.add("its cores are of several kinds, QEMU's are all alike");
  shape->packages = machine.n_pus / package;
  shape->dies = package / die;
  shape->cores = die / core;
  shape->threads = core;
  notes.add("caches have QEMU's sizes: L2 for each core, L3 for each die or package");
}

/// The nodes in the order in which the guest will number them: Linux's own, but the first one must be
/// able to start the machine.
std::vector<uint32_t> order_of_nodes(const Machine& machine, const Notes& notes) {
  std::vector<uint32_t> order(machine.n_nodes);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return machine.nodes()[a].os_index < machine.nodes()[b].os_index;
  });
  const auto can_start = std::find_if(order.begin(), order.end(), [&](uint32_t i) {
    return machine.nodes()[i].has_pus && machine.nodes()[i].bytes != 0;
  });
  if (can_start == order.end()) {
    throw LabError(kUsage, "--like: the machine has no node with CPUs and memory");
  }
  if (can_start != order.begin())
    notes.add("its first node cannot start a machine: another comes first");
  std::rotate(order.begin(), can_start, can_start + 1);
  for (uint32_t i = 0; i < order.size(); ++i) {
    if (machine.nodes()[order[i]].os_index == i) continue;
    notes.add("nodes are numbered from 0, in the order of their own numbers");
    break;
  }
  return order;
}

void copy_memory(const Machine& machine, const std::vector<uint32_t>& order,
                 const std::string& words, const Notes& notes, Shape* shape) {
  uint64_t total = 0;
  for (const topology::NumaNode& node : machine.nodes()) {
    total += node.bytes == topology::kUnknownBytes ? kPerNode : node.bytes;
  }
  const uint64_t wanted = std::min(total, kPerNode * machine.n_nodes);
  for (size_t i = 0; i < order.size(); ++i) {
    const uint64_t bytes = machine.nodes()[order[i]].bytes;
    if (bytes == 0) continue;
    const double share = bytes == topology::kUnknownBytes
                             ? 1.0 / machine.n_nodes
                             : static_cast<double>(bytes) / static_cast<double>(total);
    const uint64_t scaled =
        static_cast<uint64_t>(share * static_cast<double>(wanted)) / kMib * kMib;
    shape->nodes[i].bytes = std::max(scaled, kLeast);
  }
  if (!words.empty()) {
    set_memory(words, shape);
  } else if (wanted < total) {
    notes.add(fmt::format("{} GiB of memory become {} (--mem says otherwise)", total >> 30,
                          shape->bytes() >> 30));
  }
}

/// Memory beside CPUs of another node, as hwloc found it: both are attached to the same domain.
std::optional<size_t> beside(const Machine& machine, const std::vector<uint32_t>& order, size_t i) {
  for (size_t j = 0; j < order.size(); ++j) {
    const topology::NumaNode& other = machine.nodes()[order[j]];
    if (other.has_pus && other.domain == machine.nodes()[order[i]].domain) return j;
  }
  return std::nullopt;
}

void copy_nodes(const Machine& machine, const std::string& memory, const Notes& notes,
                Shape* shape) {
  const std::vector<uint32_t> order = order_of_nodes(machine, notes);
  shape->nodes.resize(order.size());
  bool clamped = false;
  for (size_t i = 0; i < order.size(); ++i) {
    NodeShape& node = shape->nodes[i];
    for (uint32_t pu = 0; pu < machine.n_pus; ++pu) {
      if (machine.node_of_pu(pu) != order[i]) continue;
      if (node.cpus == 0) node.first_cpu = pu;
      if (pu != node.first_cpu + node.cpus) {
        throw LabError(kUsage, fmt::format("--like: the PUs of node {} are not side by side",
                                           machine.nodes()[order[i]].os_index));
      }
      ++node.cpus;
    }
    if (node.cpus == 0) node.beside = beside(machine, order, i);
    node.bandwidth_mib = machine.nodes()[order[i]].bandwidth;
    shape->distances.emplace_back();
    for (size_t j = 0; j < order.size(); ++j) {
      constexpr uint32_t kNearest = 11, kFarthest = 254;
      const uint32_t told = machine.node_distance(order[i], order[j]);
      const uint32_t taken =
          i == j ? topology::kLocalDistance : std::clamp(told, kNearest, kFarthest);
      clamped = clamped || told != taken;
      shape->distances.back().push_back(taken);
    }
  }
  if (clamped)
    notes.add("distances are from 11 to 254, and 10 to a node itself: others are changed");
  if (machine.distances_assumed && machine.n_nodes > 1)
    notes.add("it tells no distances: 10 and 20");
  copy_memory(machine, order, memory, notes, shape);
  // Linux is told of all bandwidths or of none.
  if (std::any_of(shape->nodes.begin(), shape->nodes.end(),
                  [](const NodeShape& node) { return node.bandwidth_mib == 0; })) {
    for (NodeShape& node : shape->nodes) node.bandwidth_mib = 0;
  }
}

bool numbered_in_order(const Machine& machine) {
  for (uint32_t pu = 0; pu < machine.n_pus; ++pu) {
    if (machine.os_of_pu(pu) != pu) return false;
  }
  return true;
}

}  // namespace

Shape shape_like(const std::string& xml, const std::string& memory) {
  topology::MachineSource source;
  source.from = topology::MachineSource::From::kXmlFile;
  source.text = xml.c_str();
  source.restrict_to_process = false;
  topology::Error error;
  const auto release = [](topology::Machine* machine) { topology::free_machine(machine); };
  const std::unique_ptr<topology::Machine, decltype(release)> machine(
      topology::load_machine(source, &error), release);
  if (machine == nullptr) throw LabError(kUsage, fmt::format("--like: {}", error.text));

  const Notes notes(xml);
  Shape shape;
  copy_cores(*machine, notes, &shape);
  copy_nodes(*machine, memory, notes, &shape);
  if (!numbered_in_order(*machine)) notes.add("CPUs are numbered in the order of the tree");
  check_shape(shape);
  return shape;
}

}  // namespace bosk::tools::lab
