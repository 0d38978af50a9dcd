// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data routines in C. The asynchronous ones are done when they return; the queue is not looked at,
// as libgomp does not on the host.
#include "abi/goacc/memory.h"

#include <stdlib.h>
#include <string.h>

#include "abi/goacc/async.h"
#include "abi/goacc/device.h"
#include "abi/gomp/export.h"
#include "base/message.h"

namespace bosk::acc {

void* enter_data(void* data, size_t size) {
  if (data == nullptr || size == 0) {
    base::gomp_fatal("[%p,+%zu] is a bad range", data, size);
  }
  ensure_attached();
  return data;
}

void exit_data() { ensure_attached(); }
void update_data() { ensure_attached(); }

bool is_present(const void* data, size_t size) {
  if (data == nullptr || size == 0) return false;
  ensure_attached();
  return true;
}

}  // namespace bosk::acc

using namespace bosk::acc;

namespace {

void* copy(void* to, const void* from, size_t size) {
  ensure_attached();
  // Both are host memory and may overlap.
  if (size != 0) memmove(to, from, size);
  return to;
}

}  // namespace

BOSK_EXPORT void* acc_malloc(size_t size) {
  if (size == 0) return nullptr;
  ensure_attached();
  return malloc(size);
}
BOSK_EXPORT void acc_free(void* block) { free(block); }

BOSK_EXPORT void* acc_copyin(void* data, size_t size) { return enter_data(data, size); }
BOSK_EXPORT_ALIAS(acc_copyin) void* acc_present_or_copyin(void*, size_t) noexcept;
BOSK_EXPORT_ALIAS(acc_copyin) void* acc_pcopyin(void*, size_t) noexcept;
BOSK_EXPORT_ALIAS(acc_copyin) void* acc_create(void*, size_t) noexcept;
BOSK_EXPORT_ALIAS(acc_copyin) void* acc_present_or_create(void*, size_t) noexcept;
BOSK_EXPORT_ALIAS(acc_copyin) void* acc_pcreate(void*, size_t) noexcept;
BOSK_EXPORT void acc_copyin_async(void* data, size_t size, int /*queue*/) {
  enter_data(data, size);
}
BOSK_EXPORT_ALIAS(acc_copyin_async) void acc_create_async(void*, size_t, int) noexcept;

BOSK_EXPORT void acc_copyout(void* /*data*/, size_t /*size*/) { exit_data(); }
BOSK_EXPORT_ALIAS(acc_copyout) void acc_copyout_finalize(void*, size_t) noexcept;
BOSK_EXPORT_ALIAS(acc_copyout) void acc_delete(void*, size_t) noexcept;
BOSK_EXPORT_ALIAS(acc_copyout) void acc_delete_finalize(void*, size_t) noexcept;
BOSK_EXPORT void acc_copyout_async(void* /*data*/, size_t /*size*/, int /*queue*/) { exit_data(); }
BOSK_EXPORT_ALIAS(acc_copyout_async) void acc_copyout_finalize_async(void*, size_t, int) noexcept;
BOSK_EXPORT_ALIAS(acc_copyout_async) void acc_delete_async(void*, size_t, int) noexcept;
BOSK_EXPORT_ALIAS(acc_copyout_async) void acc_delete_finalize_async(void*, size_t, int) noexcept;

BOSK_EXPORT void acc_update_device(void* /*data*/, size_t /*size*/) { update_data(); }
BOSK_EXPORT_ALIAS(acc_update_device) void acc_update_self(void*, size_t) noexcept;
BOSK_EXPORT void acc_update_device_async(void* /*data*/, size_t /*size*/, int /*queue*/) {
  update_data();
}
BOSK_EXPORT_ALIAS(acc_update_device_async) void acc_update_self_async(void*, size_t, int) noexcept;

BOSK_EXPORT int acc_is_present(void* data, size_t size) { return is_present(data, size) ? 1 : 0; }

BOSK_EXPORT void* acc_deviceptr(void* data) {
  ensure_attached();
  return data;
}
BOSK_EXPORT_ALIAS(acc_deviceptr) void* acc_hostptr(void*) noexcept;

BOSK_EXPORT void acc_map_data(void* host, void* device, size_t /*size*/) {
  ensure_attached();
  if (host != device) bosk::base::gomp_fatal("cannot map data on shared-memory system");
}
BOSK_EXPORT void acc_unmap_data(void* /*host*/) { ensure_attached(); }

BOSK_EXPORT void acc_memcpy_to_device(void* device, void* host, size_t size) {
  copy(device, host, size);
}
BOSK_EXPORT_ALIAS(acc_memcpy_to_device) void acc_memcpy_from_device(void*, void*, size_t) noexcept;
BOSK_EXPORT_ALIAS(acc_memcpy_to_device) void acc_memcpy_device(void*, void*, size_t) noexcept;
BOSK_EXPORT void acc_memcpy_to_device_async(void* device, void* host, size_t size, int /*queue*/) {
  copy(device, host, size);
}
BOSK_EXPORT_ALIAS(acc_memcpy_to_device_async)
void acc_memcpy_from_device_async(void*, void*, size_t, int) noexcept;
BOSK_EXPORT_ALIAS(acc_memcpy_to_device_async)
void acc_memcpy_device_async(void*, void*, size_t, int) noexcept;

// A pointer on the host is attached to its target as it is.
BOSK_EXPORT void acc_attach(void** /*pointer*/) { require_device(); }
BOSK_EXPORT_ALIAS(acc_attach) void acc_detach(void**) noexcept;
BOSK_EXPORT_ALIAS(acc_attach) void acc_detach_finalize(void**) noexcept;
BOSK_EXPORT void acc_attach_async(void** /*pointer*/, int queue) { require_queue(queue); }
BOSK_EXPORT_ALIAS(acc_attach_async) void acc_detach_async(void**, int) noexcept;
BOSK_EXPORT_ALIAS(acc_attach_async) void acc_detach_finalize_async(void**, int) noexcept;
