// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GOMP_doacross_*.
#include "omp/doacross.h"

#include <stdarg.h>

#include "abi/gomp/export.h"

using namespace bosk::omp;

namespace {

/// Collects the vector from the argument list. `T` only says how the values are passed.
template <typename T>
void wait_for(T first, va_list rest) {
  ImplicitTask* member = current_member();
  const uint32_t dimensions = doacross_dimensions(member);
  if (dimensions == 0) return;
  auto* vector = static_cast<uint64_t*>(__builtin_alloca(dimensions * sizeof(uint64_t)));
  vector[0] = static_cast<uint64_t>(first);
  for (uint32_t i = 1; i < dimensions; ++i) vector[i] = static_cast<uint64_t>(va_arg(rest, T));
  doacross_wait(member, vector);
}

}  // namespace

BOSK_EXPORT void GOMP_doacross_post(long* counts) {
  doacross_post(current_member(), reinterpret_cast<const uint64_t*>(counts));
}

BOSK_EXPORT void GOMP_doacross_ull_post(unsigned long long* counts) {
  doacross_post(current_member(), reinterpret_cast<const uint64_t*>(counts));
}

BOSK_EXPORT void GOMP_doacross_wait(long first, ...) {
  va_list rest;
  va_start(rest, first);
  wait_for(first, rest);
  va_end(rest);
}

BOSK_EXPORT void GOMP_doacross_ull_wait(unsigned long long first, ...) {
  va_list rest;
  va_start(rest, first);
  wait_for(first, rest);
  va_end(rest);
}
