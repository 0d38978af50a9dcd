// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `bosk run --report` makes its page of, while the program runs and when it has ended, however it ended.
//
// BOSK_REPORT_DATA names a folder. Each process that opens a region makes a file there, named by its number, and maps it. About ten
// times a second the sampler writes what is known so far, and the process does so a last time at exit: so of one that is killed
// all but the last moment is there. A file has a head and two texts in turn (JSON); the head says which of them is complete.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::omp {

/// The head of the file. `count` texts have been written; the last one is in `text[count % 2]`.
struct ReportDataHead {
  static constexpr uint64_t kMagic = 0x0061'7461'646b'736f;  ///< "oskdata"
  static constexpr uint32_t kTextBytes = 1 << 18;
  uint64_t magic = kMagic;
  std::atomic<uint32_t> count{0};
  uint32_t bytes[2] = {};
};
constexpr uint32_t kReportDataHeadBytes = 4096;

/// With preemption on, before a region. In a forked child that opens one it makes the child's file.
void keep_report_data();
/// The last text: the process ends in order.
void end_report_data();
void report_data_forget_after_fork();

}  // namespace bosk::omp
