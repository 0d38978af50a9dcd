// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Records of one kind from the kernel's pages: never given back, so that whoever reads one too late reads
// a record. The caller has a lock.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/pages.h"

namespace bosk::memory {

template <typename Record, Record* Record::* kNext>
class RecordStore {
 public:
  /// Before the first take(): bytes that follow each record.
  void set_tail(size_t bytes) {
    stride_ = (sizeof(Record) + bytes + alignof(Record) - 1) & ~(alignof(Record) - 1);
  }

  /// One that was used before, or zeroed bytes; null: no memory.
  Record* take() {
    if (free_ == nullptr && !refill()) return nullptr;
    Record* record = free_;
    free_ = record->*kNext;
    return record;
  }
  void give(Record* record) {
    record->*kNext = free_;
    free_ = record;
  }

 private:
  bool refill() {
    size_t bytes;
    // A record with its tail may be larger than a first piece (heaps of a thread on a thousand nodes).
    auto* at = static_cast<char*>(base::map_more(mapped_, stride_, &bytes));
    if (at == nullptr) return false;
    mapped_ += bytes;
    for (size_t i = bytes / stride_; i-- > 0;) give(reinterpret_cast<Record*>(at + i * stride_));
    return true;
  }

  Record* free_ = nullptr;
  size_t stride_ = sizeof(Record);
  size_t mapped_ = 0;
};

}  // namespace bosk::memory
