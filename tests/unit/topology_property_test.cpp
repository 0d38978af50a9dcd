// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random machines under random masks against a plain recomputation.
#include "topology_test_support.h"

#include "topology/raw_machine.h"

#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

namespace bosk::topology {
namespace {

constexpr Kind kInner[] = {Kind::kPackage, Kind::kNode, Kind::kDie,  Kind::kL3,
                           Kind::kL2,      Kind::kCore, Kind::kGroup};

/// A random tree of up to about 80 PUs: parents first, CPU numbers shuffled.
void random_raw(RawMachine* raw) {
  raw->add(Kind::kMachine, kNone, kNone);
  std::vector<std::pair<uint32_t, int>> open = {{0, 0}};  // object, depth
  std::vector<uint32_t> numbers(400);
  for (uint32_t i = 0; i < numbers.size(); i++) numbers[i] = i;
  const uint32_t stride = *rc::gen::element(1u, 3u, 7u, 11u);
  uint32_t next_number = *rc::gen::inRange(0u, 100u);
  uint32_t n_pus = 0;
  // Depth first, so that "left to right" is the order of the pushes.
  while (!open.empty()) {
    const auto [object, depth] = open.back();
    open.pop_back();
    uint32_t at = object;
    if (depth > 0) {
      const bool leaf = depth >= 5 || n_pus > 70 || *rc::gen::inRange(0, 4) == 0;
      if (leaf) {
        raw->add(Kind::kPu, object, next_number % 400);
        next_number += stride;
        n_pus++;
        continue;
      }
      at = raw->add(kInner[*rc::gen::inRange(0, 7)], object, kNone);
      // Kind::kNode is not an object of its own: readers attach a node to a group.
      if (raw->objects[at].kind == Kind::kNode) {
        raw->objects[at].kind = Kind::kGroup;
        RawNode node{at, raw->nodes.size * 2 + 1, 1000u + at, true, ""};
        RC_ASSERT(raw->nodes.push(node));
      }
    }
    const int n = *rc::gen::inRange(1, depth == 0 ? 5 : 4);
    for (int i = 0; i < n; i++) open.push_back({at, depth + 1});
  }
  if (*rc::gen::inRange(0, 3) == 0) {
    RC_ASSERT(raw->nodes.push({0, 100, 5, *rc::gen::arbitrary<bool>(), ""}));
  }
}

std::vector<uint32_t> all_cpus(const RawMachine& raw) {
  std::vector<uint32_t> cpus;
  for (const RawObject& object : raw.objects) {
    if (object.kind == Kind::kPu) cpus.push_back(object.os_index);
  }
  return cpus;
}

/// The allowed CPUs of an object, left to right.
std::vector<uint32_t> cpus_under(const RawMachine& raw, uint32_t top, const ProcessCpus& mask) {
  std::vector<uint32_t> cpus;
  for (uint32_t i = 0; i < raw.objects.size; i++) {
    if (raw.objects[i].kind != Kind::kPu || !mask.contains(raw.objects[i].os_index)) continue;
    for (uint32_t at = i; at != kNone; at = raw.objects[at].parent) {
      if (at == top) cpus.push_back(raw.objects[i].os_index);
    }
  }
  return cpus;
}

std::vector<uint32_t> cpus_of(const Machine& m, const Domain& d) {
  std::vector<uint32_t> cpus;
  for (uint32_t pu = d.first_pu; pu <= d.last_pu; pu++) cpus.push_back(m.os_of_pu(pu));
  return cpus;
}

RC_GTEST_PROP(RandomMachine, IsWhatTheRawObjectsSay, ()) {
  RawMachine raw;
  random_raw(&raw);
  const std::vector<uint32_t> cpus = all_cpus(raw);
  std::vector<uint32_t> allowed;
  const int keep = *rc::gen::inRange(1, 5);
  for (const uint32_t cpu : cpus) {
    if (keep == 4 || *rc::gen::inRange(0, keep) == 0) allowed.push_back(cpu);
  }
  if (allowed.empty()) allowed.push_back(cpus.front());
  ProcessCpus mask;
  Error error;
  RC_ASSERT(set_process_cpus(&mask, allowed.data(), static_cast<uint32_t>(allowed.size()), &error));
  const MachinePtr m(build_machine(raw, &mask, &error));
  RC_ASSERT(m != nullptr);
  RC_ASSERT(broken_rule(*m) == "");

  // The PUs are the allowed ones, left to right, and no others.
  RC_ASSERT(cpus_of(*m, m->root()) == allowed);
  RC_ASSERT(m->n_excluded == cpus.size() - allowed.size());

  // Every object that is left is exactly one domain (by its set of CPUs), which knows its kind; every
  // domain comes from an object.
  std::map<std::vector<uint32_t>, uint16_t> kinds;
  for (uint32_t i = 0; i < raw.objects.size; i++) {
    const std::vector<uint32_t> under = cpus_under(raw, i, mask);
    if (!under.empty())
      kinds[under] |= static_cast<uint16_t>(1u << static_cast<unsigned>(raw.objects[i].kind));
  }
  const size_t extra = m->n_pus == 1 ? 1 : 0;  // root and PU have the same CPUs
  RC_ASSERT(kinds.size() + extra == m->n_domains);
  for (const Domain& d : m->domains()) {
    const auto found = kinds.find(cpus_of(*m, d));
    RC_ASSERT(found != kinds.end());
    if (m->n_pus == 1) continue;
    const auto expected =
        static_cast<uint16_t>(found->second & ~(1u << static_cast<unsigned>(Kind::kGroup)));
    RC_ASSERT((d.kinds & expected) == expected);
  }
}

RC_GTEST_PROP(RandomMachine, LookupsAgreeWithParentLinks, ()) {
  RawMachine raw;
  random_raw(&raw);
  Error error;
  const MachinePtr m(build_machine(raw, nullptr, &error));
  RC_ASSERT(m != nullptr);
  for (int i = 0; i < 40; i++) {
    const Domain& a = m->domain_array[*rc::gen::inRange(0u, m->n_domains)];
    const Domain& b = m->domain_array[*rc::gen::inRange(0u, m->n_domains)];
    const Domain* common = &a;
    for (; common != nullptr; common = common->parent) {
      const Domain* up = &b;
      while (up != nullptr && up != common) up = up->parent;
      if (up == common) break;
    }
    RC_ASSERT(&m->common_ancestor(a, b) == common);
    RC_ASSERT(&m->common_ancestor(b, a) == common);
  }
  for (int i = 0; i < 40; i++) {
    const uint32_t a = *rc::gen::inRange(0u, m->n_pus);
    const uint32_t b = *rc::gen::inRange(0u, m->n_pus);
    const uint32_t c = *rc::gen::inRange(0u, m->n_pus);
    RC_ASSERT(m->distance(a, b) == m->distance(b, a));
    RC_ASSERT((m->distance(a, b) == 0) == (a == b));
    RC_ASSERT(m->distance(a, c) <= std::max(m->distance(a, b), m->distance(b, c)));
    for (const Level& level : m->levels()) {
      const Domain* d = m->domain_of_pu(a, level.kind);
      const bool together = m->domain_of_pu(b, level.kind) == d;
      RC_ASSERT(together == d->contains_pu(b));
    }
  }
}

/// The home of a PU, straight from the objects: the first node of the nearest object around it.
RC_GTEST_PROP(RandomMachine, EveryPuLivesAtItsNearestNode, ()) {
  RawMachine raw;
  random_raw(&raw);
  Error error;
  const MachinePtr m(build_machine(raw, nullptr, &error));
  RC_ASSERT(m != nullptr);
  for (uint32_t i = 0; i < raw.objects.size; i++) {
    if (raw.objects[i].kind != Kind::kPu) continue;
    uint32_t home = kNone;
    for (uint32_t at = i; at != kNone && home == kNone; at = raw.objects[at].parent) {
      for (uint32_t n = raw.nodes.size; n-- > 0;) {
        if (raw.nodes[n].object == at && raw.nodes[n].has_pus) home = raw.nodes[n].os_index;
      }
    }
    if (home == kNone) continue;  // no node covers it: any one will do
    const NumaNode& node = m->nodes()[m->node_of_pu(m->pu_of_os(raw.objects[i].os_index))];
    RC_ASSERT(node.os_index == home);
    RC_ASSERT(node.has_pus);
  }
}

RC_GTEST_PROP(RandomMachine, DistancesFollowTheirNodes, ()) {
  RawMachine raw;
  random_raw(&raw);
  const uint32_t n = raw.nodes.size;
  RC_PRE(n > 0u);
  for (uint32_t i = 0; i < n * n; i++) RC_ASSERT(raw.distances.push(*rc::gen::inRange(0u, 60u)));
  Error error;
  const MachinePtr m(build_machine(raw, nullptr, &error));
  RC_ASSERT(m != nullptr);
  bool assumed = false;
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < n; j++) {
      const uint32_t told = raw.distances[i * n + j];
      assumed = assumed || told == 0;
      const uint32_t expected = told != 0 ? told : i == j ? 10 : 20;
      RC_ASSERT(m->node_distance(m->node_of_os(raw.nodes[i].os_index),
                                 m->node_of_os(raw.nodes[j].os_index)) == expected);
    }
  }
  RC_ASSERT(m->distances_assumed == assumed);
}

RC_GTEST_PROP(ProcessCpusProperty, HoldsExactlyWhatWasPutIn, (std::set<uint16_t> numbers)) {
  const std::vector<uint32_t> cpus(numbers.begin(), numbers.end());
  ProcessCpus set;
  Error error;
  RC_ASSERT(set_process_cpus(&set, cpus.data(), static_cast<uint32_t>(cpus.size()), &error));
  RC_ASSERT(set.count == cpus.size());
  std::vector<uint32_t> walked;
  for (uint32_t c = set.next(0); c != ProcessCpus::kNoCpu; c = set.next(c + 1)) walked.push_back(c);
  RC_ASSERT(walked == cpus);
  for (const uint32_t cpu : cpus) RC_ASSERT(set.contains(cpu));
  RC_ASSERT(set.contains(kMaxOsIndex) == false);
  free_process_cpus(&set);
  RC_ASSERT(set.count == 0u && set.next(0) == ProcessCpus::kNoCpu);
}

/// A random chain of words is a machine with the product of their counts as PUs.
RC_GTEST_PROP(RandomSynthetic, HasTheProductOfItsCounts, ()) {
  std::string text;
  uint32_t product = 1;
  for (const char* word : {"package", "die", "node", "l3", "l2", "core", "pu"}) {
    if (*rc::gen::arbitrary<bool>()) continue;
    const uint32_t n = *rc::gen::inRange(1u, 4u);
    if (product * n > 1024) continue;
    product *= n;
    text += std::string(word) + ":" + std::to_string(n) + " ";
  }
  RC_PRE(!text.empty());
  MachineSource source;
  source.from = MachineSource::From::kSynthetic;
  source.text = text.c_str();
  Error error;
  const MachinePtr m(load_machine(source, &error));
  RC_ASSERT(m != nullptr);
  RC_ASSERT(m->n_pus == product);
  RC_ASSERT(broken_rule(*m) == "");
}

}  // namespace
}  // namespace bosk::topology
#endif
