// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Labels and shapes that the views of `bosk topo` share.
#include <fmt/format.h>

#include <map>

#include "topo_views.h"

namespace bosk::tools {

using topology::Domain;
using topology::Kind;
using topology::Machine;

std::string kind_label(Kind kind, uint64_t count) {
  switch (kind) {
    case Kind::kPu:
      return count == 1 ? "PU" : "PUs";
    case Kind::kL3:
      return count == 1 ? "L3" : "L3s";
    case Kind::kL2:
      return count == 1 ? "L2" : "L2s";
    default:
      return std::string(topology::kind_name(kind)) + (count == 1 ? "" : "s");
  }
}

std::string bytes_label(uint64_t bytes) {
  if (bytes == topology::kUnknownBytes) return "unknown size";
  if (bytes >= uint64_t{1} << 40)
    return fmt::format("{:.1f} TiB", double(bytes) / double(1ull << 40));
  if (bytes >= 10ull << 30) return fmt::format("{:.0f} GiB", double(bytes) / double(1u << 30));
  if (bytes >= 1ull << 30) return fmt::format("{:.1f} GiB", double(bytes) / double(1u << 30));
  return fmt::format("{:.0f} MiB", double(bytes) / double(1u << 20));
}

std::string number_list(const std::vector<uint32_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) end++;
    if (!out.empty()) out += ',';
    out += end == i + 1 ? fmt::format("{}", numbers[i])
                        : fmt::format("{}-{}", numbers[i], numbers[end - 1]);
    i = end;
  }
  return out;
}

std::vector<uint32_t> os_cpus(const Machine& machine, const Domain& domain) {
  std::vector<uint32_t> cpus;
  for (uint32_t pu = domain.first_pu; pu <= domain.last_pu; pu++) {
    cpus.push_back(machine.os_of_pu(pu));
  }
  return cpus;
}

std::string folded_kinds(const Domain& domain) {
  std::string out;
  for (unsigned k = 0; k < topology::kKinds; k++) {
    const Kind kind = static_cast<Kind>(k);
    if (kind == domain.kind || !domain.stands_for(kind)) continue;
    if (!out.empty()) out += ", ";
    out += kind_label(kind);
  }
  return out;
}

std::vector<uint32_t> shapes(const Machine& machine) {
  std::map<std::string, uint32_t> known;
  std::vector<uint32_t> shape(machine.n_domains);
  // Breadth first: children have larger ids than their parents.
  for (uint32_t id = machine.n_domains; id-- > 0;) {
    const Domain& d = machine.domain_array[id];
    std::string key =
        fmt::format("{},{},{},{}", static_cast<int>(d.kind), d.kinds, d.cpu_kind, d.n_nodes);
    for (const Domain& child : d.children()) key += fmt::format(" {}", shape[child.id]);
    shape[id] = known.emplace(key, static_cast<uint32_t>(known.size())).first->second;
  }
  return shape;
}

std::string shape_in_words(const Machine& machine) {
  const std::vector<uint32_t> shape = shapes(machine);
  std::string alike;
  for (const Domain* d = &machine.root(); d != nullptr; d = d->first_child) {
    if (d->n_children == 0) return alike;
    for (const Domain& child : d->children()) {
      if (shape[child.id] != shape[d->first_child->id]) {
        std::string counts;
        for (const topology::Level& level : machine.levels()) {
          if (level.kind == Kind::kMachine || !level.kept) continue;
          if (!counts.empty()) counts += ", ";
          uint32_t n = 0;
          for (const Domain& domain : machine.domains()) n += domain.kind == level.kind;
          counts += fmt::format("{} {}", n, kind_label(level.kind, n));
        }
        return counts + ", not all alike";
      }
    }
    if (!alike.empty()) alike += " × ";
    alike += fmt::format("{} {}", d->n_children, kind_label(d->first_child->kind, d->n_children));
  }
  return alike;
}

}  // namespace bosk::tools
