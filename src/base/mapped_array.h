// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arrays straight from the kernel, for what is read before malloc may be called: a malloc of the
// program's own may itself call the runtime, and the environment is read at the first such call.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "base/spare_pages.h"

namespace bosk::base {

/// A growing array of plain data. Constant-initialised, never frees by itself: release() does.
/// Plain data itself: a copy is a second name for the same memory.
template <typename T>
class MappedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](uint32_t i) { return data_[i]; }
  const T& operator[](uint32_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }

  /// Room for `count` elements in all. False: the kernel has no memory; nothing changed.
  bool reserve(uint32_t count) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): T may well be a pointer
    const size_t needed = static_cast<size_t>(count) * sizeof(T);
    if (needed <= bytes_) return true;
    size_t bytes = bytes_ == 0 ? kPage : bytes_;
    while (bytes < needed) bytes *= 2;
    void* grown = take_pages(bytes);
    if (grown == nullptr) return false;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): T may well be a pointer
    if (size_ != 0) memcpy(grown, data_, size_ * sizeof(T));
    give_pages(data_, bytes_);
    data_ = static_cast<T*>(grown);
    bytes_ = bytes;
    return true;
  }
  bool push(const T& value) {
    const T copy = value;  // it may be an element of this array
    if (size_ == UINT32_MAX || !reserve(size_ + 1)) return false;
    data_[size_++] = copy;
    return true;
  }
  /// Makes it `count` elements long; new ones are all zero bits.
  bool resize(uint32_t count) {
    if (!reserve(count)) return false;
    if (count > size_) memset(static_cast<void*>(data_ + size_), 0, (count - size_) * sizeof(T));
    size_ = count;
    return true;
  }
  void remove(uint32_t at) {
    memmove(static_cast<void*>(data_ + at), data_ + at + 1, (size_ - at - 1) * sizeof(T));
    --size_;
  }
  void clear() { size_ = 0; }
  void release() {
    give_pages(data_, bytes_);
    *this = MappedArray{};
  }

 private:
  T* data_ = nullptr;
  size_t bytes_ = 0;
  uint32_t size_ = 0;
};

/// A copy of `length` characters and a NUL that stays for good, or null.
inline char* keep_text(const char* text, size_t length) {
  char* copy = static_cast<char*>(map_pages(length + 1));
  if (copy != nullptr) memcpy(copy, text, length);
  return copy;
}

}  // namespace bosk::base
