// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/sync.h: mutexes, conditions, barriers, semaphores, read-write locks, once.
#include "bosk/sync.h"

#include "abi/gomp/export.h"
#include "threads/sync/counters.h"
#include "threads/sync/mutex.h"

using bosk::threads::kForever;

// The public types are memory for these, with nothing but zeros where there is an initialiser.
#define BOSK_BEHIND(internal, external)                                 \
  static_assert(sizeof(bosk::threads::internal) <= sizeof(external) &&  \
                alignof(bosk::threads::internal) <= alignof(external)); \
  static bosk::threads::internal* behind(external* object) {            \
    return reinterpret_cast<bosk::threads::internal*>(object);          \
  }
BOSK_BEHIND(Mutex, bosk_mutex)
BOSK_BEHIND(Condition, bosk_cond)
BOSK_BEHIND(Barrier, bosk_barrier)
BOSK_BEHIND(Semaphore, bosk_sem)
BOSK_BEHIND(ReadWriteLock, bosk_rwlock)
BOSK_BEHIND(Once, bosk_once_t)

#define BOSK_NEED(condition) \
  if (!(condition)) return BOSK_EINVAL

BOSK_EXPORT int bosk_mutex_init(bosk_mutex* mutex, int kind) {
  BOSK_NEED(mutex != nullptr && bosk::threads::Mutex::is_kind(kind));
  behind(mutex)->init(static_cast<uint32_t>(kind));
  return 0;
}
BOSK_EXPORT int bosk_mutex_destroy(bosk_mutex* mutex) {
  BOSK_NEED(mutex != nullptr);
  return behind(mutex)->destroy();
}
BOSK_EXPORT int bosk_mutex_lock(bosk_mutex* mutex) {
  BOSK_NEED(mutex != nullptr);
  return behind(mutex)->lock(kForever);
}
BOSK_EXPORT int bosk_mutex_trylock(bosk_mutex* mutex) {
  BOSK_NEED(mutex != nullptr);
  return behind(mutex)->try_lock();
}
BOSK_EXPORT int bosk_mutex_lock_until(bosk_mutex* mutex, uint64_t deadline) {
  BOSK_NEED(mutex != nullptr);
  return behind(mutex)->lock(deadline);
}
BOSK_EXPORT int bosk_mutex_unlock(bosk_mutex* mutex) {
  BOSK_NEED(mutex != nullptr);
  return behind(mutex)->unlock();
}

BOSK_EXPORT int bosk_cond_init(bosk_cond* cond) {
  BOSK_NEED(cond != nullptr);
  behind(cond)->init();
  return 0;
}
BOSK_EXPORT int bosk_cond_destroy(bosk_cond* cond) {
  BOSK_NEED(cond != nullptr);
  return behind(cond)->destroy();
}
BOSK_EXPORT int bosk_cond_wait(bosk_cond* cond, bosk_mutex* mutex) {
  BOSK_NEED(cond != nullptr && mutex != nullptr);
  return behind(cond)->wait(*behind(mutex), kForever);
}
BOSK_EXPORT int bosk_cond_wait_until(bosk_cond* cond, bosk_mutex* mutex, uint64_t deadline) {
  BOSK_NEED(cond != nullptr && mutex != nullptr);
  return behind(cond)->wait(*behind(mutex), deadline);
}
BOSK_EXPORT int bosk_cond_signal(bosk_cond* cond) {
  BOSK_NEED(cond != nullptr);
  return behind(cond)->signal();
}
BOSK_EXPORT int bosk_cond_broadcast(bosk_cond* cond) {
  BOSK_NEED(cond != nullptr);
  return behind(cond)->broadcast();
}

BOSK_EXPORT int bosk_barrier_init(bosk_barrier* barrier, uint32_t count) {
  BOSK_NEED(barrier != nullptr && count != 0);
  behind(barrier)->init(count);
  return 0;
}
BOSK_EXPORT int bosk_barrier_destroy(bosk_barrier* barrier) {
  BOSK_NEED(barrier != nullptr);
  return behind(barrier)->destroy();
}
BOSK_EXPORT int bosk_barrier_wait(bosk_barrier* barrier) {
  BOSK_NEED(barrier != nullptr);
  return behind(barrier)->wait();
}

BOSK_EXPORT int bosk_sem_init(bosk_sem* sem, uint32_t value) {
  BOSK_NEED(sem != nullptr && value <= BOSK_SEM_MAX);
  behind(sem)->init(value);
  return 0;
}
BOSK_EXPORT int bosk_sem_destroy(bosk_sem* sem) {
  BOSK_NEED(sem != nullptr);
  return behind(sem)->destroy();
}
BOSK_EXPORT int bosk_sem_wait(bosk_sem* sem) {
  BOSK_NEED(sem != nullptr);
  return behind(sem)->wait(kForever);
}
BOSK_EXPORT int bosk_sem_trywait(bosk_sem* sem) {
  BOSK_NEED(sem != nullptr);
  return behind(sem)->try_wait();
}
BOSK_EXPORT int bosk_sem_wait_until(bosk_sem* sem, uint64_t deadline) {
  BOSK_NEED(sem != nullptr);
  return behind(sem)->wait(deadline);
}
BOSK_EXPORT int bosk_sem_post(bosk_sem* sem) {
  BOSK_NEED(sem != nullptr);
  return behind(sem)->post();
}
BOSK_EXPORT int bosk_sem_value(bosk_sem* sem, uint32_t* value) {
  BOSK_NEED(sem != nullptr && value != nullptr);
  return behind(sem)->value(value);
}

BOSK_EXPORT int bosk_rwlock_init(bosk_rwlock* lock) {
  BOSK_NEED(lock != nullptr);
  behind(lock)->init();
  return 0;
}
BOSK_EXPORT int bosk_rwlock_destroy(bosk_rwlock* lock) {
  BOSK_NEED(lock != nullptr);
  return behind(lock)->destroy();
}
BOSK_EXPORT int bosk_rwlock_read(bosk_rwlock* lock) {
  BOSK_NEED(lock != nullptr);
  return behind(lock)->read(kForever);
}
BOSK_EXPORT int bosk_rwlock_read_until(bosk_rwlock* lock, uint64_t deadline) {
  BOSK_NEED(lock != nullptr);
  return behind(lock)->read(deadline);
}
BOSK_EXPORT int bosk_rwlock_tryread(bosk_rwlock* lock) {
  BOSK_NEED(lock != nullptr);
  return behind(lock)->try_read();
}
BOSK_EXPORT int bosk_rwlock_write(bosk_rwlock* lock) {
  BOSK_NEED(lock != nullptr);
  return behind(lock)->write(kForever);
}
BOSK_EXPORT int bosk_rwlock_write_until(bosk_rwlock* lock, uint64_t deadline) {
  BOSK_NEED(lock != nullptr);
  return behind(lock)->write(deadline);
}
BOSK_EXPORT int bosk_rwlock_trywrite(bosk_rwlock* lock) {
  BOSK_NEED(lock != nullptr);
  return behind(lock)->try_write();
}
BOSK_EXPORT int bosk_rwlock_unlock(bosk_rwlock* lock) {
  BOSK_NEED(lock != nullptr);
  return behind(lock)->unlock();
}

BOSK_EXPORT int bosk_once(bosk_once_t* once, void (*function)()) {
  BOSK_NEED(once != nullptr && function != nullptr);
  return behind(once)->call(function);
}
