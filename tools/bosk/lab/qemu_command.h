// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line of QEMU for a shape.
#pragma once

#include <string>
#include <vector>

#include "bosk/lab/kernel.h"
#include "bosk/lab/shape.h"

namespace bosk::tools::lab {

/// What others add to QEMU's command line: plug-ins that watch the guest (lab/plugin/).
struct ExtraArguments {
  std::vector<std::string> words;
};

/// A folder of the host that the guest may write to.
struct WritableFolder {
  std::string tag;
  std::string path;
};

/// QEMU's ends of the channels: inherited sockets.
struct Channels {
  int console = -1;
  int control = -1;
  int input = -1;
  int output = -1;
  int error = -1;
};

struct QemuCommand {
  std::string program = "qemu-system-x86_64";
  Shape shape;
  Kernel kernel;
  std::string initramfs;  // a path that QEMU can open
  std::vector<WritableFolder> writable;
  Channels channels;
  ExtraArguments extra;
  std::string more_kernel_words;  // --append
};

std::vector<std::string> qemu_words(const QemuCommand& command);

}  // namespace bosk::tools::lab
