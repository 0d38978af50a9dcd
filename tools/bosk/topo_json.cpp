// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk topo --json`.
#include <nlohmann/json.hpp>

#include "topo_views.h"

namespace bosk::tools {
namespace {

using Json = nlohmann::ordered_json;
using topology::Domain;
using topology::Machine;

/// What is not known is null, never 0.
Json known(uint32_t number) { return number == topology::kNone ? Json() : Json(number); }
Json known(uint64_t bytes) { return bytes == topology::kUnknownBytes ? Json() : Json(bytes); }

Json kinds_of(const Domain& d) {
  Json out = Json::array();
  for (unsigned k = 0; k < topology::kKinds; k++) {
    const auto kind = static_cast<topology::Kind>(k);
    if (d.stands_for(kind)) out.push_back(topology::kind_name(kind));
  }
  return out;
}

/// The whole tree under `d`. As deep as the hardware.
Json tree(const Machine& machine, const Domain& d) {
  Json out;
  out["id"] = d.id;
  out["kind"] = topology::kind_name(d.kind);
  out["index"] = d.index;
  out["os_index"] = known(d.os_index);
  out["kinds"] = kinds_of(d);
  out["depth"] = d.depth;
  out["height"] = d.height;
  out["pus"] = {d.first_pu, d.last_pu};
  out["os_cpus"] = number_list(os_cpus(machine, d));
  out["cpu_kind"] = d.cpu_kind < 0 ? Json() : Json(d.cpu_kind);
  out["local_bytes"] = known(d.local_bytes);
  out["total_bytes"] = known(d.total_bytes);
  Json nodes = Json::array();
  for (uint32_t i = 0; i < d.n_nodes; i++) nodes.push_back(d.first_node + i);
  out["nodes"] = nodes;
  Json children = Json::array();
  for (const Domain& child : d.children()) children.push_back(tree(machine, child));
  out["children"] = children;
  return out;
}

}  // namespace

std::string topo_json(const Machine& machine, const std::string& costs) {
  Json out;
  out["format"] = "bosk-topology";
  out["version"] = 1;
  out["source"] = machine.source;
  out["reader"] = machine.reader;
  out["this_system"] = machine.this_system;
  out["shape"] = shape_in_words(machine);
  out["pus"] = machine.n_pus;
  out["excluded_pus"] = machine.n_excluded;
  out["levels"] = Json::array();
  for (const topology::Level& level : machine.levels()) {
    Json one;
    one["kind"] = topology::kind_name(level.kind);
    one["folded"] = !level.kept;
    one["count"] = level.n_domains;
    one["domains"] = std::vector<uint32_t>(level.domains, level.domains + level.n_domains);
    out["levels"].push_back(one);
  }
  out["nodes"] = Json::array();
  for (uint32_t i = 0; i < machine.n_nodes; i++) {
    const topology::NumaNode& node = machine.node_array[i];
    std::vector<uint32_t> pus;
    for (uint32_t pu = 0; pu < machine.n_pus; pu++) {
      if (machine.node_of_pu(pu) == i) pus.push_back(pu);
    }
    Json one;
    one["index"] = i;
    one["os_index"] = node.os_index;
    one["domain"] = node.domain;
    one["bytes"] = known(node.bytes);
    one["memory_only"] = !node.has_pus;
    one["assumed"] = node.assumed;
    one["subtype"] = node.subtype;
    one["pus"] = number_list(pus);
    out["nodes"].push_back(one);
  }
  out["distances_assumed"] = machine.distances_assumed;
  out["distances"] = Json::array();
  for (uint32_t i = 0; i < machine.n_nodes; i++) {
    const uint32_t* row = machine.distance_array + uint64_t{i} * machine.n_nodes;
    out["distances"].push_back(std::vector<uint32_t>(row, row + machine.n_nodes));
  }
  out["cpu_kinds"] = Json::array();
  for (const topology::CpuKind& kind : machine.cpu_kinds()) {
    Json one;
    one["efficiency"] = kind.efficiency < 0 ? Json() : Json(kind.efficiency);
    one["core_type"] = kind.core_type;
    one["max_mhz"] = kind.max_mhz == 0 ? Json() : Json(kind.max_mhz);
    one["pus"] = kind.n_pus;
    out["cpu_kinds"].push_back(one);
  }
  if (!costs.empty()) out["costs"] = Json::parse(costs);
  out["tree"] = tree(machine, machine.root());
  // File names need not be UTF-8.
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bosk::tools
