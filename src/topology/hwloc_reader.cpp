// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads a machine with hwloc: this system, XML, or a synthetic description.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topology/hwloc_library.h"
#include "topology/hwloc_node_pairs.h"
#include "topology/raw_machine.h"
#include "topology/source.h"
#include "topology/synthetic.h"

namespace bosk::topology {
namespace {

constexpr uint32_t kMaxXmlBytes = 256u << 20;

/// The whole file, NUL-terminated. Read by us and not by hwloc, whose errors do not say whether the
/// file or its content was bad.
bool read_file(const char* path, Array<char>* out, Error* error) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return error->set("cannot read XML file %.200s: %s", path, strerror(errno));
  for (;;) {
    if (!out->reserve(out->size + (64u << 10) + 1)) {
      close(fd);
      return error->set("out of memory while reading XML file %.200s", path);
    }
    const ssize_t n = read(fd, out->data + out->size, 64u << 10);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      error->set("cannot read XML file %.200s: %s", path, strerror(errno));
      close(fd);
      return false;
    }
    if (n == 0) break;
    out->size += static_cast<uint32_t>(n);
    if (out->size > kMaxXmlBytes) {
      close(fd);
      return error->set("XML file %.200s is larger than %u MiB", path, kMaxXmlBytes >> 20);
    }
  }
  close(fd);
  out->data[out->size++] = '\0';
  return true;
}

class HwlocReader {
 public:
  HwlocReader(const Hwloc& hwloc, const MachineSource& source, RawMachine* raw, Error* error)
      : h_(hwloc), source_(source), raw_(raw), error_(error) {}
  HwlocReader(const HwlocReader&) = delete;
  HwlocReader& operator=(const HwlocReader&) = delete;
  ~HwlocReader() {
    if (topology_ != nullptr) h_.topology_destroy(topology_);
  }

  bool run() { return load() && convert(); }

 private:
  bool load() {
    if (h_.topology_init(&topology_) != 0) {
      topology_ = nullptr;
      return error_->set("hwloc cannot start: %s", strerror(errno));
    }
    unsigned long flags = 0;
#if HWLOC_API_VERSION >= 0x00020500
    // hwloc may otherwise walk the calling thread over all CPUs to ask each for its identity.
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
    if (!source_.restrict_to_process) flags |= HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
    if (h_.topology_set_flags(topology_, flags) != 0) {
      h_.topology_set_flags(topology_, 0);  // a library older than the headers
    }
    switch (source_.from) {
      case MachineSource::From::kXmlFile:
        return load_xml_file();
      case MachineSource::From::kXmlText:
        snprintf(raw_->source, sizeof raw_->source, "XML text");
        return load_xml(source_.text, strlen(source_.text) + 1);
      case MachineSource::From::kSynthetic:
        return load_synthetic();
      default:
        snprintf(raw_->source, sizeof raw_->source, "this machine");
        if (h_.topology_load(topology_) == 0) return true;
        return error_->set("hwloc cannot read this machine: %s", strerror(errno));
    }
  }

  bool load_xml_file() {
    Array<char> text;
    snprintf(raw_->source, sizeof raw_->source, "XML file %.180s", source_.text);
    if (!read_file(source_.text, &text, error_)) return false;
    // hwloc takes the content as a C string, so a NUL byte would silently cut it.
    if (strlen(text.data) + 1 != text.size) {
      return error_->set(
          "%s is not hwloc XML (it has NUL bytes); write one with: lstopo machine.xml",
          raw_->source);
    }
    return load_xml(text.data, text.size);
  }

  bool load_xml(const char* text, size_t size) {
    if (size > kMaxXmlBytes) return error_->set("%s is too large", raw_->source);
    if (strstr(text, "<topology") != nullptr &&
        h_.topology_set_xmlbuffer(topology_, text, static_cast<int>(size)) == 0 &&
        h_.topology_load(topology_) == 0) {
      return true;
    }
    return error_->set("%s is not hwloc XML; write one with: lstopo machine.xml", raw_->source);
  }

  bool load_synthetic() {
    Array<char> description;
    snprintf(raw_->source, sizeof raw_->source, "synthetic machine \"%.150s\"", source_.text);
    if (!translate_synthetic(source_.text, &description, error_)) return false;
    if (h_.topology_set_synthetic(topology_, description.data) == 0 &&
        h_.topology_load(topology_) == 0) {
      return true;
    }
    return error_->set(
        "hwloc refuses %s (in its words: \"%.200s\"); see hwloc(7), Synthetic "
        "topologies, or use words like \"node:4 core:4 pu:1\"",
        raw_->source, description.data);
  }

  bool convert() {
    raw_->reader = "hwloc";
    raw_->this_system = source_.from == MachineSource::From::kThisMachine
                            ? h_.topology_is_thissystem(topology_) != 0
                            : source_.describes_this_system;
    if (!read_kinds() || !add_tree(h_.get_obj_by_depth(topology_, 0, 0), kNone) ||
        !read_node_pairs(h_, topology_, hwloc_nodes_, raw_)) {
      free_kind_sets();
      if (error_->text[0] != '\0') return false;
      return error_->set("out of memory while reading %s", raw_->source);
    }
    free_kind_sets();
    return true;
  }

  static bool kind_of(hwloc_obj_type_t type, Kind* kind) {
    switch (type) {
      case HWLOC_OBJ_MACHINE:
        *kind = Kind::kMachine;
        return true;
      case HWLOC_OBJ_PACKAGE:
        *kind = Kind::kPackage;
        return true;
      case HWLOC_OBJ_L3CACHE:
        *kind = Kind::kL3;
        return true;
      case HWLOC_OBJ_L2CACHE:
        *kind = Kind::kL2;
        return true;
      case HWLOC_OBJ_CORE:
        *kind = Kind::kCore;
        return true;
      case HWLOC_OBJ_PU:
        *kind = Kind::kPu;
        return true;
#if HWLOC_API_VERSION >= 0x00020100
      case HWLOC_OBJ_DIE:
        *kind = Kind::kDie;
        return true;
#endif
      case HWLOC_OBJ_GROUP:
      case HWLOC_OBJ_L4CACHE:
      case HWLOC_OBJ_L5CACHE:
        *kind = Kind::kGroup;
        return true;
      default:
        return false;  // L1 and instruction caches: nothing that a core does not say
    }
  }

  /// As deep as the hardware tree: hwloc merges objects with equal PUs before we see them.
  bool add_tree(hwloc_obj_t object, uint32_t parent) {
    uint32_t at = parent;
    Kind kind;
    if (kind_of(object->type, &kind)) {
      const int8_t cpu_kind = kind == Kind::kPu ? kind_of_pu(object->os_index) : int8_t{-1};
      at = raw_->add(kind, parent, parent == kNone ? kNone : object->os_index, cpu_kind);
      if (at == kNone) return false;
      if (raw_->objects.size > 16 * kMaxPus) {
        return error_->set("%s has too many objects", raw_->source);
      }
    }
    if (!add_nodes(object->memory_first_child, at)) return false;
    for (hwloc_obj_t child = object->first_child; child != nullptr; child = child->next_sibling) {
      if (!add_tree(child, at)) return false;
    }
    return true;
  }

  /// NUMA nodes hang beside the tree, perhaps below memory-side caches.
  bool add_nodes(hwloc_obj_t memory, uint32_t at) {
    for (; memory != nullptr; memory = memory->next_sibling) {
      if (!add_nodes(memory->memory_first_child, at)) return false;
      if (memory->type != HWLOC_OBJ_NUMANODE) continue;
      RawNode node{};
      node.object = at;
      node.os_index = memory->os_index;
      node.bytes = memory->attr->numanode.local_memory;
      // A description that leaves the size out is not a node without memory.
      if (node.bytes == 0 && !raw_->this_system) node.bytes = kUnknownBytes;
      node.has_pus = memory->cpuset != nullptr && h_.bitmap_iszero(memory->cpuset) == 0;
      snprintf(node.subtype, sizeof node.subtype, "%s",
               memory->subtype != nullptr ? memory->subtype : "");
      node.bandwidth = bandwidth_of(memory);
      if (!raw_->nodes.push(node) || !hwloc_nodes_.push(memory)) return false;
    }
    return true;
  }

  uint64_t bandwidth_of([[maybe_unused]] hwloc_obj_t node) const {
#if HWLOC_API_VERSION >= 0x00020300
    hwloc_location from;
    hwloc_uint64_t value = 0;
    if (h_.memattr_get_best_initiator != nullptr &&
        h_.memattr_get_best_initiator(topology_, HWLOC_MEMATTR_ID_BANDWIDTH, node, 0, &from,
                                      &value) == 0) {
      return value;
    }
#endif
    return 0;
  }

  int8_t kind_of_pu(unsigned cpu) const {
    for (uint32_t k = 0; k < kind_sets_.size; k++) {
      if (h_.bitmap_isset(kind_sets_[k], cpu) != 0) return static_cast<int8_t>(k);
    }
    return -1;
  }

  void free_kind_sets() {
    for (hwloc_bitmap_t set : kind_sets_) h_.bitmap_free(set);
    kind_sets_.size = 0;
  }

  bool read_kinds() {
#if HWLOC_API_VERSION >= 0x00020400
    if (h_.cpukinds_get_nr == nullptr || h_.cpukinds_get_info == nullptr) return true;
    const int n = h_.cpukinds_get_nr(topology_, 0);
    for (int k = 0; k < n && k < 64; k++) {
      hwloc_bitmap_t set = h_.bitmap_alloc();
      if (set == nullptr) return false;
      if (!kind_sets_.push(set)) {
        h_.bitmap_free(set);
        return false;
      }
      CpuKind kind{-1, 0, 0, {}};
      int efficiency = -1;
#if HWLOC_API_VERSION < 0x00030000
      unsigned n_infos = 0;
      hwloc_info_s* infos = nullptr;
      if (h_.cpukinds_get_info(topology_, static_cast<unsigned>(k), set, &efficiency, &n_infos,
                               &infos, 0) != 0) {
        n_infos = 0;
      }
#else
      // hwloc 3 hands out its own list instead of a pointer and a count.
      hwloc_infos_s* list = nullptr;
      const int failed =
          h_.cpukinds_get_info(topology_, static_cast<unsigned>(k), set, &efficiency, &list, 0);
      const unsigned n_infos = failed == 0 && list != nullptr ? list->count : 0;
      hwloc_info_s* infos = n_infos != 0 ? list->array : nullptr;
#endif
      kind.efficiency = efficiency;
      for (unsigned i = 0; i < n_infos; i++) {
        if (strcmp(infos[i].name, "CoreType") == 0) {
          snprintf(kind.core_type, sizeof kind.core_type, "%s", infos[i].value);
        } else if (strcmp(infos[i].name, "FrequencyMaxMHz") == 0) {
          kind.max_mhz = static_cast<uint32_t>(strtoul(infos[i].value, nullptr, 10));
        }
      }
      if (!raw_->cpu_kinds.push(kind)) return false;
    }
#endif
    return true;
  }

  const Hwloc& h_;
  const MachineSource& source_;
  RawMachine* raw_;
  Error* error_;
  hwloc_topology_t topology_ = nullptr;
  Array<hwloc_obj_t> hwloc_nodes_;   // in the order of raw_->nodes
  Array<hwloc_bitmap_t> kind_sets_;  // in the order of raw_->cpu_kinds
};

}  // namespace

bool read_with_hwloc(const MachineSource& source, RawMachine* raw, Error* error) {
  const HwlocVisit hwloc(error);
  return hwloc.library() != nullptr && HwlocReader(*hwloc.library(), source, raw, error).run();
}

char* this_system_xml(size_t* size, Error* error) {
  const HwlocVisit visit(error);
  const Hwloc* hwloc = visit.library();
  if (hwloc == nullptr) return nullptr;
  if (hwloc->topology_export_xmlbuffer == nullptr || hwloc->free_xmlbuffer == nullptr) {
    error->set("this hwloc cannot write XML");
    return nullptr;
  }
  hwloc_topology_t topology;
  if (hwloc->topology_init(&topology) != 0) {
    error->set("hwloc cannot start: %s", strerror(errno));
    return nullptr;
  }
#if HWLOC_API_VERSION >= 0x00020500
  hwloc->topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
#endif
  char* result = nullptr;
  char* text = nullptr;
  int length = 0;
  if (hwloc->topology_load(topology) != 0 ||
      hwloc->topology_export_xmlbuffer(topology, &text, &length, 0) != 0 || length <= 0) {
    error->set("hwloc cannot write this machine as XML: %s", strerror(errno));
  } else {
    *size = strlen(text);  // hwloc's length counts the NUL
    result = static_cast<char*>(malloc(*size + 1));
    if (result == nullptr) {
      error->set("out of memory while writing this machine as XML");
    } else {
      memcpy(result, text, *size + 1);
    }
  }
  if (text != nullptr) hwloc->free_xmlbuffer(topology, text);
  hwloc->topology_destroy(topology);
  return result;
}

}  // namespace bosk::topology
