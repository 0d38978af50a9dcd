// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/sync.h: time, thread-local data, I/O.
#include "abi/gomp/export.h"
#include "bosk/sync.h"
#include "threads/sync/io.h"
#include "threads/sync/keys.h"
#include "threads/sync/wait_list.h"

BOSK_EXPORT uint64_t bosk_now() { return bosk::sched::clock_now(); }
BOSK_EXPORT uint64_t bosk_after(uint64_t nanoseconds) {
  const uint64_t now = bosk::sched::clock_now();
  return nanoseconds < BOSK_FOREVER - now ? now + nanoseconds : BOSK_FOREVER;
}
BOSK_EXPORT int bosk_sleep_until(uint64_t deadline) { return bosk::threads::sleep_until(deadline); }
BOSK_EXPORT int bosk_sleep_for(uint64_t nanoseconds) {
  return bosk::threads::sleep_until(bosk_after(nanoseconds));
}

BOSK_EXPORT int bosk_key_create(bosk_key_t* key, void (*destructor)(void*)) {
  return key != nullptr ? bosk::threads::create_key(key, destructor) : BOSK_EINVAL;
}
BOSK_EXPORT int bosk_key_delete(bosk_key_t key) { return bosk::threads::delete_key(key); }
BOSK_EXPORT void* bosk_key_get(bosk_key_t key) { return bosk::threads::value_of_key(key); }
BOSK_EXPORT int bosk_key_set(bosk_key_t key, const void* value) {
  return bosk::threads::set_value_of_key(key, const_cast<void*>(value));
}

BOSK_EXPORT int bosk_wait_fd(int fd, int events, uint64_t deadline) {
  return bosk::threads::wait_fd(fd, events, deadline);
}
BOSK_EXPORT int bosk_poll(pollfd* fds, size_t count, uint64_t deadline) {
  return bosk::threads::poll_fds(fds, count, deadline);
}
BOSK_EXPORT ssize_t bosk_read(int fd, void* buffer, size_t bytes) {
  return bosk::threads::read_fd(fd, buffer, bytes);
}
BOSK_EXPORT ssize_t bosk_write(int fd, const void* buffer, size_t bytes) {
  return bosk::threads::write_fd(fd, buffer, bytes);
}
BOSK_EXPORT int bosk_accept(int fd, sockaddr* address, unsigned int* address_bytes, int flags) {
  return bosk::threads::accept_fd(fd, address, address_bytes, flags);
}
BOSK_EXPORT int bosk_connect(int fd, const sockaddr* address, unsigned int address_bytes,
                             uint64_t deadline) {
  return bosk::threads::connect_fd(fd, address, address_bytes, deadline);
}
