// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk lab --locality`: the plugin of lab/plugin/ on QEMU's command line, its launcher before the command,
// and what it found. docs/locality.md
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bosk/lab/qemu_command.h"
#include "bosk/lab/session.h"

namespace bosk::tools::lab {

struct LocalityWish {
  std::vector<std::string> what;  // of --locality: "accesses", "caches", "objects"
  std::string caches;             // of --caches; empty: those of `like`, else QEMU's
  std::string like;               // of --like
};

class Locality {
 public:
  /// `library`: lib/bosk beside the tool. `output`: where results stay; empty: they are only printed. Throws
  /// LabError.
  Locality(const LocalityWish& wish, std::filesystem::path library, std::filesystem::path output);
  ~Locality();
  Locality(const Locality&) = delete;
  Locality& operator=(const Locality&) = delete;

  /// Before the guest starts.
  void prepare(QemuCommand* qemu, Job* job) const;
  /// When it has ended, with the tool's status so far: prints what was counted to standard error, and returns
  /// the status. Throws LabError if what the plugin saw of the nodes cannot be right.
  int report(int status) const;

 private:
  std::string caches_;  // the plugin's arguments
  bool objects_ = false;
  std::filesystem::path library_;
  std::filesystem::path folder_;
  bool keep_;
};

/// "512K/16,16M/16" → "private=512K/16,shared=16M/16". Throws LabError.
std::string plugin_caches(const std::string& words);

/// The caches of the machine in an hwloc XML file as words for the above: L2 of a core, L3s of a node. What it
/// does not tell, or all without a file, is as in QEMU.
std::string caches_like(const std::string& xml);

/// The plugin's arguments that say where CPUs and memory are.
std::string plugin_machine(const Shape& shape);

}  // namespace bosk::tools::lab
