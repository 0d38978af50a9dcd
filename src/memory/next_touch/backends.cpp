// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which backends there are, and which of them work here.
#include <string.h>

#include "base/sleeping_lock.h"
#include "memory/next_touch/backend.h"

namespace bosk::memory {
namespace {

enum : uint8_t { kUnknown, kWorks, kRefused };
constinit std::atomic<uint8_t> known[kNextTouchBackends] = {};
constinit base::SleepingLock starting;

constexpr const char* kNames[kNextTouchBackends] = {"auto", "uffd", "uffd-thread", "sigsegv",
                                                    "kernel"};

bool start(NextTouchBackend id) {
  if (id == NextTouchBackend::kKernel) return kernel_next_touch_available();
  const Backend* backend = backend_of(id);
  return backend != nullptr && backend->start();
}

}  // namespace

const Backend* backend_of(NextTouchBackend id) {
  switch (id) {
    case NextTouchBackend::kUffd:
      return &kUffdBackend;
    case NextTouchBackend::kUffdThread:
      return &kUffdThreadBackend;
    case NextTouchBackend::kSigsegv:
      return &kSigsegvBackend;
    default:
      return nullptr;
  }
}

bool next_touch_available(NextTouchBackend id) {
  std::atomic<uint8_t>& answer = known[static_cast<size_t>(id)];
  // acquire: what the start has opened is seen.
  uint8_t seen = answer.load(std::memory_order_acquire);
  if (seen != kUnknown) return seen == kWorks;
  starting.lock();
  seen = answer.load(std::memory_order_relaxed);
  if (seen == kUnknown) {
    seen = start(id) ? kWorks : kRefused;
    answer.store(seen, std::memory_order_release);
  }
  starting.unlock();
  return seen == kWorks;
}

void lock_starts_for_fork() { starting.lock(); }
void unlock_starts_after_fork() { starting.unlock(); }

bool forget_started_backends() {
  bool any = false;
  for (auto& answer : known) {
    any = any || answer.load(std::memory_order_relaxed) != kUnknown;
    answer.store(kUnknown, std::memory_order_relaxed);
  }
  return any;
}

const char* next_touch_backend_name(NextTouchBackend id) {
  return static_cast<size_t>(id) < kNextTouchBackends ? kNames[static_cast<size_t>(id)] : "?";
}

bool next_touch_parse_backend(const char* word, NextTouchBackend* id) {
  for (uint32_t i = 0; i < kNextTouchBackends; ++i)
    if (strcmp(word, kNames[i]) == 0) {
      *id = static_cast<NextTouchBackend>(i);
      return true;
    }
  return false;
}

}  // namespace bosk::memory
