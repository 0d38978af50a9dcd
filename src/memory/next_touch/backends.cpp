// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which backends there are, and which of them work here.
#include <string.h>

#include "base/sleeping_lock.h"
#include "memory/next_touch/backend.h"
#include "memory/next_touch/fork.h"

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
    install_fork_hooks();
    seen = start(id) ? kWorks : kRefused;
    answer.store(seen, std::memory_order_release);
  }
  starting.unlock();
  return seen == kWorks;
}

void forget_started_backends() {
  for (auto& answer : known) answer.store(kUnknown, std::memory_order_relaxed);
  memset(static_cast<void*>(&starting), 0, sizeof starting);
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
