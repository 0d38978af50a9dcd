// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a process of bosk's has the members of its team, and where we wish them to be: our side of the file of wishes (observed/hand_over.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "affinity/observer/file_descriptor.h"

struct bosk_wishes;

namespace bosk::affinity {

/// A thread of the process is a member, or helps one: then what it does is that one's doing. One owner.
class WishFile {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;

  /// Null: there is no memory for one.
  static std::unique_ptr<WishFile> make();
  int descriptor() const { return file_.number(); }
  /// Hands it to the process that has asked for it on the socket. False: it is gone.
  bool send(const FileDescriptor& socket) const;
  ~WishFile();
  WishFile(const WishFile&) = delete;
  WishFile& operator=(const WishFile&) = delete;

  /// What the process has told until now. O(its workers).
  void read();
  /// Has it tell anew, for read() later.
  void ring();
  uint32_t team() const { return static_cast<uint32_t>(cpus_.size()); }
  /// kNobody's: it is no worker with a seat.
  uint32_t member_of(uint32_t thread) const;
  /// The number of the CPU, as the kernel's, that the member is at home on.
  uint32_t cpu_of(uint32_t member) const { return cpus_[member]; }
  /// For each member of team(). Rings, if it is something new.
  void wish(std::span<const uint32_t> cpus);

 private:
  WishFile(FileDescriptor file, bosk_wishes* words);

  FileDescriptor file_;
  bosk_wishes* words_;
  std::unordered_map<uint32_t, uint32_t> members_;  ///< by thread
  std::vector<uint32_t> cpus_;                      ///< by member
};

}  // namespace bosk::affinity
