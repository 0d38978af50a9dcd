// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/call_in_code.h"

#include <string.h>

#include <algorithm>

namespace bosk::sched {
namespace {

constexpr size_t kSyscallBytes = 2;
/// As many moves as there are arguments.
constexpr size_t kMostBetween = 40;
constexpr uint32_t kNumbers = 1024;  ///< that there may be

/// Of a move between registers, or to or from the stack, that leaves the first register alone; 0: it is another instruction.
size_t length_of_move(const uint8_t* code, size_t bytes) {
  size_t at = 0;
  uint8_t rex = 0;
  if (at < bytes && (code[at] & 0xf0) == 0x40) rex = code[at++];
  if (at >= bytes) return 0;
  const uint8_t operation = code[at++];
  // mov $value, register
  if ((operation & 0xf8) == 0xb8) {
    const bool is_first = (operation & 7) == 0 && (rex & 1) == 0;
    const size_t length = at + ((rex & 8) != 0 ? 8 : 4);
    return is_first || length > bytes ? 0 : length;
  }
  const bool stores = operation == 0x89;
  const bool loads = operation == 0x8b || operation == 0x8d;
  const bool clears = operation == 0x31 || operation == 0x33;
  if ((!stores && !loads && !clears) || at >= bytes) return 0;
  const uint8_t modrm = code[at++];
  const uint8_t mode = modrm >> 6;
  const bool first_in_reg = (modrm >> 3 & 7) == 0 && (rex & 4) == 0;
  const bool first_in_rm = (modrm & 7) == 0 && (rex & 1) == 0;
  if (mode == 3) {
    const bool writes_first = stores  ? first_in_rm
                              : loads ? first_in_reg
                                      : first_in_rm || first_in_reg;
    return writes_first || operation == 0x8d ? 0 : at;
  }
  if (clears || (loads && first_in_reg)) return 0;
  const bool has_sib = (modrm & 7) == 4;
  // Addresses without a base, which have longer displacements, are not of the stack.
  if (mode == 0 && ((modrm & 7) == 5 || (has_sib && at < bytes && (code[at] & 7) == 5))) return 0;
  const size_t length = at + (has_sib ? 1 : 0) + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
  return length <= bytes ? length : 0;
}

bool are_moves(const uint8_t* code, size_t bytes) {
  while (bytes != 0) {
    const size_t length = length_of_move(code, bytes);
    if (length == 0) return false;
    code += length;
    bytes -= length;
  }
  return true;
}

}  // namespace

long number_of_call_in(const uint8_t* code, size_t bytes) {
  if (bytes < kSyscallBytes) return -1;
  const size_t end = bytes - kSyscallBytes;
  for (size_t between = 0; between <= std::min(end, kMostBetween); ++between) {
    const size_t at = end - between;
    if (at >= 5 && code[at - 5] == 0xb8) {
      // mov $number, %eax. What stands before it does not matter: the last one counts.
      uint32_t number;
      memcpy(&number, code + at - 4, sizeof number);
      if (number < kNumbers && are_moves(code + at, between)) return static_cast<long>(number);
    }
    // xor %eax, %eax
    if (at >= 2 && (code[at - 2] == 0x31 || code[at - 2] == 0x33) && code[at - 1] == 0xc0 &&
        !(at >= 3 && (code[at - 3] & 0xf0) == 0x40) && are_moves(code + at, between))
      return 0;
  }
  return -1;
}

}  // namespace bosk::sched
