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
    constexpr size_t kBlock = size_t{64} << 10;
    const size_t n = stride_ < kBlock ? kBlock / stride_ : 1;
    auto* at = static_cast<char*>(base::map_pages(n * stride_));
    if (at == nullptr) return false;
    for (size_t i = n; i-- > 0;) give(reinterpret_cast<Record*>(at + i * stride_));
    return true;
  }

  Record* free_ = nullptr;
  size_t stride_ = sizeof(Record);
};

}  // namespace bosk::memory
