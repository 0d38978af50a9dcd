// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kinds of mapping, as gcc encodes them.
#include "abi/goacc/map_kinds.h"

#include "base/message.h"

namespace bosk::acc {
namespace {

// The lower byte; the upper one is the alignment.
enum Kind : unsigned {
  kAlloc = 0x00,
  kTo = 0x01,
  kFrom = 0x02,
  kPointer = 0x04,
  kToDescriptor = 0x05,
  kForcePresent = 0x06,
  kDelete = 0x07,
  kForceDeviceptr = 0x08,
  kUseDevicePtr = 0x0e,
  kUseDevicePtrIfPresent = 0x10,
  kRelease = 0x17,
  kStruct = 0x1c,
  kAttach = 0x50,
  kDetach = 0x51,
  kForceAlloc = 0x80,
  kForceTo = 0x81,
  kForceFrom = 0x82,
  kForceDetach = 0xd1,
};

}  // namespace

bool any_use_device(size_t n, const unsigned short* kinds) {
  for (size_t i = 0; i < n; ++i) {
    const unsigned kind = kinds[i] & 0xffu;
    if (kind == kUseDevicePtr || kind == kUseDevicePtrIfPresent) return true;
  }
  return false;
}

Direction direction_of_directive(size_t n, const unsigned short* kinds) {
  for (size_t i = 0; i < n; ++i) {
    const unsigned kind = kinds[i] & 0xffu;
    switch (kind) {
      case kPointer:
      case kToDescriptor:
      case kStruct:  // the kinds of its members follow
        continue;
      case kAlloc:
      case kTo:
      case kForcePresent:
      case kAttach:
      case kForceAlloc:
      case kForceTo:
        return Direction::kEnter;
      case kFrom:
      case kDelete:
      case kRelease:
      case kDetach:
      case kForceFrom:
      case kForceDetach:
        return Direction::kExit;
      default:
        base::gomp_fatal(">>>> GOACC_enter_exit_data UNHANDLED kind 0x%.2x", kind);
    }
  }
  return Direction::kExit;
}

Direction direction_of_declaration(unsigned short kind) {
  switch (kind & 0xffu) {
    case kTo:
    case kForceAlloc:
    case kForceTo:
      return Direction::kEnter;
    case kFrom:
    case kDelete:
    case kRelease:
    case kForceFrom:
      return Direction::kExit;
    case kAlloc:  // present on the host from the start
    case kPointer:
    case kToDescriptor:
    case kForcePresent:
    case kForceDeviceptr:
      return Direction::kNeither;
    default:
      base::gomp_fatal(">>>> GOACC_declare UNHANDLED kind 0x%.2x", kind & 0xffu);
  }
}

}  // namespace bosk::acc
