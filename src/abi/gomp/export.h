// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How entry points are declared.
#pragma once

/// An entry point of the library. Which version node it is in says libgomp.map.
#define BOSK_EXPORT extern "C" [[gnu::visibility("default")]]

/// An entry point that is another name of `target`, an entry point in the same file.
#define BOSK_EXPORT_ALIAS(target) extern "C" [[gnu::alias(#target), gnu::visibility("default")]]
