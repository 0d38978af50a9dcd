// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// QEMU as a child that cannot outlive us, and our ends of its channels.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "bosk/lab/qemu_command.h"

namespace bosk::tools::lab {

/// A descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  void reset(int number = -1);

 private:
  int number_;
};

class QemuProcess {
 public:
  QemuProcess() = default;
  /// Kills what still runs.
  ~QemuProcess();
  QemuProcess(const QemuProcess&) = delete;
  QemuProcess& operator=(const QemuProcess&) = delete;

  /// Fills in the channels and starts it. `keep`: a descriptor that it inherits. Throws LabError.
  void start(QemuCommand command, int keep);
  /// Has it ended? Does not wait.
  bool ended();
  /// Asks it to end, and insists after a while.
  void stop(bool at_once);

  // Our ends; none of them blocks.
  Descriptor console, control, input, output, error;
  Descriptor messages;  // what QEMU itself says

 private:
  pid_t process_ = -1;
};

}  // namespace bosk::tools::lab
