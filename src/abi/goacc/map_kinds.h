// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the kinds of a construct's variables say about the construct.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::acc {

enum class Direction : uint8_t { kEnter, kExit, kNeither };

/// host_data: the addresses that it uses are those of the device.
bool any_use_device(size_t n, const unsigned short* kinds);

/// An enter data or exit data directive; it is an exit if nothing says otherwise. Ends the program
/// with libgomp's words for kinds that have no place in either.
Direction direction_of_directive(size_t n, const unsigned short* kinds);

/// A variable of a declare directive. kNeither: it is there as long as the program is. Ends the
/// program for kinds that have no place there.
Direction direction_of_declaration(unsigned short kind);

}  // namespace bosk::acc
