// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Synthetic machine descriptions: our words into hwloc's.
#pragma once

#include "topology/array.h"
#include "topology/error.h"

namespace bosk::topology {

/// Translates a description into hwloc's own synthetic syntax, NUL-terminated, in `out`. Words are
/// `name:count`, outermost first, separated by blanks: machine, package (socket), die, node (numa),
/// group, l3, l2, l1, core, pu, any case; attributes in parentheses, `[numa]` and bare numbers go
/// through as hwloc has them. What hwloc cannot say is added: a node becomes a group with memory (1 GiB
/// unless told), a missing pu:1 at the end is supplied. False: `error` names the word that is wrong
/// and what is accepted, or says that memory ran out.
bool translate_synthetic(const char* text, Array<char>* out, Error* error);

}  // namespace bosk::topology
