// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A growable array of plain structs that says when memory ran out instead of throwing.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <type_traits>

namespace bosk::topology {

/// The library is built without exceptions, so std::vector would abort without a word when malloc
/// fails. Only for trivially copyable types, only as a local or a member of a local.
template <typename T>
struct Array {
  static_assert(std::is_trivially_copyable_v<T>);

  T* data = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;

  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { free(data); }

  T& operator[](uint32_t i) { return data[i]; }
  const T& operator[](uint32_t i) const { return data[i]; }
  T* begin() { return data; }
  T* end() { return data + size; }
  const T* begin() const { return data; }
  const T* end() const { return data + size; }

  /// False: out of memory, the array is unchanged.
  [[nodiscard]] bool reserve(uint32_t n) {
    if (n <= capacity) return true;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): T may well be a pointer
    void* grown = realloc(static_cast<void*>(data), static_cast<size_t>(n) * sizeof(T));
    if (grown == nullptr) return false;
    data = static_cast<T*>(grown);
    capacity = n;
    return true;
  }

  [[nodiscard]] bool push(const T& value) {
    const T copy = value;  // `value` may live in the array that is about to move
    if (size == capacity && !reserve(capacity == 0 ? 16 : capacity * 2)) return false;
    data[size++] = copy;
    return true;
  }

  /// `n` elements with every byte `fill`. False: out of memory, the array is unchanged.
  [[nodiscard]] bool assign(uint32_t n, int fill = 0) {
    if (!reserve(n)) return false;
    if (n != 0) memset(static_cast<void*>(data), fill, static_cast<size_t>(n) * sizeof(T));
    size = n;
    return true;
  }
};

}  // namespace bosk::topology
