// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the surroundings of the documents' fragments look at.
#pragma once
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition) \
  ((condition)            \
       ? (void)0          \
       : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), exit(1)))
