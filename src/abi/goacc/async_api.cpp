// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// acc_async_test, acc_wait and their relatives, and the routines for CUDA.
#include "abi/goacc/async.h"

#include "abi/gomp/export.h"

using namespace bosk::acc;

BOSK_EXPORT int acc_async_test(int queue) {
  require_queue(queue);
  return 1;
}
BOSK_EXPORT int acc_async_test_all() {
  require_device();
  return 1;
}

BOSK_EXPORT void acc_wait(int queue) { require_queue(queue); }
BOSK_EXPORT void acc_wait_all() { require_device(); }
// The queue that shall wait is not looked at if the one to wait for is empty.
BOSK_EXPORT void acc_wait_async(int queue, int /*waiting_queue*/) { require_queue(queue); }
BOSK_EXPORT void acc_wait_all_async(int waiting_queue) { require_queue(waiting_queue); }
// Names that OpenACC 2.0 dropped.
BOSK_EXPORT_ALIAS(acc_wait) void acc_async_wait(int) noexcept;
BOSK_EXPORT_ALIAS(acc_wait_all) void acc_async_wait_all() noexcept;

BOSK_EXPORT int acc_async_test_h_(const int* queue) { return acc_async_test(*queue); }
BOSK_EXPORT_ALIAS(acc_async_test_all) int acc_async_test_all_h_() noexcept;
BOSK_EXPORT void acc_wait_h_(const int* queue) { acc_wait(*queue); }
BOSK_EXPORT_ALIAS(acc_wait_all) void acc_wait_all_h_() noexcept;
BOSK_EXPORT void acc_wait_async_h_(const int* queue, const int* waiting_queue) {
  acc_wait_async(*queue, *waiting_queue);
}
BOSK_EXPORT void acc_wait_all_async_h_(const int* waiting_queue) {
  acc_wait_all_async(*waiting_queue);
}

// No CUDA here: null where something of CUDA's is asked for.
BOSK_EXPORT void* acc_get_current_cuda_device() { return nullptr; }
BOSK_EXPORT void* acc_get_current_cuda_context() { return nullptr; }
BOSK_EXPORT void* acc_get_cuda_stream(int /*queue*/) { return nullptr; }
// 0 if there is nothing to do, negative for a stream that cannot be used.
BOSK_EXPORT int acc_set_cuda_stream(int queue, void* stream) {
  if (!valid_queue(queue) || stream == nullptr) return 0;
  ensure_attached();
  return -1;
}
