// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A protocol to show how one is written and checked: docs/design/model-checking.md.
#pragma once

#include <atomic>
#include <cstdint>

template <class A>
class Mailbox {
 public:
  void send(int letter) {
    letter_ = letter;
    full_.store(1, std::memory_order_release);  // publishes the letter
  }
  /// Has a letter come? Then letter() is it.
  bool receive() { return full_.load(std::memory_order_acquire) != 0; }  // pairs with the store
  int letter() const { return letter_; }

 private:
  typename A::template atomic<uint32_t> full_{0};
  typename A::template plain<int> letter_{0};  // not atomic: the checker looks for races on it
};
