// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An access to memory that somebody saw: what sources give and recordings keep.
#pragma once

#include <cstdint>

namespace bosk::affinity {

constexpr uint16_t kNoCpu = UINT16_MAX;

enum class AccessKind : uint8_t {
  kFault,  ///< a page fault of the program's own, mostly a first touch: it tells not whether it was to read or to write
  kWrite,  ///< seen by write-protection
  kRead,   ///< only sources that see reads
  kLastKind  ///< not one
};

/// A space is what addresses are relative to: the private memory of one process, or one file or shared object, whoever maps it (the address is then an
/// offset). Spaces are numbered by the observer.
struct Access {
  uint64_t time_ns;  ///< CLOCK_MONOTONIC
  uint64_t address;  ///< less than kSpaceBytes
  uint32_t thread;   ///< its number in the kernel (gettid)
  uint16_t space;
  uint16_t cpu;  ///< the kernel's number; kNoCpu: not known
  AccessKind kind;
};

/// User addresses of today's processors by default (those of five levels have to be asked for), and all file offsets that one meets.
constexpr unsigned kSpaceBits = 48;
constexpr uint64_t kSpaceBytes = uint64_t{1} << kSpaceBits;

/// One number for all who share the page.
inline uint64_t key_of(const Access& access) {
  return uint64_t{access.space} << kSpaceBits | access.address;
}

}  // namespace bosk::affinity
