// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/learn/learn_json.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "bosk/learn/matrix_views.h"
#include "bosk/write_text.h"

namespace bosk::tools {
namespace {

using Json = nlohmann::ordered_json;

Json costs_json(const affinity::ObserverCosts& costs) {
  const auto part = [&](double ns) { return costs.program > 0 ? ns / costs.program : 0; };
  return {{"program", costs.program / 1e9}, {"share", costs.share()},
          {"faults", part(costs.faults)},   {"interrupts", part(costs.interrupts)},
          {"events", part(costs.events)},   {"observer", part(costs.observer)},
          {"moves", part(costs.moves)}};
}

Json observed_json(const affinity::ObserverCounts& counts) {
  return {{"processes", counts.processes},
          {"processes_without_faults", counts.processes_without_faults},
          {"processes_with_marks", counts.processes_with_marks},
          {"processes_asleep", counts.processes_asleep},
          {"processes_with_a_userfaultfd", counts.with_their_own},
          {"marks_cleared", counts.cleared},
          {"pages_armed", counts.armed},
          {"pages_written", counts.written},
          {"pages_of_nobody", counts.nobodys},
          {"events_lost", counts.events_lost},
          {"no_events", counts.no_events.empty() ? Json() : Json(counts.no_events)},
          {"huge_pages_split", counts.huge_split},
          {"huge_pages_joined", counts.huge_joined},
          {"pauses", counts.pauses}};
}

Json data_json(const affinity::DataMover::Counts& counts) {
  return {{"pages_moved", counts.moved},
          {"pages_refused", counts.refused},
          {"pages_bouncing", counts.bouncing},
          {"huge_pages_unsplit", counts.unsplit},
          {"processes_left", counts.left},
          {"forbidden", counts.is_forbidden ? Json(std::strerror(counts.why)) : Json()}};
}

Json threads_json(const affinity::ThreadMover::Counts& counts) {
  return {{"mappings", counts.mappings},
          {"threads_moved", counts.moved - counts.stay},
          {"kept_with_memory", counts.stay},
          {"threads_bound", counts.bound},
          {"threads_refused", counts.refused},
          {"processes_left", counts.left},
          {"members_wished_elsewhere", counts.wished}};
}

Json mapping_json(const affinity::Learner& learner, const topology::Machine& machine) {
  const affinity::Placement present = learner.placement(machine);
  const affinity::Proposal proposal = affinity::propose(learner.matrix(), machine, present);
  Json json = {{"is_worth", proposal.is_worth},
               {"gain", proposal.is_worth ? proposal.gain() : 0},
               {"by", proposal.by},
               {"moves", Json::array()}};
  if (!proposal.is_worth) return json;
  for (uint32_t thread = 0; thread < proposal.placement.size(); ++thread) {
    const uint32_t to = proposal.placement[thread];
    if (to == affinity::kNoPu || to == present[thread]) continue;
    json["moves"].push_back(
        {{"thread", learner.threads()[thread].number}, {"cpu", machine.os_of_pu(to)}});
  }
  return json;
}

Json matrix_json(const affinity::Learner& learner) {
  const std::vector<uint32_t> order = threads_in_order(learner);
  Json json = {{"threads", Json::array()}, {"shared", Json::array()}};
  for (size_t a = 0; a < order.size(); ++a) {
    const affinity::SeenThread& thread = learner.threads()[order[a]];
    json["threads"].push_back({{"thread", thread.number},
                               {"cpu", thread.cpu == affinity::kNoCpu ? Json() : Json(thread.cpu)},
                               {"accesses", thread.accesses}});
    for (size_t b = a + 1; b < order.size(); ++b)
      if (const uint32_t events = learner.matrix().at(order[a], order[b]); events != 0)
        json["shared"].push_back({a, b, events});
  }
  return json;
}

}  // namespace

Json learn_json(const Learnt& learnt, affinity::Learner* learner,
                const topology::Machine* machine) {
  Json json = {{"program", learnt.program},       {"elapsed", learnt.seconds},
               {"source", learnt.source},         {"not_seen", learnt.blind},
               {"accesses", learner->accesses()}, {"threads_seen", learner->threads().size()}};
  if (learnt.costs != nullptr) json["cost"] = costs_json(*learnt.costs);
  if (learnt.counts != nullptr) {
    json["observed"] = observed_json(*learnt.counts);
    if (learnt.moves_threads) json["threads"] = threads_json(learnt.counts->threads);
    if (learnt.moves_data) json["data"] = data_json(learnt.counts->data);
  }
  json["sharing"] = {{"amount", affinity::sharing_amount(learner->matrix())},
                     {"heterogeneity", affinity::heterogeneity(learner->matrix())}};
  uint64_t pages = 0;
  learner->pages().for_each_page([&](uint64_t, std::span<const uint32_t>) { ++pages; });
  json["pages"] = {{"seen", pages},
                   {"exclusive", affinity::average_exclusivity(learner->pages())},
                   {"exclusive_huge", affinity::average_huge_exclusivity(learner->pages())}};
  json["matrix"] = matrix_json(*learner);
  json["mapping"] = machine != nullptr && learner->matrix().threads() > 1
                        ? mapping_json(*learner, *machine)
                        : Json();
  return json;
}

int write_json(const std::string& name, const Json& json) {
  return write_text(name, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json off_json(const std::string& program, const std::string& why) {
  return {{"program", program}, {"off", why}};
}

}  // namespace bosk::tools
