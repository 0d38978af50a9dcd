// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Records of any size, in pieces that grow: each is zeroed, aligned and nobody else's.
#include "memory/record_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace bosk::memory {
namespace {

struct alignas(64) Record {
  Record* next;
  uint64_t first;
};

TEST(RecordStore, RecordsDoNotOverlapWhateverTheirTail) {
  for (const size_t tail :
       {size_t{0}, size_t{8}, size_t{5000}, size_t{64} << 10, size_t{3} << 20}) {
    SCOPED_TRACE(tail);
    RecordStore<Record, &Record::next> store;
    store.set_tail(tail);
    const size_t bytes = sizeof(Record) + tail;
    const size_t count = std::max<size_t>(3, (size_t{9} << 20) / bytes);
    std::vector<Record*> taken;
    for (size_t i = 0; i < count; ++i) {
      Record* record = store.take();
      ASSERT_NE(record, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(record) % alignof(Record), 0u);
      EXPECT_EQ(record->first, 0u);
      memset(static_cast<void*>(record), 1, bytes);
      taken.push_back(record);
    }
    std::sort(taken.begin(), taken.end());
    for (size_t i = 1; i < count; ++i)
      ASSERT_GE(reinterpret_cast<char*>(taken[i]) - reinterpret_cast<char*>(taken[i - 1]),
                static_cast<ptrdiff_t>(bytes));
    store.give(taken.back());
    EXPECT_EQ(store.take(), taken.back());
  }
}

}  // namespace
}  // namespace bosk::memory
