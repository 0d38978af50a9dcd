// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads a machine from Linux's /sys/devices/system, for systems without hwloc.
//
// Everything there is a list of CPUs: of a package, a die, a cache, a core, a NUMA node. The lists are
// sorted by size and laid over each other, largest first; since hardware nests, each one falls into
// exactly one of those already there, which is its parent. A list that crosses another (firmware can
// be wrong) is left out.
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topology/raw_machine.h"

namespace bosk::topology {
namespace {

/// A set of CPUs that share something: a run of numbers in Reader::members_.
struct Set {
  Kind kind;
  uint32_t os_index;
  uint32_t first;  // position in members_
  uint32_t count;
  uint32_t parent;  // another set, kNone: the machine
  uint32_t object;  // once emitted
};

struct Node {
  uint32_t os_index;
  uint32_t set;  // kNone: memory only
  uint64_t bytes;
};

/// Calls f(cpu) for every number of a list such as "0-3,8,10-11". False: it is not a list, or f
/// returned false.
template <typename F>
bool for_each_in_list(const char* text, F f) {
  while (isspace(static_cast<unsigned char>(*text))) text++;
  while (*text != '\0') {
    char* end;
    if (!isdigit(static_cast<unsigned char>(*text))) return false;
    const unsigned long from = strtoul(text, &end, 10);
    unsigned long to = from;
    if (*end == '-') {
      if (!isdigit(static_cast<unsigned char>(end[1]))) return false;
      to = strtoul(end + 1, &end, 10);
    }
    if (from > to || to >= kMaxOsIndex) return false;
    for (unsigned long i = from; i <= to; i++) {
      if (!f(static_cast<uint32_t>(i))) return false;
    }
    if (*end == ',') end++;
    while (isspace(static_cast<unsigned char>(*end))) end++;
    text = end;
  }
  return true;
}

class SysfsReader {
 public:
  SysfsReader(const char* root, RawMachine* raw, Error* error)
      : root_(root != nullptr ? root : ""), raw_(raw), error_(error) {}

  bool run() {
    raw_->reader = "sysfs";
    raw_->this_system = root_[0] == '\0';
    if (raw_->this_system) {
      snprintf(raw_->source, sizeof raw_->source, "this machine");
    } else {
      snprintf(raw_->source, sizeof raw_->source, "system tree %.180s", root_);
    }
    if (!read_online()) return false;
    if (read_cpus() && read_nodes() && nest() && emit() && emit_nodes()) return true;
    if (error_->text[0] == '\0') error_->set("out of memory while reading %s", raw_->source);
    return false;
  }

 private:
  /// The file's text, without the final newline, in text_. False: there is no such file.
  [[gnu::format(printf, 2, 3)]] bool read_text(const char* format, ...) {
    char path[512];
    int at = snprintf(path, sizeof path, "%s/sys/devices/system/", root_);
    if (at < 0 || at >= static_cast<int>(sizeof path)) return false;
    va_list args;
    va_start(args, format);
    const int more = vsnprintf(path + at, sizeof path - static_cast<size_t>(at), format, args);
    va_end(args);
    if (more < 0 || at + more >= static_cast<int>(sizeof path)) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t size = 0;
    for (;;) {
      const ssize_t n = read(fd, text_ + size, sizeof text_ - 1 - size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      size += static_cast<size_t>(n);
    }
    close(fd);
    while (size > 0 && isspace(static_cast<unsigned char>(text_[size - 1]))) size--;
    text_[size] = '\0';
    return true;
  }

  /// A number from text_, or kNone (Linux writes -1 for "not known").
  uint32_t number() const {
    const long value = strtol(text_, nullptr, 10);
    return isdigit(static_cast<unsigned char>(text_[0])) && value < kNone
               ? static_cast<uint32_t>(value)
               : kNone;
  }

  bool read_online() {
    if (!read_text("cpu/online")) {
      return error_->set("%s has no readable /sys/devices/system/cpu/online", raw_->source);
    }
    if (!index_of_.assign(kMaxOsIndex, 0xff)) {
      return error_->set("out of memory while reading %s", raw_->source);
    }
    const bool ok = for_each_in_list(text_, [this](uint32_t cpu) {
      if (index_of_[cpu] != kNone) return true;
      index_of_[cpu] = cpus_.size;
      return cpus_.push(cpu);
    });
    if (!ok || cpus_.size == 0) {
      return error_->set("%s: /sys/devices/system/cpu/online is not a list of CPUs: \"%.60s\"",
                         raw_->source, text_);
    }
    return true;
  }

  /// Adds the list in text_ as a set, once for all its members: when `cpu` is the first online one.
  /// `set` (may be null) receives it, or kNone.
  bool add_list(Kind kind, uint32_t os_index, uint32_t cpu, uint32_t* set) {
    const uint32_t first = members_.size;
    bool memory = true;
    uint32_t lowest = kNone;
    const bool is_list = for_each_in_list(text_, [&](uint32_t member) {
      if (index_of_[member] == kNone) return true;  // offline
      if (member < lowest) lowest = member;
      return memory = members_.push(member);
    });
    if (set != nullptr) *set = kNone;
    const uint32_t count = members_.size - first;
    if (!memory) return false;
    if (!is_list || count == 0 || (cpu != kNone && lowest != cpu)) {
      members_.size = first;
      return true;
    }
    if (set != nullptr) *set = sets_.size;
    return sets_.push(Set{kind, os_index, first, count, kNone, kNone});
  }

  bool read_cpus() {
    for (const uint32_t cpu : cpus_) {
      if (read_text("cpu/cpu%u/topology/core_cpus_list", cpu) ||
          read_text("cpu/cpu%u/topology/thread_siblings_list", cpu)) {
        if (!add_topology(Kind::kCore, "core_id", cpu)) return false;
      }
      if (read_text("cpu/cpu%u/topology/die_cpus_list", cpu)) {
        if (!add_topology(Kind::kDie, "die_id", cpu)) return false;
      }
      if (read_text("cpu/cpu%u/topology/cluster_cpus_list", cpu)) {
        if (!add_topology(Kind::kGroup, "cluster_id", cpu)) return false;
      }
      if (read_text("cpu/cpu%u/topology/package_cpus_list", cpu) ||
          read_text("cpu/cpu%u/topology/core_siblings_list", cpu)) {
        if (!add_topology(Kind::kPackage, "physical_package_id", cpu)) return false;
      }
      if (!read_caches(cpu)) return false;
    }
    return true;
  }

  /// The list is in text_, its number in a file beside it; a kind without a number is not real.
  bool add_topology(Kind kind, const char* id_file, uint32_t cpu) {
    const uint32_t before = sets_.size;
    if (!add_list(kind, kNone, cpu, nullptr)) return false;
    if (sets_.size == before) return true;
    const uint32_t id = read_text("cpu/cpu%u/topology/%s", cpu, id_file) ? number() : kNone;
    if (id == kNone && (kind == Kind::kDie || kind == Kind::kGroup)) {
      members_.size = sets_[before].first;
      sets_.size = before;
    } else {
      sets_[before].os_index = id;
    }
    return true;
  }

  bool read_caches(uint32_t cpu) {
    for (unsigned i = 0; i < 16; i++) {
      if (!read_text("cpu/cpu%u/cache/index%u/level", cpu, i)) break;
      const uint32_t level = number();
      if (level != 2 && level != 3) continue;
      if (!read_text("cpu/cpu%u/cache/index%u/type", cpu, i) || strcmp(text_, "Instruction") == 0) {
        continue;
      }
      const uint32_t id = read_text("cpu/cpu%u/cache/index%u/id", cpu, i) ? number() : kNone;
      if (!read_text("cpu/cpu%u/cache/index%u/shared_cpu_list", cpu, i)) continue;
      if (!add_list(level == 3 ? Kind::kL3 : Kind::kL2, id, cpu, nullptr)) return false;
    }
    return true;
  }

  bool read_nodes() {
    Array<uint32_t> online;
    if (!read_text("node/online")) return true;  // a kernel without NUMA: one node will be made up
    const bool ok = for_each_in_list(text_, [&](uint32_t node) { return online.push(node); });
    if (!ok) return true;
    for (const uint32_t os : online) {
      Node node{os, kNone, kUnknownBytes};
      if (!read_text("node/node%u/cpulist", os)) continue;
      // Memory-only nodes have an empty list.
      if (!add_list(Kind::kNode, os, kNone, &node.set)) return false;
      if (read_text("node/node%u/meminfo", os)) {
        const char* total = strstr(text_, "MemTotal:");
        if (total != nullptr) node.bytes = strtoull(total + 9, nullptr, 10) * 1024;
      }
      if (!nodes_.push(node)) return false;
    }
    return true;
  }

  /// Larger sets first; of equal ones the kind that is usually outside.
  static int compare(const void* left, const void* right, void* sets) {
    const Set& a = static_cast<Set*>(sets)[*static_cast<const uint32_t*>(left)];
    const Set& b = static_cast<Set*>(sets)[*static_cast<const uint32_t*>(right)];
    if (a.count != b.count) return a.count > b.count ? -1 : 1;
    if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
    return a.first < b.first ? -1 : a.first > b.first;
  }

  bool nest() {
    Array<uint32_t> by_size;
    for (uint32_t i = 0; i < sets_.size; i++) {
      if (!by_size.push(i)) return false;
    }
    if (by_size.size > 1) {
      qsort_r(by_size.data, by_size.size, sizeof(uint32_t), compare, sets_.data);
    }
    if (!innermost_.assign(cpus_.size, 0xff)) return false;
    for (const uint32_t i : by_size) {
      Set& set = sets_[i];
      const uint32_t parent = innermost_[index_of_[members_[set.first]]];
      bool crosses = false;
      for (uint32_t j = 0; j < set.count; j++) {
        crosses = crosses || innermost_[index_of_[members_[set.first + j]]] != parent;
      }
      // Left out of the tree: nothing will refer to it, except perhaps a node, which finds no object.
      if (crosses) continue;
      set.parent = parent;
      for (uint32_t j = 0; j < set.count; j++) {
        innermost_[index_of_[members_[set.first + j]]] = i;
      }
    }
    return true;
  }

  /// CPU by CPU, so that siblings come in the order of their first CPU.
  bool emit() {
    if (raw_->add(Kind::kMachine, kNone, kNone) == kNone) return false;
    if (!read_kinds()) return false;
    for (uint32_t i = 0; i < cpus_.size; i++) {
      Array<uint32_t> chain;  // sets around this CPU that are not there yet, innermost first
      uint32_t parent = 0;
      for (uint32_t set = innermost_[i]; set != kNone; set = sets_[set].parent) {
        if (sets_[set].object != kNone) {
          parent = sets_[set].object;
          break;
        }
        if (!chain.push(set)) return false;
      }
      while (chain.size > 0) {
        Set& set = sets_[chain[--chain.size]];
        // A NUMA node is attached to the object it covers, or to a group made for it alone.
        const Kind kind = set.kind == Kind::kNode ? Kind::kGroup : set.kind;
        parent = set.object = raw_->add(kind, parent, set.os_index);
        if (parent == kNone) return false;
      }
      if (raw_->add(Kind::kPu, parent, cpus_[i], kind_of_cpu_[i]) == kNone) return false;
    }
    return true;
  }

  bool emit_nodes() {
    for (const Node& node : nodes_) {
      RawNode out{};
      out.os_index = node.os_index;
      out.bytes = node.bytes;
      out.has_pus = node.set != kNone && sets_[node.set].object != kNone;
      out.object = out.has_pus ? sets_[node.set].object : 0;
      if (!raw_->nodes.push(out)) return false;
    }
    return read_distances();
  }

  /// nodeN/distance has one number per online node, in their order.
  bool read_distances() {
    const uint32_t n = nodes_.size;
    if (n > kMaxNodes) return true;  // the builder will refuse the machine
    if (!raw_->distances.assign(n * n)) return false;
    for (uint32_t i = 0; i < n; i++) {
      if (!read_text("node/node%u/distance", nodes_[i].os_index)) continue;
      const char* at = text_;
      for (uint32_t j = 0; j < n; j++) {
        char* end;
        const unsigned long value = strtoul(at, &end, 10);
        if (end == at) break;
        raw_->distances[i * n + j] = value < kNone ? static_cast<uint32_t>(value) : kNone - 1;
        at = end;
      }
    }
    return true;
  }

  /// cpu_capacity is the kernel's own ranking of hybrid cores; without it, x86 names two lists.
  bool read_kinds() {
    Array<uint32_t> capacity;
    Array<uint32_t> distinct;
    for (const uint32_t cpu : cpus_) {
      const uint32_t value = read_text("cpu/cpu%u/cpu_capacity", cpu) ? number() : kNone;
      if (!capacity.push(value) || !insert(&distinct, value)) return false;
    }
    if (distinct.size == 1) {
      distinct.size = 0;
      for (uint32_t i = 0; i < cpus_.size; i++) capacity[i] = kNone;
      mark_list("../cpu_atom/cpus", 0, &capacity);
      mark_list("../cpu_core/cpus", 1, &capacity);
      for (const uint32_t value : capacity) {
        if (!insert(&distinct, value)) return false;
      }
    }
    const bool known = distinct.size > 1 && distinct[distinct.size - 1] != kNone;
    if (!kind_of_cpu_.assign(cpus_.size, 0xff)) return false;
    if (!known || distinct.size > 100) return true;
    for (uint32_t k = 0; k < distinct.size; k++) {
      if (!raw_->cpu_kinds.push(CpuKind{static_cast<int32_t>(k), 0, 0, {}})) return false;
    }
    for (uint32_t i = 0; i < cpus_.size; i++) {
      for (uint32_t k = 0; k < distinct.size; k++) {
        if (capacity[i] == distinct[k]) kind_of_cpu_[i] = static_cast<int8_t>(k);
      }
    }
    return true;
  }

  void mark_list(const char* file, uint32_t value, Array<uint32_t>* of_cpu) {
    if (!read_text("%s", file)) return;
    for_each_in_list(text_, [&](uint32_t cpu) {
      if (index_of_[cpu] != kNone) (*of_cpu)[index_of_[cpu]] = value;
      return true;
    });
  }

  /// Into a sorted array without doubles.
  static bool insert(Array<uint32_t>* sorted, uint32_t value) {
    uint32_t at = 0;
    while (at < sorted->size && (*sorted)[at] < value) at++;
    if (at < sorted->size && (*sorted)[at] == value) return true;
    if (!sorted->push(value)) return false;
    for (uint32_t i = sorted->size - 1; i > at; i--) (*sorted)[i] = (*sorted)[i - 1];
    (*sorted)[at] = value;
    return true;
  }

  const char* root_;
  RawMachine* raw_;
  Error* error_;
  char text_[16384];
  Array<uint32_t> cpus_;      // online CPU numbers
  Array<uint32_t> index_of_;  // per CPU number: position in cpus_
  Array<uint32_t> members_;   // CPU numbers of all sets, one after the other
  Array<Set> sets_;
  Array<Node> nodes_;
  Array<uint32_t> innermost_;  // per position in cpus_: the smallest set around it
  Array<int8_t> kind_of_cpu_;  // per position in cpus_
};

}  // namespace

bool read_sysfs(const char* root, RawMachine* raw, Error* error) {
  error->text[0] = '\0';
  return SysfsReader(root, raw, error).run();
}

}  // namespace bosk::topology
