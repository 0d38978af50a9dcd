// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages to the guest's first process (lab/protocol.h), as bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bosk/lab/qemu_command.h"
#include "bosk/lab/session.h"

namespace bosk::tools::lab {

/// Kind, length, payload.
std::string message(char kind, std::string_view payload);

/// The job as the guest reads it, with what of this process it is to share: user, limits.
std::string job_message(const Job& job, const std::vector<WritableFolder>& writable);

/// "ROWS COLUMNS" of our terminal, or a usual size.
std::string window_size();

/// Cuts messages out of a stream of bytes.
class MessageReader {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  /// True: the next message is in `kind` and `payload`.
  bool next(char* kind, std::string* payload);

 private:
  std::string bytes_;
};

}  // namespace bosk::tools::lab
