// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// omp_*_lock and omp_*_nest_lock, for C and Fortran, in both versions.
//
// OMP_1.0 has the layouts of OpenMP 2.5: there a nestable lock has 8 bytes, too few for ours, so
// that it holds a pointer to one, as Fortran's (always 8 bytes) does in both versions.
#include <string.h>

#include "abi/gomp/export.h"
#include "base/message.h"
#include "omp/locks.h"
#include "omp/team.h"

using bosk::omp::current_task;
using bosk::omp::LockWord;
using bosk::omp::NestLock;

// A function `bosk_…` and the versioned name that it is exported under. GCC has an attribute for
// that, which survives link-time optimisation, but GCC 12 ignores it when written [[gnu::symver]];
// clang has the assembler's directive only.
#if defined(__has_attribute) && __has_attribute(symver)
#define BOSK_VERSIONED(function, version) \
  extern "C" __attribute__((symver(version), visibility("default")))
#else
#define BOSK_VERSIONED(function, version) \
  asm(".symver " #function ", " version); \
  extern "C" [[gnu::used, gnu::visibility("default")]]
#endif

// The two versions of one routine: `suffix` _30 and _25.
#define BOSK_LOCK_30(result, name) \
  BOSK_VERSIONED(bosk_##name##_30, #name "@@OMP_3.0") result bosk_##name##_30
#define BOSK_LOCK_25(result, name) \
  BOSK_VERSIONED(bosk_##name##_25, #name "@OMP_1.0") result bosk_##name##_25

namespace {

/// A nestable lock that the variable holds a pointer to. The variable may be aligned to 4 only.
NestLock* held_pointer(const void* variable) {
  uintptr_t bits;
  memcpy(&bits, variable, sizeof bits);
  return reinterpret_cast<NestLock*>(bits);
}
/// The same for `routine`, which needs it: a lock that was destroyed, or never made, ends the program.
NestLock& held_lock(const void* variable, const char* routine) {
  NestLock* nest = held_pointer(variable);
  if (BOSK_UNLIKELY(nest == nullptr)) bosk::base::gomp_fatal("%s: no initialised lock", routine);
  return *nest;
}
void hold_pointer(void* variable, NestLock* nest) {
  const auto bits = reinterpret_cast<uintptr_t>(nest);
  memcpy(variable, &bits, sizeof bits);
}

// The simple lock is the same 4 bytes everywhere.
void init(LockWord* word) { word->store(bosk::omp::kLockFree, std::memory_order_relaxed); }
// Nothing belongs to a simple lock; one that is destroyed while held stays as it is.
void destroy(LockWord*) {}

void init(NestLock* nest) {
  // relaxed: whoever else uses the lock was told of it by other means.
  nest->word.store(bosk::omp::kLockFree, std::memory_order_relaxed);
  nest->depth = 0;
  nest->owner.store(nullptr, std::memory_order_relaxed);
}

void init_held(void* variable) { hold_pointer(variable, bosk::omp::make_nest_lock()); }
void destroy_held(void* variable) {
  bosk::omp::free_nest_lock(held_pointer(variable));
  hold_pointer(variable, nullptr);
}

}  // namespace

// ---- simple locks, C: omp_lock_t *
BOSK_LOCK_30(void, omp_init_lock)(LockWord* lock) { init(lock); }
BOSK_LOCK_25(void, omp_init_lock)(LockWord* lock) { init(lock); }
BOSK_LOCK_30(void, omp_destroy_lock)(LockWord* lock) { destroy(lock); }
BOSK_LOCK_25(void, omp_destroy_lock)(LockWord* lock) { destroy(lock); }
BOSK_LOCK_30(void, omp_set_lock)(LockWord* lock) { bosk::omp::lock(*lock); }
BOSK_LOCK_25(void, omp_set_lock)(LockWord* lock) { bosk::omp::lock(*lock); }
BOSK_LOCK_30(void, omp_unset_lock)(LockWord* lock) { bosk::omp::unlock(*lock); }
BOSK_LOCK_25(void, omp_unset_lock)(LockWord* lock) { bosk::omp::unlock(*lock); }
BOSK_LOCK_30(int, omp_test_lock)(LockWord* lock) { return bosk::omp::try_lock(*lock); }
BOSK_LOCK_25(int, omp_test_lock)(LockWord* lock) { return bosk::omp::try_lock(*lock); }

// ---- simple locks, Fortran: the variable by reference, LOGICAL is 32 bits
BOSK_LOCK_30(void, omp_init_lock_)(LockWord* lock) { init(lock); }
BOSK_LOCK_25(void, omp_init_lock_)(LockWord* lock) { init(lock); }
BOSK_LOCK_30(void, omp_destroy_lock_)(LockWord* lock) { destroy(lock); }
BOSK_LOCK_25(void, omp_destroy_lock_)(LockWord* lock) { destroy(lock); }
BOSK_LOCK_30(void, omp_set_lock_)(LockWord* lock) { bosk::omp::lock(*lock); }
BOSK_LOCK_25(void, omp_set_lock_)(LockWord* lock) { bosk::omp::lock(*lock); }
BOSK_LOCK_30(void, omp_unset_lock_)(LockWord* lock) { bosk::omp::unlock(*lock); }
BOSK_LOCK_25(void, omp_unset_lock_)(LockWord* lock) { bosk::omp::unlock(*lock); }
BOSK_LOCK_30(int32_t, omp_test_lock_)(LockWord* lock) { return bosk::omp::try_lock(*lock); }
BOSK_LOCK_25(int32_t, omp_test_lock_)(LockWord* lock) { return bosk::omp::try_lock(*lock); }

// ---- nestable locks, C: in OMP_3.0 the lock itself
BOSK_LOCK_30(void, omp_init_nest_lock)(NestLock* lock) { init(lock); }
BOSK_LOCK_30(void, omp_destroy_nest_lock)(NestLock*) {}
BOSK_LOCK_30(void, omp_set_nest_lock)(NestLock* lock) { bosk::omp::lock(*lock, current_task()); }
BOSK_LOCK_30(void, omp_unset_nest_lock)(NestLock* lock) { bosk::omp::unlock(*lock); }
BOSK_LOCK_30(int, omp_test_nest_lock)(NestLock* lock) {
  return bosk::omp::try_lock(*lock, current_task());
}

// ---- nestable locks behind a pointer: C in OMP_1.0, Fortran
BOSK_LOCK_25(void, omp_init_nest_lock)(void* lock) { init_held(lock); }
BOSK_LOCK_30(void, omp_init_nest_lock_)(void* lock) { init_held(lock); }
BOSK_LOCK_25(void, omp_init_nest_lock_)(void* lock) { init_held(lock); }
BOSK_LOCK_25(void, omp_destroy_nest_lock)(void* lock) { destroy_held(lock); }
BOSK_LOCK_30(void, omp_destroy_nest_lock_)(void* lock) { destroy_held(lock); }
BOSK_LOCK_25(void, omp_destroy_nest_lock_)(void* lock) { destroy_held(lock); }
BOSK_LOCK_25(void, omp_set_nest_lock)(void* lock) {
  bosk::omp::lock(held_lock(lock, "omp_set_nest_lock"), current_task());
}
BOSK_LOCK_30(void, omp_set_nest_lock_)(void* lock) {
  bosk::omp::lock(held_lock(lock, "omp_set_nest_lock"), current_task());
}
BOSK_LOCK_25(void, omp_set_nest_lock_)(void* lock) {
  bosk::omp::lock(held_lock(lock, "omp_set_nest_lock"), current_task());
}
BOSK_LOCK_25(void, omp_unset_nest_lock)(void* lock) {
  bosk::omp::unlock(held_lock(lock, "omp_unset_nest_lock"));
}
BOSK_LOCK_30(void, omp_unset_nest_lock_)(void* lock) {
  bosk::omp::unlock(held_lock(lock, "omp_unset_nest_lock"));
}
BOSK_LOCK_25(void, omp_unset_nest_lock_)(void* lock) {
  bosk::omp::unlock(held_lock(lock, "omp_unset_nest_lock"));
}
BOSK_LOCK_25(int, omp_test_nest_lock)(void* lock) {
  return bosk::omp::try_lock(held_lock(lock, "omp_test_nest_lock"), current_task());
}
BOSK_LOCK_30(int32_t, omp_test_nest_lock_)(void* lock) {
  return bosk::omp::try_lock(held_lock(lock, "omp_test_nest_lock"), current_task());
}
BOSK_LOCK_25(int32_t, omp_test_nest_lock_)(void* lock) {
  return bosk::omp::try_lock(held_lock(lock, "omp_test_nest_lock"), current_task());
}

// ---- with a hint, which changes nothing here: the lock already adapts to contention by itself
BOSK_EXPORT void omp_init_lock_with_hint(LockWord* lock, int) { init(lock); }
BOSK_EXPORT void omp_init_nest_lock_with_hint(NestLock* lock, int) { init(lock); }
