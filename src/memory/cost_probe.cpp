// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which measurements there are, and what becomes of their results.
//
// Of every pair (node with PUs, node with memory): latency and bandwidth of reads and writes, alone, with all PUs of the
// node, and with all PUs of the machine, where node i + k uses memory i + k + d for one d after the other. Then
// migration between every two nodes, and next-touch from one to another. With more than kMostPairs of them, one for each
// distance stands for all.
#include "memory/cost_probe.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/mapped_array.h"
#include "memory/cost_probe_access.h"
#include "memory/cost_probe_next_touch.h"
#include "memory/migration.h"

namespace bosk::memory {
namespace {

using base::MappedArray;

constexpr uint64_t kMostPairs = 64;
constexpr size_t kLeastBytes = size_t{4} << 20;
constexpr size_t kMostBytes = size_t{256} << 20;

bool read_text(const char* path, char* text, size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = read(file, text, size - 1);
  close(file);
  if (got < 0) return false;
  text[got] = '\0';
  return true;
}

/// 0: not told.
size_t free_bytes(int kernel_node) {
  char path[80];
  char text[4096];
  snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", kernel_node);
  const char* word = "MemFree:";
  if (!read_text(path, text, sizeof text)) {
    if (!read_text("/proc/meminfo", text, sizeof text)) return 0;
  }
  const char* found = strstr(text, word);
  return found == nullptr ? 0 : strtoull(found + strlen(word), nullptr, 10) << 10;
}

/// Of the last cache of a CPU; what is measured must not fit into it.
size_t cache_bytes(uint32_t cpu) {
  size_t largest = size_t{8} << 20;
  for (int index = 0; index < 8; ++index) {
    char path[100];
    char text[40];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%d/size", cpu, index);
    if (read_text(path, text, sizeof text))
      largest = std::max(largest, size_t{strtoull(text, nullptr, 10)} << 10);
  }
  return largest;
}

class Measurement {
 public:
  Measurement(const topology::Machine& machine, const CostProbe& probe, CostTable* table)
      : machine_(machine), probe_(probe), table_(*table) {}
  ~Measurement() {
    first_pu_.release();
    threads_.release();
    is_measured_.release();
  }
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  bool run() {
    const uint32_t n = machine_.n_nodes;
    if (!first_pu_.resize(n) || !is_measured_.resize(n * n)) return false;
    for (uint32_t i = 0; i < n; ++i) first_pu_[i] = topology::kNone;
    for (uint32_t pu = machine_.n_pus; pu-- > 0;) first_pu_[machine_.node_of_pu(pu)] = pu;
    for (NodeIndex node = 0; node < n; ++node) with_pus_ += first_pu_[node] != topology::kNone;
    choose_pairs();
    const uint32_t each_pair = 2 * 4;  // two loads, two ways, latency and bandwidth
    const bool whole_machine = with_pus_ > 1 && pairs_ == uint64_t{with_pus_} * n;
    total_ = pairs_ * each_pair + (whole_machine ? n * 4 : 0) + pairs_ * kPageKinds + 1;
    for (NodeIndex from = 0; from < n; ++from)
      for (NodeIndex to = 0; to < n; ++to)
        if (is_measured_[from * n + to] != 0) pair(from, to);
    if (whole_machine) {
      for (uint32_t shift = 0; shift < n; ++shift) all_nodes(shift);
    }
    next_touch();
    spread_alike();
    return good_ != 0;
  }

 private:
  const char* name(const char* what, NodeIndex from, NodeIndex to) {
    snprintf(text_, sizeof text_, "%s, node %u to %u", what, from, to);
    return text_;
  }
  void tell(const char* next) {
    if (probe_.progress != nullptr) probe_.progress(probe_.context, done_, total_, next);
    ++done_;
  }

  /// Pairs with the same key cost the same, as far as anybody tells.
  bool alike(uint32_t a, uint32_t b) const {
    const uint32_t n = machine_.n_nodes;
    const topology::NumaNode& to_a = machine_.node_array[a % n];
    const topology::NumaNode& to_b = machine_.node_array[b % n];
    return machine_.distance_array[a] == machine_.distance_array[b] &&
           (a / n == a % n) == (b / n == b % n) && to_a.has_pus == to_b.has_pus &&
           strcmp(to_a.subtype, to_b.subtype) == 0;
  }

  void choose_pairs() {
    const uint32_t n = machine_.n_nodes;
    const bool all = uint64_t{with_pus_} * n <= kMostPairs;
    for (uint32_t pair = 0; pair < n * n; ++pair) {
      if (first_pu_[pair / n] == topology::kNone) continue;
      bool known = false;
      for (uint32_t other = 0; !all && other < pair && !known; ++other)
        known = is_measured_[other] != 0 && alike(pair, other);
      is_measured_[pair] = known ? 0 : 1;
      pairs_ += known ? 0 : 1;
    }
  }

  size_t buffer_bytes(NodeIndex from, NodeIndex to, uint32_t threads) const {
    const size_t cache = cache_bytes(machine_.os_of_pu(first_pu_[from]));
    const size_t wanted = std::max(4 * cache / std::max(threads, 1u), 2 * kLeastBytes);
    const size_t room = free_bytes(kernel_node_of(to)) / 4 / std::max(threads, 1u);
    return std::max(std::min({wanted, room, probe_.quick ? kMostBytes / 4 : kMostBytes}),
                    kLeastBytes);
  }

  /// The best of a few: what disturbs makes it worse, never better.
  double best(uint32_t threads, size_t bytes, ProbeWork work) {
    double best_result = 0;
    const int tries = probe_.quick ? 2 : 3;
    for (int i = 0; i < tries; ++i) {
      for (uint32_t t = 0; t < threads; ++t) threads_[t].result = 0;
      if (!run_probe(threads_.data(), threads, bytes, probe_.quick ? 0.02 : 0.1)) return 0;
      const double result = result_of(0, threads, work);
      if (best_result == 0 ||
          (work == ProbeWork::kChase ? result < best_result : result > best_result))
        best_result = result;
    }
    return best_result;
  }
  /// Of threads `begin` … `end`: the first one's latency, or the bandwidth of all.
  double result_of(uint32_t begin, uint32_t end, ProbeWork work) {
    if (work == ProbeWork::kChase) return threads_[begin].result;
    double sum = 0;
    for (uint32_t t = begin; t < end; ++t) sum += threads_[t].result;
    return sum;
  }

  /// All PUs of a node stream, or the first one chases pointers beside them.
  uint32_t add_threads(NodeIndex from, NodeIndex to, Access way, ProbeWork first, bool alone) {
    uint32_t count = 0;
    for (uint32_t pu = 0; pu < machine_.n_pus; ++pu) {
      if (machine_.node_of_pu(pu) != from) continue;
      const ProbeThread thread{static_cast<int>(machine_.os_of_pu(pu)), kernel_node_of(to),
                               count == 0 ? first : ProbeWork::kStream, way};
      if (!threads_.push(thread)) return count;
      ++count;
      if (alone) break;
    }
    return count;
  }

  static void put(Figure* figure, double value) {
    if (value > 0) *figure = {static_cast<float>(value), CostSource::kMeasured};
  }

  void pair(NodeIndex from, NodeIndex to) {
    for (const MemoryLoad load : {MemoryLoad::kAlone, MemoryLoad::kNode})
      for (const Access way : {Access::kRead, Access::kWrite})
        for (const ProbeWork work : {ProbeWork::kChase, ProbeWork::kStream}) {
          tell(name(work == ProbeWork::kChase ? "latency" : "bandwidth", from, to));
          threads_.clear();
          const uint32_t threads = add_threads(from, to, way, work, load == MemoryLoad::kAlone);
          const double value = best(threads, buffer_bytes(from, to, threads), work);
          AccessCost& cost = table_.access(from, to, way, load);
          put(work == ProbeWork::kChase ? &cost.latency_ns : &cost.bytes_per_ns, value);
          good_ += value > 0 ? 1 : 0;
          // With one node that is the whole machine.
          if (load == MemoryLoad::kNode && with_pus_ == 1)
            table_.access(from, to, way, MemoryLoad::kMachine) = cost;
        }
    for (const PageKind pages : {PageKind::kBase, PageKind::kHuge}) {
      tell(name(pages == PageKind::kBase ? "migration" : "migration of huge pages", from, to));
      migration(from, to, pages);
    }
  }

  /// Every node uses the memory `shift` nodes further on.
  void all_nodes(uint32_t shift) {
    const uint32_t n = machine_.n_nodes;
    for (const Access way : {Access::kRead, Access::kWrite})
      for (const ProbeWork work : {ProbeWork::kChase, ProbeWork::kStream}) {
        tell("all nodes at once");
        threads_.clear();
        size_t bytes = kMostBytes;
        for (NodeIndex from = 0; from < n; ++from) {
          if (first_pu_[from] == topology::kNone) continue;
          const NodeIndex to = (from + shift) % n;
          const uint32_t threads = add_threads(from, to, way, work, false);
          bytes = std::min(bytes, buffer_bytes(from, to, threads));
        }
        if (!run_probe(threads_.data(), threads_.size(), bytes, probe_.quick ? 0.03 : 0.2))
          continue;
        uint32_t begin = 0;
        for (NodeIndex from = 0; from < n; ++from) {
          if (first_pu_[from] == topology::kNone) continue;
          uint32_t end = begin;
          for (uint32_t pu = 0; pu < machine_.n_pus; ++pu) end += machine_.node_of_pu(pu) == from;
          AccessCost& cost = table_.access(from, (from + shift) % n, way, MemoryLoad::kMachine);
          put(work == ProbeWork::kChase ? &cost.latency_ns : &cost.bytes_per_ns,
              result_of(begin, end, work));
          begin = end;
        }
      }
  }

  void migration(NodeIndex from, NodeIndex to, PageKind kind) {
    const size_t page = table_.page_bytes(kind);
    // Called on a PU of the target: there is where migrations run.
    const NodeIndex caller = first_pu_[to] != topology::kNone ? to : from;
    bind_caller(first_pu_[caller]);
    const size_t room = std::min(free_bytes(kernel_node_of(from)), free_bytes(kernel_node_of(to)));
    const size_t most_pages = probe_.quick || from == to ? 16'384 : 1'000'000;
    const size_t most = std::min(most_pages * base::kPage, room / 4) / page;
    double x[24];
    double y[24];
    uint32_t count = 0;
    for (size_t pages = 1; count < 24; pages = std::min(pages * 4, most)) {
      const double took = time_migration(from, to, kind, pages);
      if (took <= 0) break;
      x[count] = static_cast<double>(pages);
      y[count] = took;
      ++count;
      if (pages >= most) break;
    }
    if (count < 2) return;
    const Line line = fit_line(x, y, count, 1);
    MigrationCost& cost = table_.migration(from, to, kind);
    put(&cost.fixed_ns, line.fixed);
    put(&cost.per_page_ns, line.each);
  }

  /// ns, of the best of three; 0: it does not work.
  double time_migration(NodeIndex from, NodeIndex to, PageKind kind, size_t pages) {
    const size_t bytes = pages * table_.page_bytes(kind);
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_THREAD, &before);
    void* memory = map_on_node(bytes, kernel_node_of(from), kind == PageKind::kHuge);
    getrusage(RUSAGE_THREAD, &after);
    if (memory == nullptr) return 0;
    const auto faults = static_cast<size_t>(after.ru_minflt - before.ru_minflt);
    // One fault for each page, or they are not the huge ones that were asked for.
    bool good = kind == PageKind::kBase || faults < pages * 8 + 64;
    double best_ns = 0;
    for (int i = 0; i < 3 && good; ++i) {
      if (i > 0) migrate_pages(memory, bytes, from);
      const double start = probe_now();
      const Moved moved = migrate_pages(memory, bytes, to);
      const double took = (probe_now() - start) * 1e9;
      good = moved.complete() && moved.absent == 0;
      if (good && (best_ns == 0 || took < best_ns)) best_ns = took;
    }
    unmap_from_node(memory, bytes);
    return good ? best_ns : 0;
  }

  /// From another node, if there is one; each pair has its own costs of copying, of which this is one.
  void next_touch() {
    tell("next-touch");
    NodeIndex to = 0;
    while (to + 1 < machine_.n_nodes && first_pu_[to] == topology::kNone) ++to;
    if (first_pu_[to] == topology::kNone) return;
    NodeIndex from = to;
    for (NodeIndex node = 0; node < machine_.n_nodes; ++node)
      if (node != to && free_bytes(kernel_node_of(node)) >= 16 * kLeastBytes) from = node;
    bind_caller(first_pu_[to]);
    measure_next_touch(kernel_node_of(from), probe_.quick ? 4096 : 65'536, &table_.next_touch);
  }

  void bind_caller(uint32_t pu) const {
    cpu_set_t* set = CPU_ALLOC(65536);
    if (set == nullptr) return;
    CPU_ZERO_S(CPU_ALLOC_SIZE(65536), set);
    CPU_SET_S(static_cast<size_t>(machine_.os_of_pu(pu)), CPU_ALLOC_SIZE(65536), set);
    sched_setaffinity(0, CPU_ALLOC_SIZE(65536), set);
    CPU_FREE(set);
  }

  static void take_alike(Figure* figure, const Figure& other) {
    if (!figure->known() && other.known()) *figure = {other.value, CostSource::kAlike};
  }

  /// Pairs that were not measured take the figures of the one that stands for them.
  void spread_alike() {
    const uint32_t n = machine_.n_nodes;
    for (uint32_t pair = 0; pair < n * n; ++pair) {
      if (is_measured_[pair] != 0 || first_pu_[pair / n] == topology::kNone) continue;
      uint32_t other = 0;
      while (other < pair && (is_measured_[other] == 0 || !alike(pair, other))) ++other;
      if (other == pair) continue;
      for (uint32_t i = 0; i < kAccesses * kMemoryLoads; ++i) {
        AccessCost& cost = table_.access_array[pair * kAccesses * kMemoryLoads + i];
        const AccessCost& like = table_.access_array[other * kAccesses * kMemoryLoads + i];
        take_alike(&cost.latency_ns, like.latency_ns);
        take_alike(&cost.bytes_per_ns, like.bytes_per_ns);
      }
      for (uint32_t i = 0; i < kPageKinds; ++i) {
        MigrationCost& cost = table_.migration_array[pair * kPageKinds + i];
        const MigrationCost& like = table_.migration_array[other * kPageKinds + i];
        take_alike(&cost.fixed_ns, like.fixed_ns);
        take_alike(&cost.per_page_ns, like.per_page_ns);
      }
    }
  }

  const topology::Machine& machine_;
  const CostProbe& probe_;
  CostTable& table_;
  MappedArray<uint32_t> first_pu_;  // per node; kNone: it has none of ours
  MappedArray<uint8_t> is_measured_;
  MappedArray<ProbeThread> threads_;
  uint32_t with_pus_ = 0;
  uint32_t pairs_ = 0;
  uint32_t done_ = 0;
  uint32_t total_ = 0;
  uint32_t good_ = 0;
  char text_[80];
};

}  // namespace

Line fit_line(const double* x, const double* y, uint32_t count, double least) {
  double w = 0;
  double wx = 0;
  double wy = 0;
  double wxx = 0;
  double wxy = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const double weight = 1 / (y[i] * y[i]);
    w += weight;
    wx += weight * x[i];
    wy += weight * y[i];
    wxx += weight * x[i] * x[i];
    wxy += weight * x[i] * y[i];
  }
  const double divisor = w * wxx - wx * wx;
  Line line{least, least};
  if (divisor > 0) {
    line.each = (w * wxy - wx * wy) / divisor;
    line.fixed = (wy - line.each * wx) / w;
  }
  if (line.each < least) line = {wy / w, least};
  // All of it grows with x: the line through the origin that fits best.
  if (line.fixed < least) line = {least, std::max(least, wxy / wxx)};
  return line;
}

bool machine_is_emulated(const char* root) {
  char path[4096];
  char text[4096];
  snprintf(path, sizeof path, "%s/proc/cpuinfo", root == nullptr ? "" : root);
  if (!read_text(path, text, sizeof text)) return false;
  const char* model = strstr(text, "model name");
  if (model == nullptr) return false;
  const char* end = strchr(model, '\n');
  const char* tcg = strstr(model, "TCG");
  return tcg != nullptr && (end == nullptr || tcg < end);
}

bool measure_costs(const topology::Machine& machine, const CostProbe& probe, CostTable* table,
                   topology::Error* error) {
  if (!machine.this_system)
    return error->set("%s is not the machine that this runs on: nothing can be measured",
                      machine.source);
  if (machine_is_emulated())
    return error->set("this machine is emulated: times say nothing about memory");
  if (!use_machine(machine)) return error->set("no memory to measure with");
  const size_t set_bytes = CPU_ALLOC_SIZE(65536);
  cpu_set_t* before = CPU_ALLOC(65536);
  const bool kept = before != nullptr && sched_getaffinity(0, set_bytes, before) == 0;
  const bool good = Measurement(machine, probe, table).run();
  if (kept) sched_setaffinity(0, set_bytes, before);
  if (before != nullptr) CPU_FREE(before);
  return good || error->set("nothing could be measured: no memory, or no threads");
}

}  // namespace bosk::memory
