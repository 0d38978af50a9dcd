// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The observer's end of the socket on which processes say that they are there (src/observed).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "affinity/observer/file_descriptor.h"

namespace bosk::affinity {

class Hellos {
 public:
  struct Hello {
    pid_t process;
    FileDescriptor userfaultfd;
    int error;      ///< why there is no userfaultfd
    uint32_t kind;  ///< BOSK_OBSERVED_…
    /// Of what is no hello: the process waits until this is destroyed, or answers it.
    FileDescriptor waits;
  };

  /// Throws std::system_error.
  Hellos();

  /// For the environment of the program.
  const std::string& name() const { return name_; }
  /// To be polled.
  int descriptor() const { return poll_.number(); }
  /// The next one; none: nobody has said it yet. What others than processes of our user say is not heard.
  std::optional<Hello> next();

 private:
  /// Connected, and perhaps about to say it.
  struct Peer {
    pid_t process;
    FileDescriptor socket;
  };

  void accept_all();

  std::string name_;
  FileDescriptor listener_;
  FileDescriptor poll_;
  std::vector<Peer> peers_;
};

}  // namespace bosk::affinity
