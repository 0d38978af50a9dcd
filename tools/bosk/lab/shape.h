// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine to be made: packages, cores, NUMA nodes, memory, distances. Rules about what QEMU and Linux
// can have; no QEMU here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bosk::tools::lab {

struct NodeShape {
  unsigned first_cpu = 0;
  unsigned cpus = 0;           // 0: memory only
  uint64_t bytes = 0;          // 0: CPUs only
  uint64_t bandwidth_mib = 0;  // MiB/s of its own memory; 0: not told to the guest
  std::optional<size_t>
      beside;  // memory only: the node whose CPUs it is beside, if not the nearest
};

struct Shape {
  unsigned packages = 0;
  unsigned dies = 1;     // per package
  unsigned cores = 0;    // per die
  unsigned threads = 1;  // per core
  std::vector<NodeShape> nodes;
  std::vector<std::vector<unsigned>> distances;  // SLIT: 10 is local

  unsigned cpus() const { return packages * dies * cores * threads; }
  uint64_t bytes() const;
  /// "4 nodes x 4 CPUs, 1 GiB each"
  std::string text() const;
};

/// What the user asked for, as words: each a number or one for each node ("4,4,0").
struct ShapeWords {
  std::string nodes = "4";
  std::string cpus_per_node = "4";
  std::string mem = "1G";
  std::string bandwidth;
  std::string distances = "flat";
};

/// Throws LabError.
Shape shape_from_words(const ShapeWords& words);

/// Gives the nodes the memory that the words of --mem say. Throws LabError.
void set_memory(const std::string& words, Shape* shape);

/// Throws LabError if there can be no such machine.
void check_shape(const Shape& shape);

/// "1G", "512M" → bytes; a number alone counts MiB. Throws LabError, which names `option`.
uint64_t parse_bytes(const std::string& text, const std::string& option);

/// A matrix for `count` nodes by name (flat, line, ring, mesh, cube) or from a file with a line for each
/// node. Throws LabError.
std::vector<std::vector<unsigned>> distances_from(const std::string& name_or_file, unsigned count);

}  // namespace bosk::tools::lab
