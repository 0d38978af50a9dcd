// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The costs of a machine, fetched, measured and shown.
#include "topo_costs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "memory/cost_probe.h"
#include "memory/costs_file.h"
#include "threads/move_probe.h"
#include "topo_views.h"

namespace bosk::tools {
namespace {

using memory::Access;
using memory::AccessCost;
using memory::CostSource;
using memory::CostTable;
using memory::Figure;
using memory::MemoryLoad;
using memory::MigrationCost;
using memory::PageKind;
using topology::Machine;

constexpr std::array kWays = {Access::kRead, Access::kWrite};
constexpr std::array kLoads = {MemoryLoad::kAlone, MemoryLoad::kNode, MemoryLoad::kMachine};
constexpr std::array kPageKinds = {PageKind::kBase, PageKind::kHuge};

/// Shows how far it is, from the third second on.
class Progress {
 public:
  void show(uint32_t done, uint32_t total, const char* next) {
    const auto now = std::chrono::steady_clock::now();
    if (now - start_ < std::chrono::seconds(2)) return;
    if (terminal_) {
      fmt::print(stderr, "\rbosk: measuring memory: {} of {} ({})\033[K", done + 1, total, next);
    } else if (!shown_ || now - last_ >= std::chrono::seconds(10)) {
      fmt::print(stderr, "bosk: measuring memory: {} of {} ({})\n", done + 1, total, next);
      last_ = now;
    }
    shown_ = true;
  }
  ~Progress() {
    if (shown_ && terminal_) fmt::print(stderr, "\r\033[K");
  }
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_;
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  bool shown_ = false;
};

/// Is there a pair that could be measured and was not?
bool lacks_measurement(const Machine& machine, const CostTable& table) {
  for (uint32_t pu = 0; pu < machine.n_pus; pu++) {
    const uint32_t from = machine.node_of_pu(pu);
    for (uint32_t to = 0; to < machine.n_nodes; to++) {
      if (table.access(from, to, Access::kRead, MemoryLoad::kNode).latency_ns.source >
          CostSource::kAlike) {
        return true;
      }
    }
  }
  return false;
}

/// By a process of its own, which takes its workers along. What cannot be measured stays unknown.
void measure_threads(bool quick, memory::ThreadMoveCost* cost) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // nobody waits for it longer than that
    memory::ThreadMoveCost measured;
    const bool good = threads::measure_thread_move(quick, &measured) &&
                      write(ends[1], &measured, sizeof measured) == ssize_t{sizeof measured};
    _exit(good ? 0 : 1);
  }
  close(ends[1]);
  memory::ThreadMoveCost measured;
  if (child > 0) {
    if (read(ends[0], &measured, sizeof measured) == ssize_t{sizeof measured}) *cost = measured;
    waitpid(child, nullptr, 0);
  }
  close(ends[0]);
}

void measure_and_keep(const Machine& machine, bool quick, const char* path, uint64_t fingerprint,
                      CostTable* table) {
  topology::Error error;
  Progress progress;
  memory::CostProbe probe;
  probe.quick = quick;
  probe.context = &progress;
  probe.progress = [](void* context, uint32_t done, uint32_t total, const char* next) {
    static_cast<Progress*>(context)->show(done, total, next);
  };
  if (!memory::measure_costs(machine, probe, table, &error)) {
    fmt::print(stderr, "bosk: {}\n", error.text);
    return;
  }
  measure_threads(quick, &table->thread_move);
  if (path == nullptr) return;
  // What is shown now is what is read later: the file has whole numbers.
  if (!memory::write_costs(path, fingerprint, machine, *table, &error) ||
      memory::read_costs(path, fingerprint, machine, table, &error) == memory::CostsFile::kBad)
    fmt::print(stderr, "bosk: {}\n", error.text);
}

std::string number(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

/// A letter behind what was not measured here.
std::string cell(const Figure& figure) {
  static constexpr std::array kMarks = {"", "~", "f", "d", "a", ""};
  if (!figure.known()) return "?";
  return number(figure.value) + kMarks[static_cast<size_t>(figure.source)];
}

class CostsText {
 public:
  CostsText(const Machine& machine, const CostTable& costs) : machine_(machine), costs_(costs) {}

  std::string run() {
    out_ = fmt::format("costs of memory on {}\n", machine_.source);
    if (single_node()) {
      one_node();
    } else {
      for (const Access way : kWays) {
        const char* name = way == Access::kRead ? "read" : "write";
        matrix(fmt::format("{} latency alone, ns", name), [&](uint32_t from, uint32_t to) {
          return costs_.access(from, to, way, MemoryLoad::kAlone).latency_ns;
        });
        matrix(fmt::format("{} latency, all PUs of the node at work, ns", name),
               [&](uint32_t from, uint32_t to) {
                 return costs_.access(from, to, way, MemoryLoad::kNode).latency_ns;
               });
        for (const MemoryLoad load : kLoads) {
          static constexpr std::array kWho = {"one thread", "all PUs of a node",
                                              "all PUs of a node, all nodes at work"};
          matrix(fmt::format("{} bandwidth, {}, GB/s", name, kWho[static_cast<size_t>(load)]),
                 [&](uint32_t from, uint32_t to) {
                   return costs_.access(from, to, way, load).bytes_per_ns;
                 });
        }
      }
      for (const PageKind pages : kPageKinds) {
        const std::string size = pages == PageKind::kBase ? "4 KiB" : "2 MiB";
        matrix(fmt::format("migration in pages of {}: a call, us", size),
               [&](uint32_t from, uint32_t to) {
                 return in_us(costs_.migration(from, to, pages).fixed_ns);
               });
        matrix(fmt::format("migration in pages of {}: each page, us (on the diagonal: it is "
                           "there already)",
                           size),
               [&](uint32_t from, uint32_t to) {
                 return in_us(costs_.migration(from, to, pages).per_page_ns);
               });
      }
    }
    threads();
    legend();
    return out_;
  }

 private:
  bool single_node() const { return machine_.n_nodes == 1; }
  static Figure in_us(Figure figure) {
    figure.value /= 1000;
    return figure;
  }
  std::string shown(const Figure& figure) {
    seen_[static_cast<size_t>(figure.source)] = true;
    return cell(figure);
  }

  void one_node() {
    out_ += fmt::format("{:<40}{:>12}{:>12}\n", "", "read", "write");
    const auto line = [&](const std::string& name, auto figure_of) {
      out_ += fmt::format("{:<40}{:>12}{:>12}\n", name, shown(figure_of(Access::kRead)),
                          shown(figure_of(Access::kWrite)));
    };
    line("latency alone, ns",
         [&](Access way) { return costs_.access(0, 0, way, MemoryLoad::kAlone).latency_ns; });
    line("latency, all other PUs at work, ns",
         [&](Access way) { return costs_.access(0, 0, way, MemoryLoad::kNode).latency_ns; });
    line("bandwidth of one thread, GB/s",
         [&](Access way) { return costs_.access(0, 0, way, MemoryLoad::kAlone).bytes_per_ns; });
    line("bandwidth of all PUs, GB/s",
         [&](Access way) { return costs_.access(0, 0, way, MemoryLoad::kNode).bytes_per_ns; });
    for (const PageKind pages : kPageKinds) {
      const MigrationCost& cost = costs_.migration(0, 0, pages);
      out_ += fmt::format("pages of {} that are there already: {} us a call, {} us a page\n",
                          pages == PageKind::kBase ? "4 KiB" : "2 MiB", shown(in_us(cost.fixed_ns)),
                          shown(in_us(cost.per_page_ns)));
    }
    out_ += "migration: there is no other node\n";
  }

  template <class FigureOf>
  void matrix(const std::string& title, FigureOf figure_of) {
    out_ += fmt::format("\n{}\n   from\\to", title);
    for (uint32_t to = 0; to < machine_.n_nodes; to++) out_ += fmt::format("{:>9}", to);
    out_ += '\n';
    for (uint32_t from = 0; from < machine_.n_nodes; from++) {
      out_ += fmt::format("{:>10}", from);
      for (uint32_t to = 0; to < machine_.n_nodes; to++) {
        out_ += fmt::format("{:>9}", shown(figure_of(from, to)));
      }
      out_ += '\n';
    }
  }

  void threads() {
    const memory::ThreadMoveCost& cost = costs_.thread_move;
    out_ += fmt::format("\nmoving threads: {} us and {} us for each\n", shown(in_us(cost.fixed_ns)),
                        shown(in_us(cost.each_ns)));
    const memory::NextTouchCost& touch = costs_.next_touch;
    out_ += fmt::format("next-touch: {} us and {} us a page to mark, {} us for each page touched\n",
                        shown(in_us(touch.mark_fixed_ns)), shown(in_us(touch.mark_page_ns)),
                        shown(in_us(touch.touch_page_ns)));
  }

  void legend() {
    static constexpr std::array kWords = {
        "measured on this machine",
        "~ measured between two other nodes at the same distance",
        "f as firmware or the description tells",
        "d not measured: a usual figure, by the distance of the nodes",
        "a not measured: a usual figure, nobody told a distance",
        "? not known"};
    out_ += "\nwhere they come from:\n";
    for (size_t i = 0; i < kWords.size(); i++) {
      if (seen_[i]) out_ += fmt::format("  {}\n", kWords[i]);
    }
  }

  const Machine& machine_;
  const CostTable& costs_;
  std::string out_;
  std::array<bool, memory::kCostSources> seen_{};
};

nlohmann::ordered_json figure_json(const Figure& figure) {
  nlohmann::ordered_json out;
  out["value"] = figure.known() ? nlohmann::ordered_json(figure.value) : nlohmann::ordered_json();
  out["source"] = memory::cost_source_name(figure.source);
  return out;
}

}  // namespace

const CostTable* costs_of(const Machine& machine, const CostsWanted& wanted) {
  if (!wanted.measure || !machine.this_system) {
    // What is in a bad file is said; then it is measured again.
    CostTable* table = memory::load_costs(machine);
    if (table == nullptr || !machine.this_system || memory::machine_is_emulated() ||
        !lacks_measurement(machine, *table)) {
      return table;
    }
    memory::free_cost_table(table);
  }
  CostTable* table = memory::make_cost_table(machine.n_nodes);
  if (table == nullptr) return nullptr;
  topology::Error error;
  std::array<char, 1024> path{};
  const uint64_t fingerprint = memory::machine_fingerprint();
  const bool keep = memory::costs_path(fingerprint, path.data(), path.size(), &error);
  if (!keep) fmt::print(stderr, "bosk: {}\n", error.text);
  measure_and_keep(machine, wanted.quick, keep ? path.data() : nullptr, fingerprint, table);
  memory::estimate_costs(machine, table);
  return table;
}

std::string costs_text(const Machine& machine, const CostTable& costs) {
  return CostsText(machine, costs).run();
}

std::string costs_json(const Machine& machine, const CostTable& costs) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["access"] = Json::array();
  out["migration"] = Json::array();
  for (uint32_t from = 0; from < machine.n_nodes; from++) {
    for (uint32_t to = 0; to < machine.n_nodes; to++) {
      for (const Access way : kWays) {
        for (const MemoryLoad load : kLoads) {
          static constexpr std::array kNames = {"alone", "node", "machine"};
          const AccessCost& cost = costs.access(from, to, way, load);
          Json one;
          one["from"] = from;
          one["to"] = to;
          one["way"] = way == Access::kRead ? "read" : "write";
          one["load"] = kNames[static_cast<size_t>(load)];
          one["latency_ns"] = figure_json(cost.latency_ns);
          one["bytes_per_ns"] = figure_json(cost.bytes_per_ns);
          out["access"].push_back(one);
        }
      }
      for (const PageKind pages : kPageKinds) {
        const MigrationCost& cost = costs.migration(from, to, pages);
        Json one;
        one["from"] = from;
        one["to"] = to;
        one["page_bytes"] = costs.page_bytes(pages);
        one["fixed_ns"] = figure_json(cost.fixed_ns);
        one["per_page_ns"] = figure_json(cost.per_page_ns);
        out["migration"].push_back(one);
      }
    }
  }
  out["threads"]["fixed_ns"] = figure_json(costs.thread_move.fixed_ns);
  out["threads"]["each_ns"] = figure_json(costs.thread_move.each_ns);
  out["next_touch"]["mark_fixed_ns"] = figure_json(costs.next_touch.mark_fixed_ns);
  out["next_touch"]["mark_page_ns"] = figure_json(costs.next_touch.mark_page_ns);
  out["next_touch"]["touch_page_ns"] = figure_json(costs.next_touch.touch_page_ns);
  return out.dump();
}

}  // namespace bosk::tools
