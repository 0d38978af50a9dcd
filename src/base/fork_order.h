// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which forks take what must not be in the middle of something when the child comes into being.
//
// Handlers of forks are registered when the library is loaded, by constructors. One that is registered when its room is first used is too
// late: another thread may use the room before it is there, and a fork that is under way does not call it any more. Before a fork the
// handlers come in reverse order, so a room that waits for another one while it has its own lock comes later here.
#pragma once

namespace bosk::base {

/// Priorities of constructors; those up to 100 belong to the compiler, and any other constructor comes after them.
constexpr int kForksOfLoader = 101;
constexpr int kForksOfMemory = 102;
constexpr int kForksOfNextTouch = 103;

}  // namespace bosk::base
