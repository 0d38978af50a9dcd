// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The views of `bosk topo`: JSON against files of tests/data/topology, text and SVG by what they must
// say. BOSK_UPDATE_GOLDEN=1 rewrites the files; look at the difference before you keep it.
#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY 1
#endif
#include "topology_test_support.h"

#include <stdlib.h>

#include <fstream>

// The tool is not a library; its views are pure functions and are compiled into this test.
#include "../../tools/bosk/topo_json.cpp"
#include "../../tools/bosk/topo_svg.cpp"
#include "../../tools/bosk/topo_text.cpp"
#include "../../tools/bosk/topo_words.cpp"

namespace bosk::tools {
namespace {

using topology::broken_rule;
using topology::data_path;
using topology::MachinePtr;
using topology::synthetic;
using topology::xml;

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class GoldenJson : public testing::TestWithParam<const char*> {};

TEST_P(GoldenJson, IsAsRecorded) {
  const std::string name = GetParam();
  const MachinePtr m = xml(name + ".xml");
  ASSERT_NE(m, nullptr);
  Json json = Json::parse(topo_json(*m));
  json["source"] = name;  // the path depends on where the sources are
  const std::string text = json.dump(1) + "\n";
  const std::string path = data_path(name + ".json");
  if (getenv("BOSK_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, contents(path));
}

INSTANTIATE_TEST_SUITE_P(Machines, GoldenJson,
                         testing::Values("one-pu", "asymmetric", "cxl", "hybrid", "low-power",
                                         "hbm"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(TopoJson, HasEveryDomainOnceAndUnknownIsNull) {
  const MachinePtr m = synthetic("[numa] package:3 l3:2 core:2 pu:2");
  ASSERT_NE(m, nullptr);
  const Json json = Json::parse(topo_json(*m));
  EXPECT_EQ(json["format"], "bosk-topology");
  EXPECT_TRUE(json["nodes"][0]["bytes"].is_null());
  std::vector<bool> seen(m->n_domains, false);
  std::vector<Json> open = {json["tree"]};
  while (!open.empty()) {
    const Json d = open.back();
    open.pop_back();
    const uint32_t id = d["id"];
    ASSERT_LT(id, seen.size());
    EXPECT_FALSE(seen[id]);
    seen[id] = true;
    for (const Json& child : d["children"]) open.push_back(child);
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), m->n_domains);
  EXPECT_EQ(json["distances"].size(), m->n_nodes);
}

TEST(TopoText, TheMachineOfTheIssue) {
  const MachinePtr m = synthetic("node:4 core:4 pu:1");
  ASSERT_NE(m, nullptr);
  const std::string text = topo_text(*m);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "machine: 4 nodes × 4 PUs = 16 PUs; 4 NUMA nodes, 4.0 GiB");
  EXPECT_NE(text.find("└─ nodes 0-3           PU 0-3 | 4-7 | 8-11 | 12-15"), std::string::npos)
      << text;
  EXPECT_NE(text.find("   └─ 4 PUs (= core)"), std::string::npos) << text;
  EXPECT_NE(text.find("distances (not told by the system: assumed)"), std::string::npos) << text;
}

TEST(TopoText, UnlikeSiblingsAreNotCollapsed) {
  const MachinePtr m = xml("asymmetric.xml");
  ASSERT_NE(m, nullptr);
  const std::string text = topo_text(*m);
  EXPECT_NE(text.find("2 packages, 5 cores, 11 PUs, not all alike"), std::string::npos) << text;
  EXPECT_NE(text.find("├─ package 0 (= node)"), std::string::npos) << text;
  EXPECT_NE(text.find("└─ package 1 (= node)"), std::string::npos) << text;
  EXPECT_NE(text.find("PU 10 (= core)"), std::string::npos) << text;
}

TEST(TopoText, AThousandPusFitAScreen) {
  const MachinePtr m = synthetic("package:8 node:8 l3:2 core:4 pu:2");
  ASSERT_NE(m, nullptr);
  const std::string text = topo_text(*m);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 24) << text;
  EXPECT_NE(text.find("node 0-63"), std::string::npos) << text;
}

TEST(TopoText, MemoryOnlyNodesAndDistancesAreShown) {
  const MachinePtr m = xml("cxl.xml");
  ASSERT_NE(m, nullptr);
  const std::string text = topo_text(*m);
  EXPECT_NE(text.find("128 GiB CXL  machine, memory only"), std::string::npos) << text;
  EXPECT_NE(text.find("\n        1    22    10    40\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("assumed"), std::string::npos) << text;
}

/// Tags open and close in order; returns "" or what is wrong. Enough XML for what we write.
std::string not_well_formed(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    const size_t end = text.find('>', at);
    if (end == std::string::npos) return "tag without end";
    const std::string tag = text.substr(at + 1, end - at - 1);
    at = end;
    if (tag.empty() || tag[0] == '?') continue;
    const std::string name =
        tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return "</" + name + "> out of order";
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> never closed";
}

uint32_t count(const std::string& text, const std::string& what) {
  uint32_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) n++;
  return n;
}

TEST(TopoSvg, HasABoxForEveryDomainAtEverySize) {
  for (const char* description : {"pu:1", "node:4 core:4 pu:1", "package:3 core:7 pu:2",
                                  "package:8 node:8 l3:2 core:4 pu:2"}) {
    const MachinePtr m = synthetic(description);
    ASSERT_NE(m, nullptr);
    const std::string svg = topo_svg(*m);
    EXPECT_EQ(not_well_formed(svg), "") << description;
    EXPECT_EQ(count(svg, "<g><title>"), m->n_domains) << description;
    EXPECT_EQ(count(svg, "class=\"bytes\""), m->n_nodes) << description;
    EXPECT_EQ(svg.find("http://", svg.find("http://www.w3.org") + 1), std::string::npos);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_NE(svg.find("@media print"), std::string::npos);
  }
}

TEST(TopoSvg, EscapesWhatTheUserNamed) {
  topology::MachineSource source;
  source.from = topology::MachineSource::From::kSynthetic;
  source.text = "pu:2";
  topology::Error error;
  const MachinePtr m(load_machine(source, &error));
  ASSERT_NE(m, nullptr);
  m->source = "file <a&b>\n\"c\"";
  const std::string svg = topo_svg(*m);
  EXPECT_EQ(not_well_formed(svg), "");
  EXPECT_NE(svg.find("file &lt;a&amp;b&gt; &quot;c&quot;"), std::string::npos);
}

TEST(TopoSvg, HybridCoresHavePatternsAndMemoryOnlyNodesTheirOwnSign) {
  const MachinePtr hybrid = xml("hybrid.xml");
  ASSERT_NE(hybrid, nullptr);
  const std::string svg = topo_svg(*hybrid);
  EXPECT_EQ(count(svg, "class=\"pu c0\""), 8u + 1u);  // and the legend
  EXPECT_EQ(count(svg, "class=\"pu c1\""), 4u + 1u);
  const MachinePtr cxl = xml("cxl.xml");
  ASSERT_NE(cxl, nullptr);
  EXPECT_EQ(count(topo_svg(*cxl), "class=\"memory far\""), 1u + 1u);
}

TEST(TopoWords, Lists) {
  EXPECT_EQ(number_list({}), "");
  EXPECT_EQ(number_list({3}), "3");
  EXPECT_EQ(number_list({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
  EXPECT_EQ(number_list({1, 0}), "1,0");
  EXPECT_EQ(bytes_label(topology::kUnknownBytes), "unknown size");
  EXPECT_EQ(bytes_label(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(bytes_label(0), "0 MiB");
}

}  // namespace
}  // namespace bosk::tools
