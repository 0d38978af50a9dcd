// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine as a tree: folding, numbering, levels, NUMA nodes, on machines of every sort.
#include "topology_test_support.h"

#include "topology/raw_machine.h"

namespace bosk::topology {
namespace {

std::vector<Kind> level_kinds(const Machine& m) {
  std::vector<Kind> kinds;
  for (const Level& level : m.levels()) kinds.push_back(level.kind);
  return kinds;
}

TEST(Fold, TheMachineOfTheIssue) {
  const MachinePtr m = synthetic("node:4 core:4 pu:1");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->n_pus, 16u);
  EXPECT_EQ(m->n_domains, 1u + 4u + 16u);
  EXPECT_EQ(m->n_nodes, 4u);
  EXPECT_EQ(count_kind(*m, Kind::kNode), 4u);
  EXPECT_EQ(count_kind(*m, Kind::kCore), 0u);  // one PU each: folded into it
  EXPECT_TRUE(m->pu(5).stands_for(Kind::kCore));
  EXPECT_EQ(m->level(Kind::kCore)->n_domains, 16u);
  EXPECT_FALSE(m->level(Kind::kCore)->kept);
  EXPECT_EQ(m->domain_of_pu(5, Kind::kNode)->index, 1u);
  EXPECT_EQ(m->domain_of_pu(5, Kind::kNode)->os_index, 1u);
  EXPECT_EQ(m->node_of_pu(5), 1u);
  EXPECT_FALSE(m->this_system);
}

TEST(Fold, PackageWithOneL3AndOneNodeIsAllThree) {
  const MachinePtr m = xml("two-packages.xml");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->n_domains, 1u + 2u + 8u + 16u);
  const Domain& package = m->root().children()[1];
  EXPECT_EQ(package.kind, Kind::kPackage);
  EXPECT_TRUE(package.stands_for(Kind::kNode));
  EXPECT_TRUE(package.stands_for(Kind::kL3));
  EXPECT_FALSE(package.stands_for(Kind::kCore));
  for (const char* word : {"package", "socket", "NUMA", "l3", "L3Cache"}) {
    const Level* level = m->find_level(word, nullptr);
    ASSERT_NE(level, nullptr) << word;
    EXPECT_EQ(level->n_domains, 2u) << word;
    EXPECT_EQ(m->domain_array + level->domains[1], &package) << word;
  }
  EXPECT_EQ(package.local_bytes, uint64_t{32} << 30);
  EXPECT_EQ(m->root().local_bytes, 0u);
  EXPECT_EQ(m->root().total_bytes, uint64_t{64} << 30);
  EXPECT_EQ(m->smt_rank(6), 0u);
  EXPECT_EQ(m->smt_rank(7), 1u);
}

TEST(Fold, UniformMemoryIsTheRoot) {
  const MachinePtr m = xml("uma.xml");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->n_domains, 3u);
  for (const char* word : {"machine", "package", "node", "l3"}) {
    EXPECT_EQ(m->find_level(word, nullptr)->domains[0], 0u) << word;
  }
  EXPECT_EQ(m->level(Kind::kL2)->n_domains, 2u);
  EXPECT_EQ(m->cache_level().kind, Kind::kL3);
}

TEST(Fold, OnePuIsARootAndAPu) {
  for (const MachinePtr& m : {xml("one-pu.xml"), synthetic("pu:1")}) {
    ASSERT_NE(m, nullptr);
    EXPECT_EQ(broken_rule(*m), "");
    EXPECT_EQ(m->n_domains, 2u);
    EXPECT_EQ(m->root().n_children, 1u);
    EXPECT_TRUE(m->pu(0).stands_for(Kind::kCore));
    EXPECT_TRUE(m->root().stands_for(Kind::kNode));
    EXPECT_EQ(m->distance(0, 0), 0u);
    EXPECT_EQ(&m->common_ancestor(m->pu(0), m->root()), &m->root());
    EXPECT_EQ(&m->common_ancestor(m->root(), m->pu(0)), &m->root());
    EXPECT_EQ(&m->common_ancestor(m->pu(0), m->pu(0)), &m->pu(0));
  }
}

TEST(Fold, NodeAbovePackages) {
  const MachinePtr m = xml("node-above-package.xml");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(level_kinds(*m), (std::vector<Kind>{Kind::kMachine, Kind::kNode, Kind::kPackage,
                                                Kind::kCore, Kind::kPu}));
  EXPECT_EQ(m->domain_of_pu(7, Kind::kPackage)->parent, m->domain_of_pu(7, Kind::kNode));
}

TEST(Fold, NodesInsidePackagesAndAroundL3s) {
  const MachinePtr m = xml("nps.xml");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(level_kinds(*m), (std::vector<Kind>{Kind::kMachine, Kind::kPackage, Kind::kNode,
                                                Kind::kL3, Kind::kCore, Kind::kPu}));
  EXPECT_EQ(m->level(Kind::kNode)->n_domains, 4u);
  EXPECT_EQ(m->level(Kind::kL3)->n_domains, 8u);
  EXPECT_EQ(m->distance(0, 1), 1u);   // same L3
  EXPECT_EQ(m->distance(0, 2), 2u);   // same node
  EXPECT_EQ(m->distance(0, 4), 3u);   // same package
  EXPECT_EQ(m->distance(0, 15), 4u);  // same machine
}

TEST(Fold, AsymmetricPackages) {
  const MachinePtr m = xml("asymmetric.xml");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->n_pus, 11u);
  EXPECT_EQ(m->root().children()[0].n_children, 4u);
  EXPECT_EQ(m->root().children()[1].n_children, 2u);
  // The core that lost its second PU is the PU.
  EXPECT_EQ(m->level(Kind::kCore)->n_domains, 6u);
  EXPECT_TRUE(m->level(Kind::kCore)->kept);
  EXPECT_EQ(m->domain_of_pu(10, Kind::kCore), &m->pu(10));
  EXPECT_EQ(m->pu(10).depth, 2u);
  EXPECT_EQ(m->pu(9).depth, 3u);
  EXPECT_EQ(m->distance(10, 9), 2u);
  EXPECT_EQ(m->distance(10, 0), 3u);
}

TEST(Fold, HybridCores) {
  const MachinePtr m = xml("hybrid.xml");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  ASSERT_EQ(m->n_cpu_kinds, 2u);
  EXPECT_STREQ(m->cpu_kinds()[0].core_type, "IntelAtom");
  EXPECT_STREQ(m->cpu_kinds()[1].core_type, "IntelCore");
  EXPECT_LT(m->cpu_kinds()[0].efficiency, m->cpu_kinds()[1].efficiency);
  EXPECT_EQ(m->cpu_kinds()[0].n_pus, 8u);
  EXPECT_EQ(m->root().cpu_kind, -1);
  EXPECT_EQ(m->pu(0).cpu_kind, 1);
  EXPECT_EQ(m->domain_of_pu(11, Kind::kL2)->cpu_kind, 0);
  EXPECT_EQ(m->level(Kind::kL2)->n_domains, 4u);
  EXPECT_EQ(m->level(Kind::kCore)->n_domains, 10u);
  EXPECT_EQ(m->os_of_pu(5), 18u);
  EXPECT_EQ(m->pu_of_os(18), 5u);
  EXPECT_EQ(m->pu_of_os(17), kNone);
}

TEST(Levels, WhereAKindIsMissingTheLargestDomainWithoutItStandsIn) {
  const MachinePtr m = xml("low-power.xml");  // two cores around an L2, outside the only L3
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  const Level* l3 = m->level(Kind::kL3);
  ASSERT_NE(l3, nullptr);
  EXPECT_EQ(l3->n_domains, 2u);
  EXPECT_EQ(m->domain_of_pu(3, Kind::kL3)->kind, Kind::kL3);
  EXPECT_EQ(m->domain_of_pu(4, Kind::kL3)->kind, Kind::kL2);
  EXPECT_EQ(m->domain_of_pu(4, Kind::kL3)->n_pus(), 2u);
}

TEST(Levels, MissingAndUnknownOnesAreNamed) {
  const MachinePtr m = synthetic("node:2 core:2 pu:1");
  ASSERT_NE(m, nullptr);
  Error error;
  EXPECT_EQ(m->find_level("l3", &error), nullptr);
  EXPECT_STREQ(error.text,
               "this machine has no level l3 (it has: machine, package, node, core, pu)");
  EXPECT_EQ(m->find_level("shelf", &error), nullptr);
  EXPECT_STREQ(error.text,
               "\"shelf\" is not a level (this machine has: machine, package, node, core, pu)");
  EXPECT_EQ(m->find_level("", &error), nullptr);
  EXPECT_EQ(m->domain_of_pu(0, Kind::kL3), nullptr);
  EXPECT_EQ(m->cache_level().kind, Kind::kCore);
}

TEST(Levels, WordsOfKinds) {
  for (unsigned k = 0; k < kKinds; k++) {
    Kind parsed = Kind::kMachine;
    EXPECT_TRUE(parse_kind(kind_name(static_cast<Kind>(k)), &parsed));
    EXPECT_EQ(parsed, static_cast<Kind>(k));
  }
  Kind kind = Kind::kDie;
  EXPECT_TRUE(parse_kind("Sockets", &kind));
  EXPECT_EQ(kind, Kind::kPackage);
  EXPECT_TRUE(parse_kind("threads", &kind));
  EXPECT_EQ(kind, Kind::kPu);
  EXPECT_FALSE(parse_kind("core ", &kind));
  EXPECT_FALSE(parse_kind("llc", &kind));
  EXPECT_EQ(kind, Kind::kPu);
}

TEST(Nodes, TwoOnOneObject) {
  const MachinePtr m = xml("hbm.xml");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->n_nodes, 8u);
  EXPECT_EQ(m->level(Kind::kNode)->n_domains, 4u);
  const Domain& d = *m->domain_of_pu(4, Kind::kNode);
  EXPECT_EQ(d.n_nodes, 2u);
  EXPECT_EQ(d.local_bytes, uint64_t{28} << 30);
  // The first one is the PUs' home.
  EXPECT_TRUE(m->nodes_of(d)[0].has_pus);
  EXPECT_FALSE(m->nodes_of(d)[1].has_pus);
  EXPECT_STREQ(m->nodes_of(d)[1].subtype, "HBM");
  EXPECT_EQ(m->node_array[m->node_of_pu(4)].os_index, 2u);
}

TEST(Nodes, MemoryOnlyAndDistances) {
  const MachinePtr m = xml("cxl.xml");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  ASSERT_EQ(m->n_nodes, 3u);
  EXPECT_EQ(m->level(Kind::kNode)->n_domains, 2u);
  EXPECT_FALSE(m->root().stands_for(Kind::kNode));
  const uint32_t cxl = m->node_of_os(2);
  EXPECT_EQ(cxl, 2u);  // around everything: after the nodes inside
  EXPECT_FALSE(m->node_array[cxl].has_pus);
  EXPECT_EQ(m->node_array[cxl].domain, 0u);
  EXPECT_EQ(m->root().local_bytes, uint64_t{128} << 30);
  EXPECT_EQ(m->root().total_bytes, uint64_t{192} << 30);
  EXPECT_FALSE(m->distances_assumed);
  EXPECT_EQ(m->node_distance(0, 1), 21u);
  EXPECT_EQ(m->node_distance(1, 0), 22u);
  EXPECT_EQ(m->node_distance(1, 2), 40u);
  EXPECT_EQ(m->node_distance(2, 2), 10u);
  EXPECT_EQ(m->node_of_os(3), kNone);
}

TEST(Nodes, AssumedDistancesSaySo) {
  const MachinePtr m = synthetic("node:3 core:2");
  ASSERT_NE(m, nullptr);
  EXPECT_TRUE(m->distances_assumed);
  EXPECT_EQ(m->node_distance(1, 1), 10u);
  EXPECT_EQ(m->node_distance(0, 2), 20u);
}

TEST(Nodes, DisallowedPusOfTheXmlAreGone) {
  const MachinePtr m = xml("disallowed.xml");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->n_pus, 6u);
  EXPECT_EQ(m->pu_of_os(0), kNone);
  EXPECT_EQ(m->pu_of_os(5), kNone);
  EXPECT_EQ(m->os_of_pu(0), 1u);
  EXPECT_EQ(m->root().children()[0].n_pus(), 3u);
}

// Machines made by hand, for what no file says.

void add_pus(RawMachine* raw, uint32_t parent, uint32_t first, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) raw->add(Kind::kPu, parent, first + i);
}

MachinePtr build(const RawMachine& raw, const ProcessCpus* allowed = nullptr) {
  Error error;
  MachinePtr machine(build_machine(raw, allowed, &error));
  EXPECT_NE(machine, nullptr) << error.text;
  return machine;
}

std::string build_error(const RawMachine& raw, const ProcessCpus* allowed = nullptr) {
  Error error;
  const MachinePtr machine(build_machine(raw, allowed, &error));
  return machine == nullptr ? error.text : "";
}

TEST(Build, WithoutNumaOneNodeIsMadeUp) {
  RawMachine raw;
  raw.add(Kind::kMachine, kNone, kNone);
  add_pus(&raw, 0, 0, 3);
  const MachinePtr m = build(raw);
  EXPECT_EQ(broken_rule(*m), "");
  ASSERT_EQ(m->n_nodes, 1u);
  EXPECT_TRUE(m->nodes()[0].assumed);
  EXPECT_EQ(m->nodes()[0].bytes, kUnknownBytes);
  EXPECT_EQ(m->root().total_bytes, kUnknownBytes);
  EXPECT_EQ(m->find_level("node", nullptr)->domains[0], 0u);
}

TEST(Build, NestedGroupsAndNodesKeepTheInnermost) {
  RawMachine raw;
  raw.add(Kind::kMachine, kNone, kNone);
  const uint32_t outer = raw.add(Kind::kGroup, 0, kNone);
  const uint32_t inner = raw.add(Kind::kGroup, outer, kNone);
  add_pus(&raw, inner, 0, 2);
  add_pus(&raw, outer, 2, 2);
  add_pus(&raw, 0, 4, 1);
  ASSERT_TRUE(raw.nodes.push({0, 7, 100, true, ""}));
  ASSERT_TRUE(raw.nodes.push({inner, 3, 50, true, ""}));
  const MachinePtr m = build(raw);
  EXPECT_EQ(broken_rule(*m), "");
  // PUs 0 and 1 are at home in the inner node, the others in the outer one.
  EXPECT_EQ(m->nodes()[m->node_of_pu(0)].os_index, 3u);
  EXPECT_EQ(m->nodes()[m->node_of_pu(2)].os_index, 7u);
  EXPECT_EQ(m->nodes()[m->node_of_pu(4)].os_index, 7u);
  EXPECT_TRUE(m->root().stands_for(Kind::kNode));
  // Nodes as levels: the inner one, and PUs 2, 3, 4 on their own.
  EXPECT_EQ(m->level(Kind::kNode)->n_domains, 4u);
  EXPECT_EQ(m->domain_of_pu(1, Kind::kNode)->n_pus(), 2u);
  EXPECT_EQ(m->nodes()[0].os_index, 3u);
}

TEST(Build, PuWithoutAnyNodeAroundItGetsTheNearest) {
  RawMachine raw;
  raw.add(Kind::kMachine, kNone, kNone);
  const uint32_t p0 = raw.add(Kind::kPackage, 0, 0);
  add_pus(&raw, p0, 0, 2);
  const uint32_t p1 = raw.add(Kind::kPackage, 0, 1);
  const uint32_t c0 = raw.add(Kind::kCore, p1, 0);
  add_pus(&raw, c0, 2, 2);
  const uint32_t c1 = raw.add(Kind::kCore, p1, 1);
  add_pus(&raw, c1, 4, 2);
  ASSERT_TRUE(raw.nodes.push({p0, 0, 1, true, ""}));
  ASSERT_TRUE(raw.nodes.push({c1, 1, 1, true, ""}));
  ASSERT_TRUE(raw.nodes.push({0, 2, 1, false, ""}));  // memory only
  const MachinePtr m = build(raw);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->nodes()[m->node_of_pu(2)].os_index, 1u);  // same package, before the machine's own
  EXPECT_EQ(m->nodes()[m->node_of_pu(0)].os_index, 0u);
}

TEST(Build, MaskPrunesAndMemoryMovesUp) {
  RawMachine raw;
  raw.add(Kind::kMachine, kNone, kNone);
  for (uint32_t p = 0; p < 2; p++) {
    const uint32_t package = raw.add(Kind::kPackage, 0, p);
    for (uint32_t c = 0; c < 2; c++) {
      const uint32_t core = raw.add(Kind::kCore, package, c);
      add_pus(&raw, core, 4 * p + 2 * c, 2);
    }
    ASSERT_TRUE(raw.nodes.push({package, p, 1000, true, ""}));
  }
  raw.this_system = true;
  ProcessCpus mask;
  Error error;
  const uint32_t cpus[] = {2, 3};
  ASSERT_TRUE(set_process_cpus(&mask, cpus, 2, &error));
  const MachinePtr m = build(raw, &mask);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->n_pus, 2u);
  EXPECT_EQ(m->n_excluded, 6u);
  EXPECT_EQ(m->n_domains, 3u);  // machine, package and core are one
  EXPECT_EQ(m->os_of_pu(0), 2u);
  EXPECT_TRUE(m->root().stands_for(Kind::kCore));
  EXPECT_EQ(m->smt_rank(1), 1u);
  ASSERT_EQ(m->n_nodes, 2u);
  EXPECT_TRUE(m->nodes()[m->node_of_os(0)].has_pus);
  EXPECT_FALSE(m->nodes()[m->node_of_os(1)].has_pus);
  EXPECT_EQ(m->root().local_bytes, 2000u);

  const uint32_t strange[] = {99};
  ProcessCpus none;
  ASSERT_TRUE(set_process_cpus(&none, strange, 1, &error));
  snprintf(raw.source, sizeof raw.source, "this machine");
  EXPECT_EQ(build_error(raw, &none),
            "none of the 8 PUs of this machine is in the affinity mask of this process");
}

TEST(Build, RefusesNonsense) {
  RawMachine empty;
  EXPECT_NE(build_error(empty), "");
  RawMachine no_pu;
  no_pu.add(Kind::kMachine, kNone, kNone);
  no_pu.add(Kind::kCore, 0, 0);
  EXPECT_NE(build_error(no_pu).find("has no PU"), std::string::npos);
  RawMachine twice;
  twice.add(Kind::kMachine, kNone, kNone);
  add_pus(&twice, 0, 4, 2);
  add_pus(&twice, 0, 5, 1);
  EXPECT_NE(build_error(twice).find("PU 5 twice"), std::string::npos);
  RawMachine large;
  large.add(Kind::kMachine, kNone, kNone);
  add_pus(&large, 0, kMaxOsIndex, 1);
  EXPECT_NE(build_error(large).find("PU numbered 65536"), std::string::npos);
  RawMachine nodes;
  nodes.add(Kind::kMachine, kNone, kNone);
  add_pus(&nodes, 0, 0, 2);
  ASSERT_TRUE(nodes.nodes.push({0, 1, 0, true, ""}));
  ASSERT_TRUE(nodes.nodes.push({0, 1, 0, true, ""}));
  EXPECT_NE(build_error(nodes).find("NUMA node 1 twice"), std::string::npos);
  RawMachine deep;
  deep.add(Kind::kMachine, kNone, kNone);
  for (uint32_t i = 0, parent = 0; i < 300; i++) {
    add_pus(&deep, parent, i, 1);
    parent = deep.add(Kind::kGroup, parent, kNone);
    if (i == 299) add_pus(&deep, parent, 1000, 1);
  }
  EXPECT_NE(build_error(deep).find("levels deep"), std::string::npos);
}

TEST(Large, OneThousandPusOnSixtyFourNodes) {
  const MachinePtr m = synthetic("package:8 node:8 l3:2 core:4 pu:2");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->n_pus, 1024u);
  EXPECT_EQ(m->n_nodes, 64u);
  EXPECT_EQ(m->n_domains, 1u + 8u + 64u + 128u + 512u + 1024u);
  for (uint32_t pu = 0; pu < 1024; pu++) {
    EXPECT_EQ(m->node_of_pu(pu), pu / 16);
    EXPECT_EQ(m->domain_of_pu(pu, Kind::kL3)->index, pu / 8);
    EXPECT_EQ(m->domain_of_pu(pu, Kind::kPackage)->index, pu / 128);
  }
  EXPECT_EQ(m->distance(0, 1), 1u);
  EXPECT_EQ(m->distance(0, 1023), 5u);
}

TEST(Large, EverySizeUpTo1024) {
  for (const char* text : {"pu:2", "pu:3", "core:5 pu:4", "node:64 core:16", "package:1024",
                           "l3:31 core:33", "package:2 die:2 node:2 l3:2 l2:2 core:2 pu:2",
                           "node:2 package:2 l3:2 core:2 pu:2", "machine:1 package:16 core:64",
                           "node:64", "l2:8 core:1 pu:4", "group:2 group:2 group:2 pu:2"}) {
    const MachinePtr m = synthetic(text);
    ASSERT_NE(m, nullptr) << text;
    EXPECT_EQ(broken_rule(*m), "") << text;
  }
}

}  // namespace
}  // namespace bosk::topology
