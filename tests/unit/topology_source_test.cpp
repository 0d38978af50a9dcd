// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where machines come from: synthetic descriptions, XML, /sys, the affinity mask, the environment.
#include "topology_test_support.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "topology/raw_machine.h"
#include "topology/synthetic.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
/// hwloc 2.9 forgets the objects it has made when an XML turns out to be broken halfway; a topology
/// that we forget to destroy has another origin and is still found.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:hwloc_alloc_setup_object\n"; }
#endif

namespace bosk::topology {
namespace {

using From = MachineSource::From;

std::string translated(const std::string& text) {
  Array<char> out;
  Error error;
  if (!translate_synthetic(text.c_str(), &out, &error)) return std::string("error: ") + error.text;
  std::string words(out.data);
  while (!words.empty() && words.back() == ' ') words.pop_back();
  return words;
}

TEST(Synthetic, WordsBecomeHwlocs) {
  EXPECT_EQ(translated("node:4 core:4 pu:1"), "Group:4 [NUMANode(memory=1073741824)]  Core:4 PU:1");
  EXPECT_EQ(translated("Socket:2  L3:1\tcore:2"), "Package:2 L3Cache:1 Core:2 PU:1");
  EXPECT_EQ(translated("numa:2(memory=3GB) pu:2"), "Group:2 [NUMANode(memory=3GB)]  PU:2");
  EXPECT_EQ(translated("machine:1 l2:2(size=1MB) pu:2"), "L2Cache:2(size=1MB) PU:2");
  EXPECT_EQ(translated("pack:2 [numa(memory=1GB indexes=1,0)] pu:2(indexes=0,2,1,3)"),
            "Package:2 [numa(memory=1GB indexes=1,0)] PU:2(indexes=0,2,1,3)");
  EXPECT_EQ(translated("2 4 1"), "2 4 1");
  EXPECT_EQ(translated("group:2 group:2 thread:3"), "Group:2 Group:2 PU:3");
}

TEST(Synthetic, BadWordsAreNamedWithWhatIsAccepted) {
  struct Case {
    const char* text;
    const char* part;
  };
  for (const Case& c : {
           Case{"node:4 shelf:2", "word \"shelf:2\" is not known: words are NAME:COUNT"},
           Case{"node:4 core", "word \"core\" has no \":COUNT\""},
           Case{"node:0", "word \"node:0\" has a count of 0"},
           Case{"core:-1", "word \"core:-1\" has a count that is not a number"},
           Case{"core:2x", "word \"core:2x\" has a count that is not a number"},
           Case{"core:2 node:2", "word \"node:2\" stands inside something smaller"},
           Case{"pu:2 core:2", "word \"core:2\" stands inside something smaller"},
           Case{"package:2 socket:2", "word \"socket:2\" comes twice"},
           Case{"core:2 machine:1", "word \"machine:1\""},
           Case{"machine:2", "word \"machine:2\" can only be machine:1, in front"},
           Case{"3 node:2", "word \"node:2\" has a name, but others have none"},
           Case{"node:2 3", "word \"3\" has no name, but others have one"},
           Case{"node:300 core:300", "more than 65536 PUs at word \"core:300\""},
           Case{"node:99999999999999999999", "more than 65536 PUs"},
           Case{"package:2 [numa", "brackets do not match at \"[numa\""},
           Case{"package:2)", "brackets do not match"},
           Case{"", "description is empty"},
           Case{"  \t", "description is empty"},
           Case{":4", "word \":4\" is not known"},
           Case{"é:2", "is not known"},
       }) {
    const std::string error = error_of(From::kSynthetic, c.text);
    EXPECT_NE(error.find(c.part), std::string::npos) << c.text << " gave: " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(Synthetic, WhatHwlocRefusesIsSaid) {
  const std::string error = error_of(From::kSynthetic, "core:2 [shelf]");
  EXPECT_NE(error.find("hwloc refuses synthetic machine \"core:2 [shelf]\""), std::string::npos)
      << error;
}

TEST(Synthetic, HwlocsOwnSpellings) {
  const MachinePtr bare = synthetic("2 3 2");
  ASSERT_NE(bare, nullptr);
  EXPECT_EQ(bare->n_pus, 12u);
  EXPECT_EQ(broken_rule(*bare), "");
  const MachinePtr attached = synthetic("pack:2 [numa(memory=4GiB)] core:2 pu:2");
  ASSERT_NE(attached, nullptr);
  EXPECT_EQ(attached->n_nodes, 2u);
  EXPECT_EQ(attached->nodes()[1].bytes, uint64_t{4} << 30);
  const MachinePtr shuffled = synthetic("pack:2 core:2 pu:1(indexes=3,1,2,0)");
  ASSERT_NE(shuffled, nullptr);
  EXPECT_EQ(broken_rule(*shuffled), "");
  EXPECT_EQ(shuffled->n_pus, 4u);
  for (uint32_t cpu = 0; cpu < 4; cpu++) {
    EXPECT_EQ(shuffled->os_of_pu(shuffled->pu_of_os(cpu)), cpu);
  }
}

TEST(Xml, BadFilesAreNamed) {
  EXPECT_EQ(error_of(From::kXmlFile, "/nowhere/machine.xml"),
            "cannot read XML file /nowhere/machine.xml: No such file or directory");
  EXPECT_EQ(error_of(From::kXmlFile, "/tmp"), "cannot read XML file /tmp: Is a directory");
  const std::string error = error_of(From::kXmlFile, data_path("make.sh"));
  EXPECT_NE(error.find("is not hwloc XML; write one with: lstopo machine.xml"), std::string::npos)
      << error;
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Xml, TruncatedOrBrokenTextIsAnErrorNeverACrash) {
  const std::string good = contents(data_path("uma.xml"));
  ASSERT_GT(good.size(), 1000u);
  ASSERT_NE(load(From::kXmlText, good), nullptr);
  for (const char* text : {"", "<", "not xml", "<topology version=\"2.0\">", "<topology/>",
                           "<topology version=\"2.0\"><object/></topology>"}) {
    EXPECT_NE(error_of(From::kXmlText, text), "") << text;
  }
  for (size_t size = 0; size + 30 < good.size(); size += 97) {
    Error error;
    const std::string cut = good.substr(0, size);
    MachineSource source;
    source.from = From::kXmlText;
    source.text = cut.c_str();
    const MachinePtr m(load_machine(source, &error));
    // hwloc may accept a file whose tail is missing; what it accepts must hold together.
    if (m != nullptr) {
      EXPECT_EQ(broken_rule(*m), "");
    } else {
      EXPECT_NE(error.text[0], '\0');
    }
  }
}

TEST(Xml, NulBytesAreNotXml) {
  const std::string path = testing::TempDir() + "bosk-nul.xml";
  std::ofstream(path) << contents(data_path("uma.xml")) << std::string(3, '\0') << "tail";
  EXPECT_NE(error_of(From::kXmlFile, path).find("NUL bytes"), std::string::npos);
  unlink(path.c_str());
}

TEST(Xml, HugeCpuNumbersAreRefused) {
  std::string text = contents(data_path("one-pu.xml"));
  const std::string pu = "type=\"PU\" os_index=\"0\"";
  const size_t at = text.find(pu);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, pu.size(), "type=\"PU\" os_index=\"4000000000\"");
  EXPECT_NE(error_of(From::kXmlText, text), "");
}

TEST(Xml, HandedOnByThisSystemObeysTheMask) {
  Error error;
  size_t size = 0;
  char* text = this_system_xml(&size, &error);
  ASSERT_NE(text, nullptr) << error.text;
  EXPECT_EQ(strlen(text), size);
  ProcessCpus mask;
  ASSERT_TRUE(load_process_cpus(&mask, &error));
  const uint32_t first = mask.next(0);
  ProcessCpus one;
  ASSERT_TRUE(set_process_cpus(&one, &first, 1, &error));

  MachineSource source;
  source.from = From::kXmlText;
  source.text = text;
  source.describes_this_system = true;
  source.process_cpus = &one;
  const MachinePtr m(load_machine(source, &error));
  ASSERT_NE(m, nullptr) << error.text;
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_TRUE(m->this_system);
  EXPECT_EQ(m->n_pus, 1u);
  EXPECT_EQ(m->os_of_pu(0), first);

  source.restrict_to_process = false;
  const MachinePtr all(load_machine(source, &error));
  ASSERT_NE(all, nullptr);
  EXPECT_GE(all->n_pus, mask.count);
  free(text);
}

/// A copy of /sys/devices/system made of a few files.
class SysfsTree : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "bosk-sysfs-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void file(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ + "/sys/devices/system/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  void cpu(int number, const std::string& name, const std::string& text) {
    file("cpu/cpu" + std::to_string(number) + "/" + name, text);
  }
  /// One CPU as Linux describes it.
  void cpu(int n, int package, const std::string& package_cpus, const std::string& core_cpus,
           const std::string& l3_cpus) {
    cpu(n, "topology/physical_package_id", std::to_string(package));
    cpu(n, "topology/package_cpus_list", package_cpus);
    cpu(n, "topology/die_id", "0");
    cpu(n, "topology/die_cpus_list", package_cpus);
    cpu(n, "topology/cluster_id", "-1");
    cpu(n, "topology/cluster_cpus_list", package_cpus);
    cpu(n, "topology/core_id", std::to_string(n / 2));
    cpu(n, "topology/core_cpus_list", core_cpus);
    cpu(n, "cache/index0/level", "1");
    cpu(n, "cache/index0/type", "Data");
    cpu(n, "cache/index0/shared_cpu_list", core_cpus);
    cpu(n, "cache/index1/level", "2");
    cpu(n, "cache/index1/type", "Unified");
    cpu(n, "cache/index1/shared_cpu_list", core_cpus);
    cpu(n, "cache/index2/level", "3");
    cpu(n, "cache/index2/type", "Unified");
    cpu(n, "cache/index2/shared_cpu_list", l3_cpus);
  }

  std::string root_;
};

TEST_F(SysfsTree, TwoPackagesWithSmtAndMemoryOnlyNode) {
  // Linux numbers the second hardware threads after all first ones: 0 and 4 are a core.
  file("cpu/online", "0-7");
  for (int n = 0; n < 8; n++) {
    const int package = n % 4 / 2;
    const std::string package_cpus = package == 0 ? "0-1,4-5" : "2-3,6-7";
    const std::string core = std::to_string(n % 4) + "," + std::to_string(n % 4 + 4);
    cpu(n, package, package_cpus, core, package_cpus);
  }
  file("node/online", "0-2");
  file("node/node0/cpulist", "0-1,4-5");
  file("node/node1/cpulist", "2-3,6-7");
  file("node/node2/cpulist", "");
  file("node/node0/meminfo", "Node 0 MemTotal:       1000 kB\nNode 0 MemFree: 10 kB");
  file("node/node1/meminfo", "Node 1 MemTotal:       2000 kB\nNode 1 MemFree: 10 kB");
  file("node/node2/meminfo", "Node 2 MemTotal:       4000 kB");
  file("node/node0/distance", "10 21 30");
  file("node/node1/distance", "21 10 30");
  file("node/node2/distance", "30 30 10");
  const MachinePtr m = load(From::kSysfsTree, root_);
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_STREQ(m->reader, "sysfs");
  EXPECT_FALSE(m->this_system);
  EXPECT_EQ(m->n_domains, 1u + 2u + 4u + 8u);
  EXPECT_EQ(count_kind(*m, Kind::kPackage), 2u);
  EXPECT_EQ(m->root().children()[1].os_index, 1u);
  EXPECT_TRUE(m->root().children()[0].stands_for(Kind::kNode));
  EXPECT_TRUE(m->root().children()[0].stands_for(Kind::kL3));
  EXPECT_EQ(m->level(Kind::kGroup), nullptr);
  EXPECT_EQ(m->level(Kind::kL2)->n_domains, 4u);
  std::vector<uint32_t> order;
  for (uint32_t pu = 0; pu < 8; pu++) order.push_back(m->os_of_pu(pu));
  EXPECT_EQ(order, (std::vector<uint32_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(m->smt_rank(3), 1u);
  ASSERT_EQ(m->n_nodes, 3u);
  EXPECT_FALSE(m->nodes()[m->node_of_os(2)].has_pus);
  EXPECT_EQ(m->nodes()[m->node_of_os(1)].bytes, 2000u * 1024u);
  EXPECT_EQ(m->root().total_bytes, 7000u * 1024u);
  EXPECT_EQ(m->node_distance(m->node_of_os(0), m->node_of_os(2)), 30u);
  EXPECT_FALSE(m->distances_assumed);
}

TEST_F(SysfsTree, NodesInsideAPackage) {
  file("cpu/online", "0-7");
  for (int n = 0; n < 8; n++) cpu(n, 0, "0-7", std::to_string(n), n < 4 ? "0-3" : "4-7");
  file("node/online", "0,3");
  file("node/node0/cpulist", "0-3");
  file("node/node3/cpulist", "4-7");
  const MachinePtr m = load(From::kSysfsTree, root_);
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->n_domains, 1u + 2u + 8u);
  EXPECT_EQ(m->domain_of_pu(6, Kind::kNode)->kind, Kind::kNode);
  EXPECT_EQ(m->domain_of_pu(6, Kind::kNode)->os_index, 3u);
  EXPECT_EQ(m->nodes()[1].bytes, kUnknownBytes);
  EXPECT_EQ(m->node_of_os(1), kNone);
  EXPECT_TRUE(m->distances_assumed);
}

TEST_F(SysfsTree, HybridByCapacity) {
  file("cpu/online", "0-3");
  for (int n = 0; n < 4; n++) {
    cpu(n, 0, "0-3", n < 2 ? "0-1" : std::to_string(n), "0-3");
    cpu(n, "cpu_capacity", n < 2 ? "1024" : "512");
  }
  const MachinePtr m = load(From::kSysfsTree, root_);
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  ASSERT_EQ(m->n_cpu_kinds, 2u);
  EXPECT_EQ(m->pu(0).cpu_kind, 1);
  EXPECT_EQ(m->pu(3).cpu_kind, 0);
  EXPECT_EQ(m->cpu_kinds()[0].efficiency, 0);
  EXPECT_TRUE(m->nodes()[0].assumed);  // no node folder: a kernel without NUMA
}

TEST_F(SysfsTree, ListsThatCrossAreLeftOut) {
  file("cpu/online", "0-3");
  for (int n = 0; n < 4; n++) {
    cpu(n, n / 2, n < 2 ? "0-1" : "2-3", std::to_string(n), n == 1 || n == 2 ? "1-2" : "");
  }
  const MachinePtr m = load(From::kSysfsTree, root_);
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->level(Kind::kPackage)->n_domains, 2u);
  EXPECT_EQ(m->level(Kind::kL3), nullptr);
}

TEST_F(SysfsTree, OnlyTheListOfCpus) {
  file("cpu/online", "1,3-4");
  const MachinePtr m = load(From::kSysfsTree, root_);
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(broken_rule(*m), "");
  EXPECT_EQ(m->n_pus, 3u);
  EXPECT_EQ(m->os_of_pu(1), 3u);
}

TEST_F(SysfsTree, Errors) {
  EXPECT_NE(error_of(From::kSysfsTree, root_).find("has no readable"), std::string::npos);
  file("cpu/online", "zero to three");
  EXPECT_NE(error_of(From::kSysfsTree, root_).find("is not a list of CPUs"), std::string::npos);
  file("cpu/online", "0-4000000000");
  EXPECT_NE(error_of(From::kSysfsTree, root_).find("is not a list of CPUs"), std::string::npos);
}

TEST(ThisMachine, TheReadersAgree) {
  std::vector<MachinePtr> machines;
  for (const Reader reader : {Reader::kHwloc, Reader::kSysfs, Reader::kFlat, Reader::kAuto}) {
    MachineSource source;
    source.reader = reader;
    Error error;
    machines.emplace_back(load_machine(source, &error));
    ASSERT_NE(machines.back(), nullptr) << error.text;
    const Machine& m = *machines.back();
    EXPECT_EQ(broken_rule(m), "");
    EXPECT_TRUE(m.this_system);
    EXPECT_EQ(m.n_pus, machines.front()->n_pus);
    // The same CPUs, whatever their order.
    for (uint32_t pu = 0; pu < m.n_pus; pu++) {
      EXPECT_NE(machines.front()->pu_of_os(m.os_of_pu(pu)), kNone);
    }
  }
  EXPECT_EQ(machines[0]->n_nodes, machines[1]->n_nodes);
  EXPECT_EQ(machines[0]->level(Kind::kCore)->n_domains, machines[1]->level(Kind::kCore)->n_domains);
}

TEST(ThisMachine, ObeysTheAffinityMaskAndLeavesItAlone) {
  // In a thread of its own: the mask belongs to the kernel thread.
  std::thread([] {
    Error error;
    ProcessCpus before;
    ASSERT_TRUE(load_process_cpus(&before, &error));
    const uint32_t last = [&] {
      uint32_t found = 0;
      for (uint32_t c = before.next(0); c != ProcessCpus::kNoCpu; c = before.next(c + 1)) found = c;
      return found;
    }();
    if (last >= CPU_SETSIZE) GTEST_SKIP() << "glibc's fixed cpu_set_t is too small here";
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(last, &only);
    ASSERT_EQ(sched_setaffinity(0, sizeof only, &only), 0);
    for (const Reader reader : {Reader::kHwloc, Reader::kSysfs, Reader::kFlat}) {
      MachineSource source;
      source.reader = reader;
      const MachinePtr m(load_machine(source, &error));
      ASSERT_NE(m, nullptr) << error.text;
      EXPECT_EQ(m->n_pus, 1u);
      EXPECT_EQ(m->os_of_pu(0), last);
      EXPECT_EQ(broken_rule(*m), "");
      source.process_cpus = &before;  // read before this thread was bound
      const MachinePtr wide(load_machine(source, &error));
      ASSERT_NE(wide, nullptr) << error.text;
      EXPECT_EQ(wide->n_pus, before.count);
    }
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&only, &after));
  }).join();
}

TEST(ThisMachine, MaskMatchesGlibc) {
  Error error;
  ProcessCpus cpus;
  errno = 77;
  ASSERT_TRUE(load_process_cpus(&cpus, &error));
  EXPECT_EQ(errno, 77);
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) GTEST_SKIP() << "more CPUs than cpu_set_t holds";
  EXPECT_EQ(cpus.count, static_cast<uint32_t>(CPU_COUNT(&set)));
  for (uint32_t c = 0; c < CPU_SETSIZE; c++) {
    EXPECT_EQ(cpus.contains(c), CPU_ISSET(c, &set) != 0) << c;
  }
}

TEST(ThisMachine, ManyThreadsMayReadAtOnce) {
  // In a child, so that the machine of this process stays unread for the tests below.
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::thread> threads;
    std::vector<const Machine*> found(8);
    for (size_t i = 0; i < found.size(); i++) {
      threads.emplace_back([&found, i] { found[i] = process_machine(nullptr); });
    }
    for (std::thread& t : threads) t.join();
    bool ok = found[0] != nullptr && broken_rule(*found[0]).empty();
    for (const Machine* m : found) ok = ok && m == found[0];
    _exit(ok ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

class Environment : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name : {"BOSK_TOPOLOGY_XML", "BOSK_TOPOLOGY_THISSYSTEM", "BOSK_SYNTHETIC",
                             "BOSK_TOPOLOGY_READER"}) {
      unsetenv(name);
    }
  }
  /// What a fresh process says and finds when it asks for its machine: "<stderr><n_pus> <reader>".
  static std::string fresh_process() {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
      dup2(pipe_ends[1], STDERR_FILENO);
      const Machine* m = process_machine(nullptr);
      dprintf(pipe_ends[1], "%u %s", m->n_pus, m->reader);
      _exit(0);
    }
    close(pipe_ends[1]);
    std::string text;
    char buffer[256];
    for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    close(pipe_ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? text : "died: " + text;
  }
};

TEST_F(Environment, ChoosesTheSource) {
  EXPECT_EQ(machine_source_from_environment().from, From::kThisMachine);
  setenv("BOSK_SYNTHETIC", "", 1);
  EXPECT_EQ(machine_source_from_environment().from, From::kThisMachine);
  setenv("BOSK_SYNTHETIC", "pu:3", 1);
  EXPECT_EQ(machine_source_from_environment().from, From::kSynthetic);
  EXPECT_STREQ(machine_source_from_environment().text, "pu:3");
  setenv("BOSK_TOPOLOGY_XML", "/some/file", 1);
  EXPECT_EQ(machine_source_from_environment().from, From::kXmlFile);
  EXPECT_FALSE(machine_source_from_environment().describes_this_system);
  setenv("BOSK_TOPOLOGY_THISSYSTEM", "1", 1);
  EXPECT_TRUE(machine_source_from_environment().describes_this_system);
  setenv("BOSK_TOPOLOGY_READER", "SysFS", 1);
  EXPECT_EQ(machine_source_from_environment().reader, Reader::kSysfs);
}

TEST_F(Environment, ABadSourceIsSaidOnceAndThisMachineTaken) {
  setenv("BOSK_TOPOLOGY_READER", "flat", 1);
  Error error;
  ProcessCpus cpus;
  ASSERT_TRUE(load_process_cpus(&cpus, &error));
  const std::string here = std::to_string(cpus.count) + " flat";
  EXPECT_EQ(fresh_process(), here);
  setenv("BOSK_TOPOLOGY_XML", "/nowhere.xml", 1);
  EXPECT_EQ(
      fresh_process(),
      "bosk: cannot read XML file /nowhere.xml: No such file or directory; using this machine\n" +
          here);
  unsetenv("BOSK_TOPOLOGY_XML");
  setenv("BOSK_SYNTHETIC", "node:2 core:3", 1);
  EXPECT_EQ(fresh_process(), "6 hwloc");
}

TEST_F(Environment, UnknownReaderIsNamed) {
  setenv("BOSK_TOPOLOGY_READER", "crystal-ball", 1);
  setenv("BOSK_SYNTHETIC", "pu:5", 1);
  EXPECT_EQ(fresh_process(),
            "bosk: BOSK_TOPOLOGY_READER=crystal-ball is not known: use auto, hwloc, sysfs or flat\n"
            "5 hwloc");
}

}  // namespace
}  // namespace bosk::topology
