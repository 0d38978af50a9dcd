// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cost tables: what they answer, where figures come from, the file that keeps them, and measuring here.
#include "memory/costs.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "invented_machine.h"
#include "memory/cost_probe.h"
#include "memory/costs_file.h"
#include "memory/next_touch/next_touch.h"
#include "topology/source.h"

namespace bosk::memory {
namespace {

namespace fs = std::filesystem;

struct FreeTable {
  void operator()(CostTable* table) const { free_cost_table(table); }
};
using TablePtr = std::unique_ptr<CostTable, FreeTable>;

constexpr Access kWays[] = {Access::kRead, Access::kWrite};
constexpr MemoryLoad kLoads[] = {MemoryLoad::kAlone, MemoryLoad::kNode, MemoryLoad::kMachine};

/// Two nodes, distances 10 and 21; the first one's way to itself is told by firmware.
test::MachinePtr two_nodes(bool with_links) {
  topology::RawMachine raw;
  raw.reader = "test";
  raw.add(topology::Kind::kMachine, topology::kNone, topology::kNone);
  for (uint32_t node = 0; node < 2; ++node) {
    const uint32_t object = raw.add(topology::Kind::kNode, 0, topology::kNone);
    raw.add(topology::Kind::kPu, object, 2 * node);
    raw.add(topology::Kind::kPu, object, 2 * node + 1);
    EXPECT_TRUE(raw.nodes.push({object, 3 * node, uint64_t{1} << 30, true, ""}));
  }
  for (const uint32_t distance : {10, 21, 21, 10}) EXPECT_TRUE(raw.distances.push(distance));
  if (with_links) {
    EXPECT_TRUE(raw.links.assign(4));
    raw.links[0] = {80, 95, 50'000, 30'000};
  }
  topology::Error error;
  test::MachinePtr machine{topology::build_machine(raw, nullptr, &error)};
  EXPECT_TRUE(machine) << error.text;
  return machine;
}

TEST(Costs, NothingIsKnownAtFirst) {
  const TablePtr table{make_cost_table(3)};
  ASSERT_TRUE(table);
  EXPECT_FALSE(cost_for_read(*table, 0, 1, 4096).known());
  EXPECT_FALSE(cost_for_write(*table, 0, 1, 4096).known());
  EXPECT_FALSE(cost_for_migration(*table, 0, 1, 4096).known());
  EXPECT_EQ(make_cost_table(0), nullptr);
  EXPECT_EQ(make_cost_table(kMostCostNodes + 1), nullptr);
}

TEST(Costs, AreLatencyAndBandwidthAndPages) {
  const TablePtr table{make_cost_table(2)};
  table->access(0, 1, Access::kRead, MemoryLoad::kAlone) = {{100, CostSource::kMeasured},
                                                            {8, CostSource::kMeasured}};
  table->access(0, 1, Access::kWrite, MemoryLoad::kNode) = {{200, CostSource::kMeasured},
                                                            {4, CostSource::kDistances}};
  table->migration(0, 1, PageKind::kBase) = {{120'000, CostSource::kMeasured},
                                             {11'000, CostSource::kMeasured}};
  EXPECT_FLOAT_EQ(cost_for_read(*table, 0, 1, 8000).value, 1100);
  EXPECT_EQ(cost_for_read(*table, 0, 1, 8000).source, CostSource::kMeasured);
  // As good as the worse of its parts.
  EXPECT_EQ(cost_for_write(*table, 0, 1, 1, MemoryLoad::kNode).source, CostSource::kDistances);
  EXPECT_FALSE(cost_for_write(*table, 0, 1, 1).known());
  EXPECT_FALSE(cost_for_read(*table, 1, 0, 1).known());
  EXPECT_FALSE(cost_for_read(*table, 2, 0, 1).known());
  EXPECT_FALSE(cost_for_read(*table, 0, kNoNode, 1).known());
  // 2009, section 3.2: 120 + 11 us a page.
  EXPECT_FLOAT_EQ(cost_for_migration(*table, 0, 1, 4096 * 10).value, 230'000);
  EXPECT_FLOAT_EQ(cost_for_migration(*table, 0, 1, 1).value, 131'000);
  EXPECT_FALSE(cost_for_migration(*table, 0, 1, 1, PageKind::kHuge).known());
}

TEST(Costs, EstimatesFollowDistancesAndSaySo) {
  const auto machine = two_nodes(false);
  const TablePtr table{make_cost_table(2)};
  table->access(1, 0, Access::kRead, MemoryLoad::kAlone).latency_ns = {77, CostSource::kMeasured};
  estimate_costs(*machine, table.get());
  for (const Access way : kWays)
    for (const MemoryLoad load : kLoads) {
      const AccessCost& local = table->access(0, 0, way, load);
      const AccessCost& remote = table->access(0, 1, way, load);
      EXPECT_EQ(local.latency_ns.source, CostSource::kDistances);
      EXPECT_EQ(remote.bytes_per_ns.source, CostSource::kDistances);
      EXPECT_NEAR(remote.latency_ns.value / local.latency_ns.value, 2.1, 1e-3);
      EXPECT_NEAR(local.bytes_per_ns.value / remote.bytes_per_ns.value, 2.1, 1e-3);
    }
  const AccessCost& known = table->access(1, 0, Access::kRead, MemoryLoad::kAlone);
  EXPECT_EQ(known.latency_ns, (Figure{77, CostSource::kMeasured}));  // is not touched
  for (NodeIndex from = 0; from < 2; ++from)
    for (NodeIndex to = 0; to < 2; ++to)
      for (const PageKind pages : {PageKind::kBase, PageKind::kHuge}) {
        const Figure moving = cost_for_migration(*table, from, to, 1 << 21, pages);
        EXPECT_GT(moving.value, 0);
        EXPECT_LT(moving.value, 1e9) << from << " to " << to;
      }
  EXPECT_EQ(table->migration(0, 1, PageKind::kBase), table->migration(1, 0, PageKind::kBase));
  EXPECT_EQ(table->thread_move.each_ns.source, CostSource::kAssumed);
}

TEST(Costs, DistancesThatNobodyToldAreAssumptions) {
  const auto machine = test::symmetric(2, 1, 2, 1);
  const TablePtr table{make_cost_table(2)};
  estimate_costs(*machine, table.get());
  EXPECT_EQ(cost_for_read(*table, 0, 0, 1).source, CostSource::kDistances);
  EXPECT_EQ(cost_for_read(*table, 0, 1, 1).source, CostSource::kAssumed);
}

TEST(Costs, FirmwareIsBelievedWhereItTells) {
  const auto machine = two_nodes(true);
  const TablePtr table{make_cost_table(2)};
  estimate_costs(*machine, table.get());
  const AccessCost& read = table->access(0, 0, Access::kRead, MemoryLoad::kNode);
  EXPECT_EQ(read.latency_ns, (Figure{80, CostSource::kFirmware}));
  EXPECT_NEAR(read.bytes_per_ns.value, 52.4, 0.1);
  EXPECT_EQ(table->access(0, 0, Access::kWrite, MemoryLoad::kAlone).latency_ns,
            (Figure{95, CostSource::kFirmware}));
  // One thread does not get what all get.
  EXPECT_LT(table->access(0, 0, Access::kRead, MemoryLoad::kAlone).bytes_per_ns.value,
            read.bytes_per_ns.value);
  EXPECT_EQ(table->access(0, 1, Access::kRead, MemoryLoad::kNode).latency_ns.source,
            CostSource::kDistances);
}

TEST(Costs, HwlocsAttributesComeThrough) {
  topology::MachineSource source;
  source.from = topology::MachineSource::From::kXmlFile;
  source.text = BOSK_TEST_DATA "/topology/hbm.xml";
  topology::Error error;
  const test::MachinePtr machine{topology::load_machine(source, &error)};
  ASSERT_TRUE(machine) << error.text;
  std::ifstream file(source.text);
  const std::string xml{std::istreambuf_iterator<char>(file), {}};
  const bool tells = xml.find("memattr name=\"Bandwidth\"") != std::string::npos;
  bool told = false;
  for (uint32_t i = 0; i < machine->n_nodes; ++i)
    for (uint32_t j = 0; j < machine->n_nodes; ++j) told = told || machine->link(i, j).told();
  EXPECT_EQ(told, tells);
}

TEST(Costs, OneTableForTheProcess) {
  const auto machine = two_nodes(false);
  use_costs(nullptr);
  EXPECT_FALSE(cost_for_read(0, 0, 1).known());
  const TablePtr table{make_cost_table(2)};
  estimate_costs(*machine, table.get());
  use_costs(table.get());
  EXPECT_EQ(cost_for_read(0, 1, 100), cost_for_read(*table, 0, 1, 100));
  EXPECT_EQ(cost_for_write(0, 1, 100), cost_for_write(*table, 0, 1, 100));
  EXPECT_EQ(cost_for_migration(0, 1, 100), cost_for_migration(*table, 0, 1, 100));
  use_costs(nullptr);
}

// --- the file

class CostsFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "bosk-costs-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = (folder_ / "a" / "b" / "costs").string();
    machine_ = two_nodes(false);
    machine_->this_system = true;
    table_.reset(make_cost_table(2));
    table_->access(0, 1, Access::kRead, MemoryLoad::kAlone) = {{98.25F, CostSource::kMeasured},
                                                               {4.5F, CostSource::kMeasured}};
    table_->access(1, 1, Access::kWrite, MemoryLoad::kMachine) = {{142, CostSource::kAlike},
                                                                  {3, CostSource::kAlike}};
    table_->access(1, 0, Access::kRead, MemoryLoad::kNode) = {{5, CostSource::kDistances},
                                                              {5, CostSource::kDistances}};
    table_->migration(0, 1, PageKind::kHuge) = {{120'000, CostSource::kMeasured},
                                                {300'000, CostSource::kMeasured}};
    table_->thread_move = {{2500, CostSource::kMeasured}, {60, CostSource::kMeasured}};
    table_->next_touch = {{6400, CostSource::kMeasured},
                          {15.5F, CostSource::kMeasured},
                          {1200, CostSource::kMeasured}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  CostsFile read(CostTable* table, topology::Error* error) const {
    return read_costs(path_.c_str(), 42, *machine_, table, error);
  }

  fs::path folder_;
  std::string path_;
  test::MachinePtr machine_;
  TablePtr table_;
};

TEST_F(CostsFiles, GiveBackWhatWasMeasured) {
  topology::Error error;
  ASSERT_TRUE(write_costs(path_.c_str(), 42, *machine_, *table_, &error)) << error.text;
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path_).parent_path()), {}), 1);
  const TablePtr got{make_cost_table(2)};
  ASSERT_EQ(read(got.get(), &error), CostsFile::kRead) << error.text;
  EXPECT_EQ(cost_for_read(*got, 0, 1, 0), cost_for_read(*table_, 0, 1, 0));
  EXPECT_EQ(got->access(1, 1, Access::kWrite, MemoryLoad::kMachine).latency_ns,
            (Figure{142, CostSource::kAlike}));
  EXPECT_EQ(got->migration(0, 1, PageKind::kHuge).per_page_ns,
            (Figure{300'000, CostSource::kMeasured}));
  EXPECT_EQ(got->thread_move.each_ns, (Figure{60, CostSource::kMeasured}));
  EXPECT_EQ(got->next_touch.mark_fixed_ns, (Figure{6400, CostSource::kMeasured}));
  EXPECT_EQ(got->next_touch.mark_page_ns, (Figure{15.5F, CostSource::kMeasured}));
  EXPECT_EQ(got->next_touch.touch_page_ns, (Figure{1200, CostSource::kMeasured}));
  // Estimates are not kept: a better one may come.
  EXPECT_FALSE(got->access(1, 0, Access::kRead, MemoryLoad::kNode).latency_ns.known());
}

TEST_F(CostsFiles, NodesGoByTheKernelsNumbers) {
  topology::Error error;
  ASSERT_TRUE(write_costs(path_.c_str(), 42, *machine_, *table_, &error));
  // A process that may use the second node only: there it is the first.
  topology::RawMachine raw;
  raw.reader = "test";
  raw.add(topology::Kind::kMachine, topology::kNone, topology::kNone);
  const uint32_t object = raw.add(topology::Kind::kNode, 0, topology::kNone);
  raw.add(topology::Kind::kPu, object, 2);
  ASSERT_TRUE(raw.nodes.push({object, 3, uint64_t{1} << 30, true, ""}));
  const test::MachinePtr part{topology::build_machine(raw, nullptr, &error)};
  ASSERT_TRUE(part);
  const TablePtr got{make_cost_table(1)};
  ASSERT_EQ(read_costs(path_.c_str(), 42, *part, got.get(), &error), CostsFile::kRead);
  EXPECT_FLOAT_EQ(got->access(0, 0, Access::kWrite, MemoryLoad::kMachine).latency_ns.value, 142);
  EXPECT_FALSE(cost_for_read(*got, 0, 0, 1).known());
}

TEST_F(CostsFiles, WhatIsBadIsSaidInOneLineAndNothingIsTaken) {
  topology::Error error;
  const TablePtr got{make_cost_table(2)};
  EXPECT_EQ(read(got.get(), &error), CostsFile::kMissing);
  EXPECT_STREQ(error.text, "");
  ASSERT_TRUE(write_costs(path_.c_str(), 42, *machine_, *table_, &error));
  const std::string good = text();
  const auto expect_bad = [&](const std::string& bad) {
    write(bad);
    error = {};
    ASSERT_EQ(read(got.get(), &error), CostsFile::kBad) << bad;
    EXPECT_NE(strstr(error.text, path_.c_str()), nullptr) << error.text;
    EXPECT_NE(strstr(error.text, "bosk topo --measure"), nullptr) << error.text;
    EXPECT_EQ(strchr(error.text, '\n'), nullptr);
    EXPECT_FALSE(cost_for_read(*got, 0, 1, 1).known());
    EXPECT_FALSE(got->migration(0, 1, PageKind::kHuge).fixed_ns.known());
  };
  // Cut anywhere (but for the last newline).
  for (size_t length = 0; length + 1 < good.size(); ++length) expect_bad(good.substr(0, length));
  expect_bad(good + "more");
  expect_bad(std::string(3, '\0') + good);
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"costs 2", "costs 1"},
                                                        {"000000000000002a", "000000000000002b"},
                                                        {"000000000000002a", "2a"},
                                                        {"read", "reed"},
                                                        {"alone", "along"},
                                                        {"98250", "0"},
                                                        {"98250", "-1"},
                                                        {"98250", "99999999999999999999999"},
                                                        {"measured", "guessed"},
                                                        {"huge", "large"},
                                                        {"threads 2500000", "threads 0"}}) {
    std::string bad = good;
    ASSERT_NE(bad.find(from), std::string::npos) << from;
    expect_bad(bad.replace(bad.find(from), from.size(), to));
  }
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_EQ(read(got.get(), &error), CostsFile::kBad);
  EXPECT_FALSE(write_costs(path_.c_str(), 42, *machine_, *table_, &error));
  EXPECT_NE(strstr(error.text, "XDG_CACHE_HOME"), nullptr) << error.text;
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path_).parent_path()), {}), 1);
}

TEST(CostsPath, FollowsXdg) {
  char path[4096];
  topology::Error error;
  ASSERT_EQ(setenv("XDG_CACHE_HOME", "/x/y", 1), 0);
  ASSERT_TRUE(costs_path(0x1234, path, sizeof path, &error));
  EXPECT_STREQ(path, "/x/y/bosk/memory-costs-0000000000001234");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/me", 1);
  ASSERT_TRUE(costs_path(0x1234, path, sizeof path, &error));
  EXPECT_STREQ(path, "/home/me/.cache/bosk/memory-costs-0000000000001234");
  EXPECT_FALSE(costs_path(1, path, 20, &error));
  unsetenv("HOME");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_FALSE(costs_path(1, path, sizeof path, &error));
  EXPECT_NE(strstr(error.text, "HOME"), nullptr);
}

// --- which machine

class FakeRoot {
 public:
  FakeRoot() {
    std::string name = (fs::temp_directory_path() / "bosk-root-XXXXXX").string();
    root_ = mkdtemp(name.data());
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\nstepping\t: 1\n");
    put("sys/devices/system/node/online", "0,2-3\n");
    put("sys/devices/system/node/node3/cpulist", "8\n");
    put("sys/devices/system/node/node0/cpulist", "0-3\n");
    put("sys/devices/system/node/node0/distance", "10\n");
    put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8000000 kB\n");
  }
  ~FakeRoot() { fs::remove_all(root_); }
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  uint64_t fingerprint() const { return machine_fingerprint(root_.c_str()); }
  const fs::path& path() const { return root_; }

 private:
  fs::path root_;
};

TEST(MachineFingerprint, ChangesWithWhatMatters) {
  const FakeRoot root;
  const uint64_t before = root.fingerprint();
  EXPECT_EQ(root.fingerprint(), before);
  // A few MiB more or less are another start of the same machine.
  root.put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8010000 kB\n");
  EXPECT_EQ(root.fingerprint(), before);
  root.put("proc/cpuinfo", "processor\t: 3\nmodel name\t: Some CPU\nstepping\t: 1\n");
  EXPECT_EQ(root.fingerprint(), before);
  for (const auto& [file, text] : std::vector<std::pair<std::string, std::string>>{
           {"sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 16000000 kB\n"},
           {"sys/devices/system/node/node0/cpulist", "0-7\n"},
           {"sys/devices/system/node/node0/distance", "10 20\n"},
           {"sys/devices/system/node/node3/cpulist", "8-11\n"},
           {"proc/cpuinfo", "model name\t: Other CPU\nstepping\t: 1\n"}}) {
    const FakeRoot other;
    other.put(file, text);
    EXPECT_NE(other.fingerprint(), before) << file;
  }
  EXPECT_EQ(machine_fingerprint(), machine_fingerprint());
}

// --- measuring

TEST(CostProbes, LinesAreFound) {
  const double x[] = {1, 4, 16, 64, 256, 1024, 4096};
  double y[7];
  for (int i = 0; i < 7; ++i) y[i] = 120'000 + 11'000 * x[i];
  Line line = fit_line(x, y, 7, 1);
  EXPECT_NEAR(line.fixed, 120'000, 1);
  EXPECT_NEAR(line.each, 11'000, 1);
  // A disturbance of one sample is not the end of the world.
  y[3] *= 1.1;
  line = fit_line(x, y, 7, 1);
  EXPECT_NEAR(line.fixed, 120'000, 12'000);
  EXPECT_NEAR(line.each, 11'000, 1'100);
  for (int i = 0; i < 7; ++i) y[i] = 50 * x[i];
  line = fit_line(x, y, 7, 1);
  EXPECT_NEAR(line.each, 50, 2);
  // Neither part is ever nothing, or less.
  for (int i = 0; i < 7; ++i) y[i] = 1000 - 0.2 * x[i];
  line = fit_line(x, y, 7, 1);
  EXPECT_EQ(line.each, 1);
  EXPECT_GT(line.fixed, 0);
  line = fit_line(x, y, 1, 1);
  EXPECT_GE(line.each, 1);
}

TEST(CostProbes, RefuseMachinesThatAreNotThere) {
  const auto machine = two_nodes(false);
  const TablePtr table{make_cost_table(2)};
  topology::Error error;
  EXPECT_FALSE(measure_costs(*machine, {}, table.get(), &error));
  EXPECT_STRNE(error.text, "");
  EXPECT_FALSE(cost_for_read(*table, 0, 0, 1).known());
}

TEST(CostProbes, KnowEmulatedMachines) {
  const FakeRoot root;
  EXPECT_FALSE(machine_is_emulated(root.path().c_str()));
  root.put("proc/cpuinfo", "processor\t: 0\nmodel name\t: QEMU TCG CPU version 2.5+\nflags\t: x\n");
  EXPECT_TRUE(machine_is_emulated(root.path().c_str()));
  root.put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\nflags\t: TCG\n");
  EXPECT_FALSE(machine_is_emulated(root.path().c_str()));
}

TEST(CostProbes, MeasureThisMachine) {
  topology::Error error;
  static const topology::Machine* machine = topology::load_machine({}, &error);
  ASSERT_NE(machine, nullptr) << error.text;
  if (machine_is_emulated()) GTEST_SKIP() << "emulated";
  const TablePtr table{make_cost_table(machine->n_nodes)};
  uint32_t told = 0;
  CostProbe probe;
  probe.quick = true;
  probe.context = &told;
  probe.progress = [](void* context, uint32_t done, uint32_t total, const char* next) {
    EXPECT_EQ(done, (*static_cast<uint32_t*>(context))++);
    EXPECT_LT(done, total);
    EXPECT_STRNE(next, "");
  };
  ASSERT_TRUE(measure_costs(*machine, probe, table.get(), &error)) << error.text;
  EXPECT_GT(told, 0u);
  const NodeIndex home = machine->node_of_pu(0);
  for (const Access way : kWays)
    for (const MemoryLoad load : kLoads) {
      const AccessCost& cost = table->access(home, home, way, load);
      EXPECT_EQ(cost.latency_ns.source, CostSource::kMeasured);
      EXPECT_GT(cost.latency_ns.value, 0);
      EXPECT_GT(cost.bytes_per_ns.value, 0);
    }
  // Where a backend is allowed. Marks cost something, and so does a touch that meets one.
  const NextTouchCost& touch = table->next_touch;
  if (next_touch_available(NextTouchBackend::kUffd) ||
      next_touch_available(NextTouchBackend::kSigsegv)) {
    EXPECT_EQ(touch.touch_page_ns.source, CostSource::kMeasured);
    EXPECT_GT(touch.mark_fixed_ns.value, 0);
    EXPECT_GT(touch.mark_page_ns.value, 0);
    EXPECT_GT(touch.touch_page_ns.value, 0);
  }
}

}  // namespace
}  // namespace bosk::memory
