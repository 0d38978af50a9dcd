// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files of accesses: `bosk run --learn --record FILE` writes them, `bosk learn FILE` reads them. The format is described in docs/learning.md.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "affinity/access.h"
#include "affinity/learner.h"

namespace bosk::affinity {

/// One line that names the file and what to do.
struct RecordingError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What is said of all accesses of a file. Texts are one line each; other characters than printable ones become '?'.
struct RecordingHead {
  std::string host;
  std::string program;
  std::string date;
  std::string source;  ///< who saw the accesses
  std::string blind;   ///< what that one does not see; may be empty
  NodeOfCpu nodes;
};

/// One owner, who alone calls it.
class RecordingWriter {
 public:
  /// The file is made anew. Throws RecordingError.
  RecordingWriter(const std::string& path, const RecordingHead& head);

  void add(const Access& access);
  void thread_ended(uint32_t number, uint64_t time_ns);
  /// So that what was written so far is there if we are killed.
  void flush();
  /// Throws RecordingError: something could not be written (a full disk).
  void finish();
  uint64_t records() const { return records_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void put(const Access& access, uint8_t what);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  uint64_t records_ = 0;
};

struct RecordingCounts {
  uint64_t good = 0;
  uint64_t bad = 0;         ///< records whose check is wrong, or which say what cannot be
  bool is_cut_off = false;  ///< the file ends within a record
};

/// Each access, in the order of the file, and each thread that ended.
struct RecordingVisitor {
  std::function<void(const Access&)> access;
  std::function<void(uint32_t thread)> thread_ended;
};

/// Reads the head alone. Throws RecordingError: not there, not a recording, of a newer version, a head that cannot be understood.
RecordingHead read_recording_head(const std::string& path);
/// Reads all. Throws as read_recording_head(), and if most records are bad.
RecordingCounts read_recording(const std::string& path, const RecordingVisitor& visitor);

}  // namespace bosk::affinity
