// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Texts between C and Fortran.
#pragma once

#include <stddef.h>
#include <string.h>

/// The result of a function that is character(:), pointer: gfortran passes where it goes. Null: the
/// pointer is disassociated.
inline void return_text(const char* text, const char** result, size_t* length) {
  *result = text;
  *length = text != nullptr ? strlen(text) : 0;
}

/// Fortran's texts end in as many blanks as fit.
inline size_t trimmed_length(const char* text, size_t length) {
  while (length != 0 && text[length - 1] == ' ') --length;
  return length;
}
